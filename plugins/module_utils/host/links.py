# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interfaces of a host as they run, and by which of them it is managed."""

from __future__ import annotations

import json
import os
import re
import typing as t
from dataclasses import dataclass
from pathlib import Path

from ..reconcile import Object, SentenceError
from .commands import Host

_MELLANOX = "0x15b3"


@dataclass(frozen=True)
class Link:
    """An interface; ``kind`` is empty for a card's, ``data`` what the kernel says of a bond or a VLAN."""

    name: str
    kind: str
    master: str
    below: str
    mtu: int
    addresses: tuple[str, ...]
    data: dict[str, t.Any]


def read(host: Host) -> dict[str, Link]:
    """All interfaces, by name."""
    links = {}
    for item in json.loads(host.run("ip", "-json", "-details", "address", "show")):
        info = item.get("linkinfo", {})
        addresses = ["%s/%d" % (a["local"], a["prefixlen"]) for a in item["addr_info"] if a.get("scope") == "global"]
        links[item["ifname"]] = Link(
            item["ifname"],
            info.get("info_kind", ""),
            item.get("master", ""),
            item.get("link", ""),
            item["mtu"],
            tuple(addresses),
            info.get("info_data", {}),
        )
    return links


def bond_object(links: dict[str, Link], name: str) -> list[Object]:
    """A bond as it runs, as the engine compares it; nothing when there is none."""
    link = links.get(name)
    if link is None or link.kind != "bond":
        return []
    told = {"mode": "mode", "ad_lacp_rate": "lacp_rate", "xmit_hash_policy": "hash_policy"}
    fields = {ours: link.data[theirs] for theirs, ours in told.items() if theirs in link.data}
    members = sorted(other.name for other in links.values() if other.master == name)
    return [{"name": name, "mtu": link.mtu, "members": members, **fields}]


def vlan_objects(links: dict[str, Link], bond: str) -> list[Object]:
    """The VLANs on a bond as they run."""
    return [
        {"name": link.name, "id": link.data.get("id"), "mtu": link.mtu, "addresses": list(link.addresses)}
        for link in links.values()
        if link.kind == "vlan" and link.below == bond
    ]


def ports(links: dict[str, Link]) -> list[str]:
    """The ports of the host's Mellanox cards: neither virtual functions nor what represents them in a switch."""
    found = []
    for folder in sorted(Path("/sys/class/net").iterdir()):
        virtual = (folder / "device/physfn").exists()
        if folder.name in links and word(folder / "device/vendor") == _MELLANOX and not virtual and _is_port(folder):
            found.append(folder.name)
    return found


def _is_port(folder: Path) -> bool:
    """A representative of a virtual function is called like pf0vf3, a port like p0 or nothing."""
    name = word(folder / "phys_port_name")
    return not name or re.match(r"^p\d+$", name) is not None


def word(path: Path) -> str:
    """What a file of the kernel says, empty when it says nothing."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def management(host: Host, links: dict[str, Link]) -> set[str]:
    """The interfaces without which nobody would reach the host: that of this login, and that of the default route."""
    routes = json.loads(host.run("ip", "-json", "route", "show", "default") or "[]")
    found = {route["dev"] for route in routes if "dev" in route}
    address = _login_address()
    found.update(name for name, link in links.items() if address in [a.partition("/")[0] for a in link.addresses])
    return found


def _login_address() -> str:
    """The address that the login came in by; sudo forgets it, and so the processes above are asked."""
    pid = os.getpid()
    while pid > 1:
        try:
            process = Path("/proc/%d" % pid)
            environment = (process / "environ").read_bytes()
            pid = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
        words = re.search(rb"(?:^|\0)SSH_CONNECTION=([^\0]*)", environment)
        if words and len(words.group(1).split()) == 4:
            return words.group(1).split()[2].decode()
    return ""


def check_members(host: Host, links: dict[str, Link], bond: str, members: t.Sequence[str]) -> None:
    """Raise SentenceError when a member is not there, or is used otherwise."""
    managed = management(host, links)
    for name in members:
        link = links.get(name)
        if link is None:
            cards = ", ".join(sorted(n for n, one in links.items() if not one.kind and n != "lo"))
            raise SentenceError("There is no interface %s on this host, which has %s." % (name, cards))
        if name in managed:
            raise SentenceError(
                "Interface %s is the one by which this host is managed: bond others, or manage it by another." % name
            )
        if link.master not in ("", bond):
            raise SentenceError("Interface %s is in %s already: take it out first." % (name, link.master))
        if link.addresses:
            raise SentenceError(
                "Interface %s has the address %s: take it from it first, in its own configuration too."
                % (name, link.addresses[0])
            )
