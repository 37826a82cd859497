# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bond with VLANs: the desired configuration, and its files for systemd-networkd and NetworkManager. No I/O."""

from __future__ import annotations

import ipaddress
import re
import typing as t
import uuid
from dataclasses import dataclass

from ..reconcile import Family, Field, Mode, Object, UserError

# The first matching file applies. Files of distributions and of netplan have higher numbers.
PREFIX = "05-openipu-"
_NAMESPACE = uuid.UUID("5a1f4d52-8c06-4a0b-9d52-6f9d3e2f4c11")  # gives a connection the same id in every run

_Pairs = list[tuple[str, t.Any]]
_Section = tuple[str, _Pairs]

FILE = Family("file", (Field("content"),), key="path")
SERVICE = Family("service", (Field("enabled"), Field("active")), key="name")
BOND = Family(
    "bond",
    (Field("mode"), Field("lacp_rate"), Field("hash_policy"), Field("mtu"), Field("members", Mode.SET)),
    key="name",
)
VLAN = Family("vlan", (Field("id"), Field("mtu"), Field("addresses", Mode.SET)), key="name")


@dataclass(frozen=True)
class Vlan:
    """One VLAN of the bond; ``addresses`` include the prefix length, like 10.5.0.101/16."""

    name: str
    id: int
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bond:
    """Desired bond with its VLANs."""

    name: str
    members: tuple[str, ...]
    mode: str
    lacp_rate: str
    hash_policy: str
    mii_monitor: int  # ms
    mtu: int
    vlans: tuple[Vlan, ...]

    @property
    def interfaces(self) -> list[str]:
        """Names of the interfaces that it creates, the bond first."""
        return [self.name, *(vlan.name for vlan in self.vlans)]

    def objects(self) -> tuple[Object, list[Object]]:
        """Return the bond and its VLANs in the form that the engine compares with the running ones."""
        bond: Object = {
            "name": self.name,
            "mode": self.mode,
            "lacp_rate": self.lacp_rate if self.mode == "802.3ad" else None,
            "hash_policy": self.hash_policy if self.mode != "active-backup" else None,
            "mtu": self.mtu,
            "members": list(self.members),
        }
        vlans: list[Object] = [
            {"name": vlan.name, "id": vlan.id, "mtu": self.mtu, "addresses": list(vlan.addresses)}
            for vlan in self.vlans
        ]
        return bond, vlans


