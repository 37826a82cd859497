# SPDX-License-Identifier: GPL-3.0-or-later
"""State of a switch from its configuration and cabling: links, port-channels, VLANs, MAC addresses. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from openipu.twin.cables.switch_cabling import Neighbour, SwitchCabling
from openipu.twin.devices.eos.config.tree import Block, Config
from openipu.twin.devices.eos.ports import kind_of, numbers_of, vlan_set

GIGABIT = 10**9
EVERY_VLAN = frozenset(range(1, 4095))


@dataclass(frozen=True)
class Vlans:
    """VLANs of a switchport: `mode` is `access`, `trunk` or `routed`; `allowed` applies to trunks."""

    mode: str
    access: int
    native: int | None
    allowed: frozenset[int]

    @property
    def all_vlans(self) -> frozenset[int]:
        """All VLANs of the port, including VLANs that do not exist."""
        return {"access": frozenset({self.access}), "trunk": self.allowed}.get(self.mode, frozenset())

    @property
    def untagged(self) -> int | None:
        """VLAN of untagged frames; None if it drops them."""
        return self.access if self.mode == "access" else self.native if self.native in self.all_vlans else None


def vlans_of(block: Block) -> Vlans:
    """Return the VLANs of a port or port-channel from its configuration."""
    if block.get("switchport") or kind_of(block.head.split()[1]) not in {"Ethernet", "Port-Channel"}:
        mode = "routed"
    else:
        mode = block.value("switchport", "mode") or "access"
    native = block.value("switchport", "trunk", "native", "vlan") or "1"
    allowed = block.value("switchport", "trunk", "allowed", "vlan")
    return Vlans(
        mode,
        int(block.value("switchport", "access", "vlan") or 1),
        int(native) if native.isdigit() else None,
        EVERY_VLAN if allowed is None else frozenset() if allowed == "none" else vlan_set(allowed),
    )


@dataclass(frozen=True)
class Interface:
    """State of one interface.

    Args:
        name: its name.
        block: its configuration.
        link: `connected`, `notconnect` or `disabled`.
        bandwidth: bits per second.
        neighbour: device at the other end of the cable.
        group: configured port-channel, and `active`, `passive` or `on`; empty for none.
        bundled: whether it is an active member of that port-channel.
    """

    name: str
    block: Block
    link: str
    bandwidth: int
    neighbour: Neighbour | None = None
    group: tuple[str, str] = ("", "")
    bundled: bool = False

    @property
    def up(self) -> bool:
        """State of the link: True if up."""
        return self.link == "connected"

    @property
    def description(self) -> str:
        """Configured description."""
        return self.block.value("description") or ""

    @property
    def vlans(self) -> Vlans:
        """VLANs from its own configuration."""
        return vlans_of(self.block)

    @property
    def mtu(self) -> int:
        """MTU in bytes; 9214 by default for switched interfaces on EOS."""
        mtu = self.block.value("mtu")
        return int(mtu) if mtu else 1500 if self.vlans.mode == "routed" else 9214


@dataclass(frozen=True)
class MacEntry:
    """Entry of the MAC address table; `mac` has the form `00:11:22:33:44:55`."""

    vlan: int
    mac: str
    interface: str
    static: bool = False


class Forwarding:
    """State of a switch with this configuration and cabling.

    Args:
        config: running configuration.
        cabling: neighbours of the ports.
    """

    def __init__(self, config: Config, cabling: SwitchCabling) -> None:
        self.config = config
        self._cabling = cabling

    @cached_property
    def interfaces(self) -> dict[str, Interface]:
        """All interfaces by name, in the order of EOS."""
        blocks = self.config.interfaces()
        ports = {name: self._port(name, block) for name, block in blocks.items() if name in self.config.ports.physical}
        found: dict[str, Interface] = dict(ports)
        for name, block in blocks.items():
            if name not in found:
                found[name] = self._virtual(name, block, ports)
        return {name: found[name] for name in blocks}

    def members(self, lag: str) -> list[Interface]:
        """Return the ports configured as members of a port-channel."""
        return [port for port in self.interfaces.values() if port.group[0] == lag]

    def ports_in_vlan(self, vlan: int) -> list[str]:
        """Return the interfaces in a VLAN that are up, as `show vlan` lists them."""
        return [one.name for one in self._switched() if one.up and vlan in one.vlans.all_vlans]

    @cached_property
    def mac_table(self) -> list[MacEntry]:
        """MAC address table, sorted by VLAN and address."""
        vlans = self.config.vlans().keys()
        found = list(self._static())
        for port in self.interfaces.values():
            if not port.up or port.neighbour is None or (port.group[0] and not port.bundled):
                continue
            via = self.interfaces[port.group[0]] if port.bundled else port
            for mac, tag in port.neighbour.macs:
                vlan = via.vlans.untagged if tag is None else tag
                # An access port accepts a tagged frame only if the tag is its own VLAN.
                if vlan in vlans and vlan in via.vlans.all_vlans and vlan is not None:
                    found.append(MacEntry(vlan, mac.lower(), via.name))
        return sorted(set(found), key=lambda entry: (entry.vlan, entry.mac))

    @cached_property
    def neighbours(self) -> list[tuple[Interface, Neighbour]]:
        """Interfaces and neighbours that LLDP has discovered there."""
        if self.config.root.get("lldp", "run"):
            return []
        return [
            (port, port.neighbour)
            for port in self.interfaces.values()
            if port.up and port.neighbour and port.neighbour.name and not port.block.get("lldp", "receive")
        ]

    def _switched(self) -> Iterator[Interface]:
        for one in self.interfaces.values():
            if one.vlans.mode != "routed" and not one.group[0]:
                yield one

    def _static(self) -> Iterator[MacEntry]:
        for line in self.config.root.all("mac", "address-table", "static"):
            words = line.split()
            digits = words[3].replace(".", "")
            mac = ":".join(digits[n : n + 2] for n in range(0, 12, 2))
            yield MacEntry(int(words[5]), mac, words[7], static=True)

    def _port(self, name: str, block: Block) -> Interface:
        neighbour = self._cabling.neighbour(name)
        # The management port is always connected: eAPI requests arrive through it.
        plugged = kind_of(name) == "Management" or (neighbour is not None and neighbour.up)
        link = "disabled" if block.get("shutdown") else "connected" if plugged else "notconnect"
        line = block.get("channel-group")
        group = (f"Port-Channel{line.split()[1]}", line.split()[3]) if line else ("", "")
        lacp = neighbour is not None and neighbour.lacp
        bundled = bool(line) and link == "connected" and (group[1] == "on" or lacp)
        return Interface(name, block, link, self._bandwidth(name, block), neighbour, group, bundled)

    def _virtual(self, name: str, block: Block, ports: dict[str, Interface]) -> Interface:
        bandwidth, up = 0, True
        match kind_of(name):
            case "Port-Channel":
                bundled = [port for port in ports.values() if port.bundled and port.group[0] == name]
                bandwidth = sum(port.bandwidth for port in bundled)
                up = len(bundled) >= max(1, int(block.value("port-channel", "min-links") or 0))
            case "Vlan":
                vlan = numbers_of(name)[0]
                up = vlan in self.config.vlans() and any(
                    port.up and vlan in self._effective(port).all_vlans for port in ports.values()
                )
        return Interface(
            name, block, "disabled" if block.get("shutdown") else "connected" if up else "notconnect", bandwidth
        )

    def _effective(self, port: Interface) -> Vlans:
        """Return the VLANs of a port, or those of its port-channel."""
        if not port.group[0]:
            return port.vlans
        lag = self.config.interfaces().get(port.group[0])
        return vlans_of(lag) if lag is not None and port.bundled else Vlans("routed", 1, None, frozenset())

    def _bandwidth(self, name: str, block: Block) -> int:
        speed = (block.value("speed") or "auto").split()[-1]
        digits = "".join(letter for letter in speed.partition("-")[0] if letter.isdigit())
        if digits:
            amount = int(digits)
            # 100m, 10full and the like are megabits; 10g and 25gfull gigabits.
            return amount * (GIGABIT if "g" in speed else 10**6)
        if kind_of(name) == "Management":
            return GIGABIT
        if "/" in name:
            return 100 * GIGABIT
        # On copper switches only the ports after 48 are uplinks; on others, all ports without a slash.
        copper = not any("/" in port for port in self.config.ports.physical)
        return GIGABIT if copper and numbers_of(name)[0] <= 48 else 10 * GIGABIT
