# SPDX-License-Identifier: GPL-3.0-or-later
"""Initial configuration of a new switch, which allows access by eAPI."""

from __future__ import annotations


def startup_config(hostname: str, address: str, http: bool = False) -> str:
    """Return the minimal configuration for management over eAPI.

    Args:
        hostname: host name.
        address: address of Management1 with its prefix length (`10.1.3.111/24`).
        http: enable plain HTTP besides HTTPS.
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