def desired_bond(params: Object, members: t.Sequence[str]) -> Bond:
    """Return the bond that the options describe. Raises UserError for invalid names, VLANs and addresses."""
    name = params["name"]
    for interface in (name, *members):
        if not re.match(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$", interface):
            raise UserError(
                "Cannot use the interface name '%s': names have 1 to 15 letters, digits, '_', '.' and '-', and start "
                "with a letter or digit. Change it." % interface
            )
    vlans: list[Vlan] = []
    for index, item in enumerate(params["vlans"]):
        if not 1 <= item["id"] <= 4094:
            raise UserError("Cannot use id %d of vlans[%d]: it must be from 1 to 4094." % (item["id"], index))
        if item["id"] in [vlan.id for vlan in vlans]:
            raise UserError("Cannot configure VLAN %d twice. Remove one entry from vlans." % item["id"])
        addresses = tuple(_address(address, item["id"]) for address in item["addresses"] or ())
        vlans.append(Vlan("%s.%d" % (name, item["id"]), item["id"], addresses))
    settings = {key: params[key] for key in ("mode", "lacp_rate", "hash_policy", "mii_monitor", "mtu")}
    return Bond(name=name, members=tuple(members), vlans=tuple(vlans), **settings)


def _address(text: str, vlan: int) -> str:
    try:
        if "/" in text:
            return ipaddress.ip_interface(text).with_prefixlen
    except ValueError:
        pass
    raise UserError(
        "Cannot use address '%s' of VLAN %d: it is not an address with a prefix length. Write it like 10.5.0.101/16."
        % (text, vlan)
    )


def networkd(bond: Bond) -> dict[str, str]:
    """Return the files for systemd-networkd, by name."""
    options: _Pairs = [("Mode", bond.mode), ("MIIMonitorSec", "%dms" % bond.mii_monitor)]
    if bond.mode == "802.3ad":
        options.append(("LACPTransmitRate", bond.lacp_rate))
    if bond.mode != "active-backup":
        options.append(("TransmitHashPolicy", bond.hash_policy))
    quiet: _Pairs = [("LinkLocalAddressing", "no"), ("IPv6AcceptRA", "no"), ("ConfigureWithoutCarrier", "yes")]
    trunk: _Pairs = quiet + [("VLAN", vlan.name) for vlan in bond.vlans]
    # The host is online when the VLANs have their addresses; without addresses, when a port of the bond is up.
    no_addresses = not any(vlan.addresses for vlan in bond.vlans)
    stem = PREFIX + bond.name
    files = {
        stem + ".netdev": _ini([("NetDev", [("Name", bond.name), ("Kind", "bond")]), ("Bond", options)]),
        stem + ".network": _network(bond, bond.name, "carrier" if no_addresses else "no", trunk),
        stem + "-members.network": _network(bond, " ".join(bond.members), "no", [("Bond", bond.name)]),
    }
    for vlan in bond.vlans:
        addresses: _Pairs = quiet + [("Address", address) for address in vlan.addresses]
        kind: list[_Section] = [("NetDev", [("Name", vlan.name), ("Kind", "vlan")]), ("VLAN", [("Id", vlan.id)])]
        files[PREFIX + vlan.name + ".netdev"] = _ini(kind)
        online = "yes" if vlan.addresses else "no"
        files[PREFIX + vlan.name + ".network"] = _network(bond, vlan.name, online, addresses)
    return files


def _network(bond: Bond, names: str, online: str, network: _Pairs) -> str:
    link: _Section = ("Link", [("MTUBytes", bond.mtu), ("RequiredForOnline", online)])
    return _ini([("Match", [("Name", names)]), link, ("Network", network)])


def networkmanager(bond: Bond) -> dict[str, str]:
    """Return the connection files for NetworkManager, by name."""
    options: _Pairs = [("mode", bond.mode), ("miimon", bond.mii_monitor)]
    if bond.mode == "802.3ad":
        options.append(("lacp_rate", bond.lacp_rate))
    if bond.mode != "active-backup":
        options.append(("xmit_hash_policy", bond.hash_policy))
    mtu = ("ethernet", [("mtu", bond.mtu)])
    no_addresses = [("ipv4", [("method", "disabled")]), ("ipv6", [("method", "disabled")])]
    files = {bond.name: _ini([_connection(bond.name, "bond"), ("bond", options), mtu, *no_addresses])}
    for member in bond.members:
        port = _connection(member, "ethernet", [("master", bond.name), ("slave-type", "bond")])
        files["%s-%s" % (bond.name, member)] = _ini([port, mtu])
    for vlan in bond.vlans:
        families = [(n, [a for a in vlan.addresses if (":" in a) == (n == "ipv6")]) for n in ("ipv4", "ipv6")]
        sections = [
            (name, [("method", "manual"), *(("address%d" % n, a) for n, a in enumerate(addresses, 1))])
            if addresses
            else (name, [("method", "disabled")])
            for name, addresses in families
        ]
        kind = ("vlan", [("id", vlan.id), ("parent", bond.name)])
        files[vlan.name] = _ini([_connection(vlan.name, "vlan"), kind, mtu, *sections])
    return {"%s%s.nmconnection" % (PREFIX, name): text for name, text in files.items()}


def _connection(interface: str, kind: str, more: _Pairs | None = None) -> _Section:
    name = PREFIX + interface
    first = [("id", name), ("uuid", uuid.uuid5(_NAMESPACE, name)), ("type", kind), ("interface-name", interface)]
    return "connection", [*first, *(more or [])]


def _ini(sections: list[_Section]) -> str:
    text = "\n".join(
        "[%s]\n%s" % (name, "".join("%s=%s\n" % (key, value) for key, value in pairs)) for name, pairs in sections
    )
    return "# Written by openipu.pod.\n" + text
