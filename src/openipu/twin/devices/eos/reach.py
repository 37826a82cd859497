# SPDX-License-Identifier: GPL-3.0-or-later
"""Reachability of eAPI and SNMP under a configuration."""

from __future__ import annotations

from collections.abc import Iterator

from openipu.twin.devices.eos.config.tree import Block, Config


def management_address(config: Config) -> str:
    """Return the address of the first management interface without its mask; empty if it has none."""
    for name, block in config.interfaces().items():
        if name.startswith("Management"):
            return (block.value("ip", "address") or "").partition("/")[0]
    return ""


def is_reachable(config: Config, address: str, secure: bool) -> bool:
    """Return whether eAPI responds at this address: an enabled interface has it, and the service runs there.

    Args:
        config: running configuration.
        address: address that clients use; empty to accept any interface.
        secure: whether clients use HTTPS.
    """
    service = config.root.block("management", "api", "http-commands")
    if service is None or service.get("shutdown") != "no shutdown":
        return False
    protocols = {line.split()[-1 if line.startswith("no ") else 1]: line for line in service.all("protocol")}
    if secure and protocols.get("https", "").startswith("no "):
        return False
    if not secure and "http" not in protocols:
        return False
    return any(_served(service, block.value("vrf")) for block in _interfaces_at(config, address))


def has_address(config: Config, address: str) -> bool:
    """Return whether an enabled interface has this address; empty to accept any interface."""
    return any(True for _ in _interfaces_at(config, address))


def _interfaces_at(config: Config, address: str) -> Iterator[Block]:
    for name, block in config.interfaces().items():
        routed = name.startswith(("Management", "Vlan", "Loopback")) or block.get("switchport")
        if routed and _up(block, address):
            yield block


def _up(interface: Block, address: str) -> bool:
    if interface.get("shutdown"):
        return False
    addresses = [line.split()[2].partition("/")[0] for line in interface.all("ip", "address")]
    return address in addresses if address else True


def _served(service: Block, vrf: str | None) -> bool:
    if vrf is None:
        default = service.block("vrf", "default")
        return default is None or default.get("shutdown") == "no shutdown"
    block = service.block("vrf", vrf)
    return block is not None and block.get("shutdown") == "no shutdown"
