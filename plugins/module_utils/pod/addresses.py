# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names, addresses and MACs of a POD: validation, assignment by rule, and detection of duplicates."""

from __future__ import annotations

import typing as t

from . import model, spec
from .mistakes import ConsequenceError, Mistakes, PodError
from .source import Block

try:
    import netaddr

    HAS_NETADDR = True
except ImportError:
    HAS_NETADDR = False


class UniqueValues:
    """Values that may be used only once, with the places of their first use."""

    def __init__(self, label: str) -> None:
        """``label`` names the values in messages."""
        self.label = label
        self._places: dict[str, tuple[str | None, PodError]] = {}

    def take(self, value: str, owner: str | None, place: PodError) -> None:
        """Record a value and its owner. Raises PodError for a duplicate.

        ``owner`` is None when the value is the name of the owner. ``place`` is an error without message.
        """
        first = self._places.setdefault(value, (owner, place))
        if first[1] is not place:
            other, earlier = first
            where = "line %d" % earlier.line if earlier.file == place.file and earlier.line else earlier.place
            if owner is None:
                here = "line %d" % place.line if place.line else "here"
                message = "%s '%s' is used twice, in %s and %s: use different names"
                raise PodError(place.file, place.line, message % (self.label, value, where, here))
            message = "%s %s is used by both %s (%s) and %s: use different values"
            owner = owner if other != owner else owner.replace("a ", "another ", 1)
            raise PodError(place.file, place.line, message % (self.label, value, other, where, owner))


