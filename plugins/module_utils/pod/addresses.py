# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names, addresses and MACs of a POD: validation, assignment by rule, and detection of duplicates."""

from __future__ import annotations

import ipaddress
import typing as t

from . import model, spec
from .mistakes import LeftOut, Mistakes, PodError, similar
from .source import Block

try:
    import netaddr

    HAS_NETADDR = True
except ImportError:
    HAS_NETADDR = False

_UNUSABLE = {
    "multicast": ipaddress.IPv4Network("224.0.0.0/4"),
    "link-local": ipaddress.IPv4Network("169.254.0.0/16"),
    "reserved": ipaddress.IPv4Network("240.0.0.0/4"),
}
_LOOPBACK = ipaddress.IPv4Network("127.0.0.0/8")
_TOO_SMALL = (
    "subnet %s of network '%s' is too small: it lacks %s, such as %s. Use a larger subnet, or set the addresses in it"
)
_SEVERAL_RACKS = (
    "subnet %s of network '%s' is too small for several racks: the rule assigns %s twice, such as %s. "
    "Use a larger subnet, or set the addresses in it"
)
_SHARED = (
    "networks 'bmc' and 'gw' share addresses of subnet %s: the rule assigns %s twice, such as %s. "
    "Use separate subnets, or set the addresses"
)


class UniqueValues:
    """Values that may be used only once, with the places of their first use."""

    def __init__(self, label: str, *, ignore_case: bool = False) -> None:
        """``label`` names the values in messages."""
        self.label = label
        self._ignore_case = ignore_case
        self._places: dict[str, tuple[str, str | None, PodError]] = {}

    def take(self, value: str, owner: str | None, place: PodError) -> None:
        """Record a value and its owner. Raises PodError for a duplicate.

        ``owner`` is None when the value is the name of the owner. ``place`` is an error without message.
        """
        first = self._places.setdefault(value.lower() if self._ignore_case else value, (value, owner, place))
        if first[2] is not place:
            used, other, earlier = first
            where = "line %d" % earlier.line if earlier.file == place.file and earlier.line else earlier.place
            if used != value:
                message = "%s '%s' differs from '%s' (%s) only in upper and lower case: use another name"
                raise PodError(place.file, place.line, message % (self.label, value, used, where))
            if owner is None:
                here = "line %d" % place.line if place.line else "here"
                message = "%s '%s' is used twice, in %s and %s: use different names"
                raise PodError(place.file, place.line, message % (self.label, value, where, here))
            message = "%s %s is used by both %s (%s) and %s: use different values"
            owner = owner if other != owner else owner.replace("a ", "another ", 1)
            raise PodError(place.file, place.line, message % (self.label, value, other, where, owner))

    def __iter__(self) -> t.Iterator[tuple[str, str | None]]:
        """Yield each value with its owner."""
        for value, owner, _place in self._places.values():
            yield value, owner


def unusable(subnet: ipaddress.IPv4Network) -> str | None:
    """Return the kind of a subnet whose addresses hosts cannot have, None for all others."""
    return next((kind for kind, block in _UNUSABLE.items() if subnet.overlaps(block)), None)


def contains(subnet: str | None, text: str) -> bool:
    """Return whether a text is an address of a subnet, or any IPv4 address without a subnet."""
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return subnet is None or address in ipaddress.IPv4Network(subnet)


def is_mac(text: str) -> bool:
    """Return whether a text is a MAC in one of the usual forms."""
    return bool(netaddr.valid_mac(text))


def _mistyped(block: Block | None, keys: t.Collection[str]) -> set[str]:
    """Return the omitted keys that unknown keys of a mapping may stand for: similar ones, or all of them."""
    given: t.Collection[str] = block or ()
    omitted = {key for key in keys if key not in given}
    near = {similar(key, keys) for key in given if key not in keys}
    return omitted if near - omitted else omitted & near


