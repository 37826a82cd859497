# SPDX-License-Identifier: GPL-3.0-or-later
"""What is typed into a new switch at its console, so that eAPI can do the rest."""

from __future__ import annotations


def startup_config(hostname: str, address: str, http: bool = False) -> str:
    """The least configuration with which a switch can be managed.

    Args:
        hostname: its host name.
        address: of Management1, with the length of the prefix (`10.1.3.111/24`).
        http: whether eAPI answers over plain HTTP too.
    """
    lines = [
        f"hostname {hostname}",
        "interface Management1",
        f"   ip address {address}",
        "management api http-commands",
        *(["   protocol http"] if http else []),
        "   no shutdown",
    ]
    return "\n".join([*lines, ""])