class Plan:
    """The networks of a POD, with all assigned names, addresses and MACs."""

    def __init__(self, top: Block) -> None:
        """Read the key ``networks``. Raises PodError."""
        if not HAS_NETADDR:
            raise top.error("cannot be read without the Python library netaddr: install netaddr")
        self.networks: dict[str, model.Network] = {}
        self._subnets: dict[str, t.Any] = {}
        self._too_small: set[str] = set()  # networks with too small a subnet, each reported once
        self._addresses = UniqueValues("address")
        self._macs = UniqueValues("MAC")
        self._names = UniqueValues("name")
        blocks = spec.POD.child(top, "networks")
        mistakes = Mistakes()
        for name, vlan in model.VLANS.items():
            with mistakes.collect():
                block = spec.NETWORKS.child(blocks, name, "network '%s'" % name)
                self._add(name, block, vlan)
                self._compare(name, block)
        mistakes.check()

    def _compare(self, name: str, block: Block) -> None:
        """Reject a network that shares its VLAN or addresses with an earlier one. BMC and GW may share a VLAN."""
        network = self.networks[name]
        for other in self.networks.values():
            if other is network:
                continue
            same_switch = model.SWITCHES[name] == model.SWITCHES[other.name]
            if {name, other.name} == {model.BMC, model.GW} and network.vlan == other.vlan:
                continue
            if same_switch and network.vlan == other.vlan:
                message = "networks '%s' and '%s' share VLAN %d: use different VLANs"
                raise block.error(message % (other.name, name, network.vlan), "vlan")
            if name in self._subnets and other.name in self._subnets and self._overlap(name, other.name):
                message = "subnets %s of network '%s' and %s of network '%s' overlap: use separate ones"
                raise block.error(message % (other.subnet, other.name, network.subnet, name), "subnet")

    def _overlap(self, first: str, second: str) -> bool:
        return self._subnets[first] in self._subnets[second] or self._subnets[second] in self._subnets[first]

    def _add(self, name: str, block: Block, vlan: int) -> None:
        vlan = vlan if block.get("vlan") is None else block["vlan"]
        if not spec.in_range(vlan, spec.VLAN_NUMBERS):
            message = "invalid VLAN %d of network '%s': use %d to %d"
            raise block.error(message % (vlan, name, *spec.VLAN_NUMBERS), "vlan")
        text = block.get("subnet") or model.SUBNETS.get(name)
        if text:
            try:
                subnet = netaddr.IPNetwork(text)
            except (netaddr.AddrFormatError, ValueError):
                raise self._bad_subnet(block, name, text) from None
            if subnet.version != 4:
                message = "subnet '%s' of network '%s' is an IPv6 subnet, and a POD has IPv4 addresses: use the form "
                raise block.error((message + "10.1.0.0/16") % (text, name), "subnet")
            if "/" not in text:
                raise self._bad_subnet(block, name, text)
            if subnet.ip != subnet.network:
                message = "subnet %s of network '%s' has host bits set: did you mean %s?"
                raise block.error(message % (text, name, subnet.cidr), "subnet")
            self._subnets[name] = subnet
            text = str(subnet)
        self.networks[name] = model.Network(name, vlan, text)

    @staticmethod
    def _bad_subnet(block: Block, name: str, text: str) -> PodError:
        return block.error("invalid subnet '%s' of network '%s': use the form 10.1.0.0/16" % (text, name), "subnet")

    def interface(
        self,
        block: Block,
        owner: str,
        name: str,
        networks: tuple[str, ...],
        rack: int,
        unit: int | None,
        keys: tuple[str, str],
    ) -> model.Interface:
        """Return an interface with the address and MAC of ``keys`` in ``block``.

        Without an address, the rule assigns one: the first address of the subnet, plus 256 × ``rack`` when the
        subnet is larger than /24, plus ``unit``. With ``unit`` None, no address is assigned.
        """
        address_key, mac_key = keys
        network = networks[0]
        subnet = self._subnets.get(network)
        address = block.get(address_key)
        label = "%s of '%s'" % (name, owner)
        if address:
            value = self._address(block, address_key, address, label)
            if subnet is None:
                raise block.error(
                    "network '%s' has no subnet for address %s: set its subnet" % (network, value), address_key
                )
            if value not in subnet or (subnet.size > 2 and int(value) in (subnet.first, subnet.last)):
                message = "address %s (%s) is outside subnet %s of network '%s': correct one of them"
                raise block.error(message % (value, label, subnet, network), address_key)
            address = str(value)
        elif subnet is not None and unit is not None:
            address = self._assigned_address(block, subnet, network, rack, unit, label)
        if address:
            self._addresses.take(address, label, block.error("", address_key))
        mac = block.get(mac_key)
        if mac:
            mac = self._mac(block, mac_key, mac, label)
        return model.Interface(name, networks, address, mac)

    def _assigned_address(self, block: Block, subnet: t.Any, network: str, rack: int, unit: int, label: str) -> str:
        offset = unit if subnet.size <= 256 else 256 * rack + unit
        if offset >= subnet.size - 1:
            message = "subnet %s of network '%s' is too small: it has no address number %d for %s. %s"
            remedy = "Use a larger subnet, or set the addresses in it"
            error = block.error(message % (subnet, network, offset, label, remedy))
            if network in self._too_small:
                raise ConsequenceError(error.file, error.line, error.message)
            self._too_small.add(network)
            raise error
        return str(subnet[offset])

    @staticmethod
    def _address(block: Block, key: str, text: str, label: str) -> t.Any:
        try:
            value = netaddr.IPAddress(text)
        except (netaddr.AddrFormatError, ValueError):
            raise block.error("'%s' (%s) is not an IPv4 address: correct it" % (text, label), key) from None
        if value.version != 4:
            raise block.error("'%s' (%s) is not an IPv4 address: correct it" % (text, label), key)
        return value

    def _mac(self, block: Block, key: str, text: str, label: str) -> str:
        try:
            value = netaddr.EUI(text, version=48, dialect=netaddr.mac_unix_expanded)
        except (netaddr.AddrFormatError, ValueError, TypeError):
            raise block.error("'%s' (%s) is not a MAC: use the form 0c:42:a1:00:00:01" % (text, label), key) from None
        if not int(value) or value.words[0] & 1:
            raise block.error("MAC %s (%s) is not the address of a single device: correct it" % (value, label), key)
        self._macs.take(str(value), label, block.error("", key))
        return str(value)

    def device(self, block: Block, kind: str) -> str:
        """Return the name of a device, which must be unique in the POD. Raises PodError."""
        name: str = block["name"]
        self._names.take(name, "a %s" % kind, block.error("", "name"))
        return name
