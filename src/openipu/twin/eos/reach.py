# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a switch can still be managed under its configuration: what cuts eAPI off."""

from __future__ import annotations

from openipu.twin.eos.config import Block, Config


def address(config: Config) -> str:
    """The address of the first management interface, without its mask; empty when it has none."""
    for name, block in config.interfaces().items():
        if name.startswith("Management"):
            return (block.value("ip", "address") or "").partition("/")[0]
    return ""


def answers(config: Config, management_address: str, secure: bool) -> bool:
    """Whether eAPI answers at this address: the interface is up and has it, and the service runs there.

    Args:
        config: running configuration.
        management_address: the address that everybody knows the switch by; empty when that is not known, and
            then any interface will do.
        secure: whether callers come over HTTPS.
    """
    service = config.root.block("management", "api", "http-commands")
    if service is None or service.get("shutdown") != "no shutdown":
        return False
    protocols = {line.split()[-1 if line.startswith("no ") else 1]: line for line in service.all("protocol")}
    if secure and protocols.get("https", "").startswith("no "):
        return False
    if not secure and "http" not in protocols:
        return False
    return any(
        _up(block, management_address) and _served(service, block.value("vrf"))
        for name, block in config.interfaces().items()
        if name.startswith(("Management", "Vlan", "Loopback")) or block.get("switchport")
    )


def _up(interface: Block, management_address: str) -> bool:
    if interface.get("shutdown"):
        return False
    own = [line.split()[2].partition("/")[0] for line in interface.all("ip", "address")]
    return management_address in own if management_address else True


def _served(service: Block, vrf: str | None) -> bool:
    if vrf is None:
        default = service.block("vrf", "default")
        return default is None or default.get("shutdown") == "no shutdown"
    inside = service.block("vrf", vrf)
    return inside is not None and inside.get("shutdown") == "no shutdown"