class Plan:
    """The networks of a POD, with all assigned names, addresses and MACs."""

    def __init__(self, top: Block, mistakes: Mistakes, left_out: LeftOut) -> None:
        """Read the key ``networks``, and record its mistakes. Raises PodError without a library."""
        if not HAS_NETADDR:
            raise top.error("cannot be read without the Python library netaddr: install netaddr")
        self.networks: dict[str, model.Network] = {}
        self._mistakes = mistakes
        self._left_out = left_out
        self._subnets: dict[str, t.Any] = {}
        self._addresses = UniqueValues("address")
        self._assigned: dict[str, tuple[str, int, str]] = {}  # network, rack and interface of each assigned address
        self._shortages: dict[tuple[str, str], list[str]] = {}  # addresses by cause and network
        self._macs = UniqueValues("MAC")
        self._names = UniqueValues("name", ignore_case=True)
        networks = spec.POD.child(top, "networks", mistakes)
        blocks = {name: spec.NETWORKS.child(networks, name, mistakes, "network '%s'" % name) for name in model.VLANS}
        self._blocks = blocks
        invalid = {*networks.invalid, *_mistyped(top.get("networks"), blocks)}
        known = {name for name in blocks if name not in invalid and "networks" not in top.invalid}
        for key, uncertain in (("vlan", left_out.vlans), ("subnet", left_out.subnets)):
            for name, block in blocks.items():
                mistyped = _mistyped(networks.get(name), spec.NETWORK.spec)
                if name not in known or key in block.invalid or key in mistyped:
                    uncertain.add(name)
        for name, block in blocks.items():
            if name not in left_out.subnets:
                before = len(mistakes)
                with mistakes.collect():
                    self._add_subnet(name, block)
                if len(mistakes) > before:
                    left_out.subnets.add(name)
            vlan = model.VLANS[name] if block.get("vlan") is None else block["vlan"]
            self.networks[name] = model.Network(name, vlan, str(self._subnets[name]) if name in self._subnets else None)
        vlans = [name for name in blocks if name not in left_out.vlans]
        for position, name in enumerate(vlans):
            self._compare_vlans(name, vlans[:position], blocks)
        for position, name in enumerate(self._subnets):
            self._compare_subnets(name, list(self._subnets)[:position], blocks[name])
        self._check_loopback()

    def _check_loopback(self) -> None:
        """Record loopback subnets next to others: only a twin has them, and then all are."""
        certain = [name for name in self._subnets if name not in self._left_out.subnets]
        loopback = [name for name in certain if ipaddress.IPv4Network(str(self._subnets[name])).overlaps(_LOOPBACK)]
        others = [name for name in certain if name not in loopback]
        if loopback and others:
            message = "subnet %s of network '%s' is on loopback, but %s of network '%s' is not: use %s"
            # A default subnet has no line of its own.
            block = next(each for each in map(self._blocks.get, (*loopback, *others)) if each and each.get("subnet"))
            values = (self._subnets[loopback[0]], loopback[0], self._subnets[others[0]], others[0])
            remedy = "loopback for all networks of a twin, and for none of a real POD"
            self._mistakes.add(block.error(message % (*values, remedy), "subnet"))

    def _compare_vlans(self, name: str, earlier: list[str], blocks: dict[str, Block]) -> None:
        """Record a network that shares its VLAN with earlier ones. In the reference design, BMC and GW share one."""
        vlan = self.networks[name].vlan
        others = [other for other in earlier if self.networks[other].vlan == vlan and not self._may_share(name, other)]
        if others:
            self._left_out.vlans.add(name)
            message = "networks %s and '%s' share VLAN %d: use different VLANs"
            # A default VLAN has no line of its own.
            block = next((blocks[each] for each in (name, *others) if "vlan" in blocks[each].lines), blocks[name])
            names = ", ".join("'%s'" % other for other in others)
            self._mistakes.add(block.error(message % (names, name, vlan), "vlan"))

    def _compare_subnets(self, name: str, earlier: list[str], block: Block) -> None:
        """Record a network whose subnet overlaps with those of earlier ones. On one VLAN, BMC and GW may share one."""
        subnet = self._subnets[name]
        others = [
            other
            for other in earlier
            if (self._subnets[other] in subnet or subnet in self._subnets[other])
            and not (self._may_share(name, other) and self.networks[name].vlan == self.networks[other].vlan)
        ]
        if others:
            self._left_out.subnets.update((name, *others))
            message = "subnet %s of network '%s' overlaps with %s: use separate subnets"
            names = " and ".join("%s of network '%s'" % (self._subnets[other], other) for other in others)
            self._mistakes.add(block.error(message % (subnet, name, names), "subnet"))

    @staticmethod
    def _may_share(first: str, second: str) -> bool:
        return {first, second} == {model.BMC, model.GW}

    def _add_subnet(self, name: str, block: Block) -> None:
        text = block.get("subnet") or model.SUBNETS.get(name)
        if not text:
            return
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
        kind = unusable(ipaddress.IPv4Network(text))
        if kind:
            message = (
                "subnet %s of network '%s' has %s addresses, which devices cannot have: use a private subnet such as "
            )
            raise block.error((message + "10.1.0.0/16") % (text, name, kind), "subnet")
        self._subnets[name] = subnet

    @staticmethod
    def _bad_subnet(block: Block, name: str, text: str) -> PodError:
        return block.error("invalid subnet '%s' of network '%s': use the form 10.1.0.0/16" % (text, name), "subnet")

    def interface(
        self,
        block: Block,
        owner: str | None,
        name: str,
        networks: tuple[str, ...],
        rack: int | None,
        unit: int | None,
        keys: tuple[str, str],
    ) -> model.Interface:
        """Return an interface with the address and MAC of ``keys`` in ``block``. Record their mistakes.

        ``owner`` is the name of the device, None for an invalid one.
        Without an address, the rule assigns one: the first address of the subnet, plus 256 × ``rack`` when the
        subnet is larger than /24, plus ``unit``. With ``rack`` or ``unit`` None, no address is assigned.
        """
        address_key, mac_key = keys
        label = "%s of '%s'" % (name, owner) if owner else name
        address = mac = None
        with self._mistakes.collect():
            address = self._interface_address(block, address_key, networks[0], label, rack, unit)
        if block.get(mac_key):
            with self._mistakes.collect():
                mac = self._mac(block, mac_key, block[mac_key], label)
        return model.Interface(name, networks, address, mac)

    def _interface_address(
        self, block: Block, key: str, network: str, label: str, rack: int | None, unit: int | None
    ) -> str | None:
        subnet, uncertain = self._subnets.get(network), network in self._left_out.subnets
        address = None
        if block.get(key):
            value = self._address(block, key, block[key], label)
            if subnet is None:
                message = "network '%s' has no subnet for address %s: set its subnet"
                raise block.error(message % (network, value), key).unless(uncertain)
            if value not in subnet or (subnet.size > 2 and int(value) in (subnet.first, subnet.last)):
                message = "address %s (%s) is outside subnet %s of network '%s': correct one of them"
                raise block.error(message % (value, label, subnet, network), key).unless(uncertain)
            address = str(value)
        elif subnet is not None and unit is not None and rack is not None and key not in block.invalid:
            address = self._assigned_address(subnet, network, rack, unit, label)
            uncertain = uncertain or (address is not None and self._is_assigned(address, network, rack, label))
        if address and not uncertain:
            self._addresses.take(address, label, block.error("", key))
        return address

    def _assigned_address(self, subnet: t.Any, network: str, rack: int, unit: int, label: str) -> str | None:
        """Return the address by rule, or None if the subnet does not contain it."""
        offset = unit if subnet.size <= 256 else 256 * rack + unit
        if offset < subnet.size - 1:
            return str(subnet[offset])
        cause = _TOO_SMALL
        self._shortages.setdefault((cause, network), []).append("number %d for %s" % (offset, label))
        return None

    def _is_assigned(self, address: str, network: str, rack: int, label: str) -> bool:
        """Return whether the rule assigns an address to another rack or network too."""
        other, other_rack, first = self._assigned.setdefault(address, (network, rack, label))
        if (other, other_rack) == (network, rack):
            return False
        cause = _SEVERAL_RACKS if other == network else _SHARED
        self._shortages.setdefault((cause, network), []).append("%s to %s and %s" % (address, first, label))
        return True

    def check_assigned(self) -> None:
        """Record the subnets in which the rule cannot assign an address to each device, each once."""
        for (cause, network), found in self._shortages.items():
            count = "1 address" if len(found) == 1 else "%d addresses" % len(found)
            subnet = self._subnets[network]
            place = (subnet,) if cause is _SHARED else (subnet, network)
            self._mistakes.add(self._blocks[network].error(cause % (*place, count, found[0]), "subnet"))
            self._left_out.subnets.add(network)

    def devices(self, first: str, last: str) -> list[str]:
        """Return the addresses of devices in a range, each with its interface, from the lowest up."""
        ends = ipaddress.IPv4Address(first), ipaddress.IPv4Address(last)
        used = {ipaddress.IPv4Address(value): owner for value, owner in self._addresses}
        return ["%s (%s)" % (each, used[each]) for each in sorted(used) if ends[0] <= each <= ends[1]]

    @staticmethod
    def _address(block: Block, key: str, text: str, label: str) -> t.Any:
        try:
            value = netaddr.IPAddress(text)
        except (netaddr.AddrFormatError, ValueError):
            remedy = "remove '/%s'" % text.partition("/")[2] if "/" in text else "use the form 10.1.0.1"
            raise block.error("'%s' (%s) is not an IPv4 address: %s" % (text, label, remedy), key) from None
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
