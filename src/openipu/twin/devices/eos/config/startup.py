# SPDX-License-Identifier: GPL-3.0-or-later
"""Initial configuration of a new switch, which allows access by eAPI and SNMP."""

from __future__ import annotations

from collections.abc import Iterator

from openipu.twin.devices.snmp.users import Credentials

SNMP_GROUP = "monitoring"


def startup_config(hostname: str, address: str, http: bool = False, snmp: Credentials | None = None) -> str:
    """Return the minimal configuration for management over eAPI.

    Args:
        hostname: host name.
        address: address of Management1 with its prefix length (`10.1.3.111/24`).
        http: enable plain HTTP besides HTTPS.
        snmp: SNMP users and communities with read access.
    """
    lines = [
        *_snmp_lines(snmp or Credentials()),
        f"hostname {hostname}",
        "interface Management1",
        f"   ip address {address}",
        "management api http-commands",
        *(["   protocol http"] if http else []),
        "   no shutdown",
    ]
    return "\n".join([*lines, ""])


def _snmp_lines(snmp: Credentials) -> Iterator[str]:
    for community in snmp.communities:
        yield f"snmp-server community {community.name} ro"
    if snmp.users:
        yield f"snmp-server group {SNMP_GROUP} v3 priv"
    for user in snmp.users:
        keys = f"auth {user.auth} {user.auth_key} priv {user.priv} {user.priv_key}"
        yield f"snmp-server user {user.name} {SNMP_GROUP} v3 {keys}"
