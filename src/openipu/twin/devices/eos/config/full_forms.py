# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of `show running-config all` for settings that are not complete: EOS prints the omitted values."""

from __future__ import annotations


def in_full(line: str) -> str:
    """Return a line with its omitted values. pyeapi reads routes and users in this form only."""
    match line.split():
        case ["ip", "route", *_]:
            return _route(line)
        case ["username", name, option, *options] if option not in {"privilege", "ssh-key"}:
            return " ".join(["username", name, "privilege", "1", option, *options])
    return line


def _route(line: str) -> str:
    """Return a static route with its distance and tag.

    The syntax is `ip route [vrf NAME] PREFIX NEXTHOP [ADDRESS] [DISTANCE] [tag TAG] [name NAME]`.
    """
    words = line.split()
    end = 6 if words[2] == "vrf" else 4
    if len(words) > end and "." in words[end]:  # the address of a next hop on an interface
        end += 1
    route, options = words[:end], words[end:]
    distance = options.pop(0) if options and options[0].isdigit() else "1"
    tag = [] if "tag" in options else ["tag", "0"]
    return " ".join([*route, distance, *tag, *options])
