# SPDX-License-Identifier: GPL-3.0-or-later
"""IPv4 addresses of an interface as EOS prints them."""

from __future__ import annotations

import ipaddress
from typing import Any

from openipu.twin.devices.eos.forwarding import Interface

BROADCAST = "255.255.255.255"


def addresses(interface: Interface) -> list[dict[str, Any]]:
    """Return the JSON form of the IPv4 addresses of an interface: one item, or none without an address."""
    lines = [line.split()[2:] for line in interface.block.all("ip", "address") if "/" in line]
    primary = next((ipaddress.IPv4Interface(words[0]) for words in lines if words[1:] != ["secondary"]), None)
    if primary is None:
        return []
    more = [_address(ipaddress.IPv4Interface(words[0])) for words in lines if words[1:] == ["secondary"]]
    return [
        {
            "primaryIp": _address(primary),
            "secondaryIps": {item["address"]: item for item in more},
            "secondaryIpsOrderedList": more,
            "virtualIp": {"address": "0.0.0.0", "maskLen": 0},  # noqa: S104 (EOS prints this for no address)
            "virtualSecondaryIps": {},
            "virtualSecondaryIpsOrderedList": [],
            "broadcastAddress": BROADCAST,
            "dhcp": False,
        }
    ]


def _address(interface: ipaddress.IPv4Interface) -> dict[str, Any]:
    return {"address": str(interface.ip), "maskLen": interface.network.prefixlen}
