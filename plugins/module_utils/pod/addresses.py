# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names, addresses and MACs of a POD: their rules, and that each is given once."""

from __future__ import annotations

import re
import typing as t

from . import model, spec
from .source import Block, PodError

try:
    import netaddr

    HAS_NETADDR = True
except ImportError:
    HAS_NETADDR = False

# Machines and objects of the controller: what it accepts as an id.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,62}")


def check_name(block: Block, key: str, what: str) -> str:
    """A name or an id; raises PodError."""
    name = block[key]
    if not _NAME.fullmatch(name):
        raise block.error("%s '%s': a name is 1 to 63 letters, digits, '.', '_' or '-'" % (what, name), key)
    return str(name)


class Once:
    """Values that may be given once, and where they were."""

    def __init__(self, what: str) -> None:
        """``what`` is the field's name for the values."""
        self.what = what
        self._places: dict[str, tuple[str | None, PodError]] = {}

    def take(self, value: str, owner: str | None, place: PodError) -> None:
        """Note the owner of a value, None when the value is its name, and the field says of what.

        ``place`` is an (unworded) error where it stands. Raises PodError.
        """
        first = self._places.setdefault(value, (owner, place))
        if first[1] is not place:
            other, there = first
            where = "line %d" % there.line if there.file == place.file and there.line else there.place
            if owner is None:
                here = "line %d" % place.line if place.line else "here"
                sentence = "%s '%s' stands twice, in %s and %s: give each a name of its own"
                raise PodError(place.file, place.line, sentence % (self.what, value, where, here))
            sentence = "%s %s is given to both %s (%s) and %s: give each its own"
            raise PodError(place.file, place.line, sentence % (self.what, value, other, where, owner))


class Plan:
    """The networks of a POD, and the addresses and MACs that were given out."""

    def __init__(self, top: Block) -> None:
        """Read the key ``networks``. Raises PodError."""
        if not HAS_NETADDR:
            raise top.error("the Python library netaddr is needed to read it: install netaddr")
        self.networks: dict[str, model.Network] = {}
        self._subnets: dict[str, t.Any] = {}
        self._addresses = Once("address")
        self._macs = Once("MAC")
        self._names = Once("name")
        nothing = Block(top.file, top.line)
        given = spec.NETWORKS.check(top["networks"] or nothing)
        for name, vlan in model.VLANS.items():
            block = spec.NETWORK.check(given[name] or nothing)
            self._add(name, block, vlan)

    def _add(self, name: str, block: Block, vlan: int) -> None:
        vlan = vlan if block.get("vlan") is None else block["vlan"]
        if not 1 <= vlan <= 4094:
            raise block.error("VLAN %d of network '%s': VLANs are 1 to 4094" % (vlan, name), "vlan")
        text = block.get("subnet") or model.SUBNETS.get(name)
        if text:
            try:
                subnet = netaddr.IPNetwork(text)
            except (netaddr.AddrFormatError, ValueError):
                raise self._bad_subnet(block, name, text) from None
            if subnet.version != 4 or "/" not in text:
                raise self._bad_subnet(block, name, text)
            if subnet.ip != subnet.network:
                sentence = "subnet %s of network '%s' starts in its middle: did you mean %s?"
                raise block.error(sentence % (text, name, subnet.cidr), "subnet")
            self._subnets[name] = subnet
            text = str(subnet)
        self.networks[name] = model.Network(name, vlan, text)

    @staticmethod
    def _bad_subnet(block: Block, name: str, text: str) -> PodError:
        return block.error("subnet '%s' of network '%s' is not of the form 10.1.0.0/16" % (text, name), "subnet")

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
        """An interface with the address and MAC that stand in ``block`` under ``keys``.

        Without an address there, the rule gives one: the subnet's first address, plus 256 × ``rack``
        where the subnet is larger than one rack's (/24), plus ``unit``. ``unit`` None asks for none.
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
                    "network '%s' has no subnet for address %s: give it one" % (network, value), address_key
                )
            if value not in subnet or (subnet.size > 2 and int(value) in (subnet.first, subnet.last)):
                sentence = "address %s (%s) is outside subnet %s of network '%s': correct one of them"
                raise block.error(sentence % (value, label, subnet, network), address_key)
            address = str(value)
        elif subnet is not None and unit is not None:
            address = self._by_rule(block, subnet, network, rack, unit, label)
        if address:
            self._addresses.take(address, label, block.error("", address_key))
        mac = block.get(mac_key)
        if mac:
            mac = self._mac(block, mac_key, mac, label)
        return model.Interface(name, networks, address, mac)

    @staticmethod
    def _by_rule(block: Block, subnet: t.Any, network: str, rack: int, unit: int, label: str) -> str:
        offset = unit if subnet.size <= 256 else 256 * rack + unit
        if offset >= subnet.size - 1:
            sentence = "subnet %s of network '%s' has no address number %d for %s: use a larger one, or lower numbers"
            raise block.error(sentence % (subnet, network, offset, label))
        return str(subnet[offset])

    @staticmethod
    def _address(block: Block, key: str, text: str, label: str) -> t.Any:
        try:
            value = netaddr.IPAddress(text)
        except (netaddr.AddrFormatError, ValueError):
            raise block.error("'%s' (%s) is not an IPv4 address" % (text, label), key) from None
        if value.version != 4:
            raise block.error("'%s' (%s) is not an IPv4 address" % (text, label), key)
        return value

    def _mac(self, block: Block, key: str, text: str, label: str) -> str:
        try:
            value = netaddr.EUI(text, version=48, dialect=netaddr.mac_unix_expanded)
        except (netaddr.AddrFormatError, ValueError, TypeError):
            raise block.error("'%s' (%s) is not a MAC such as 0c:42:a1:00:00:01" % (text, label), key) from None
        if not int(value) or value.words[0] & 1:
            raise block.error("MAC %s (%s) cannot be that of one device" % (value, label), key)
        self._macs.take(str(value), label, block.error("", key))
        return str(value)

    def device(self, block: Block, what: str) -> str:
        """The name of a device; every device of the POD has its own. Raises PodError."""
        name = check_name(block, "name", what)
        self._names.take(name, "this %s" % what, block.error("", "name"))
        return name
