# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bond with VLANs on it: what is wanted of it, and which files say so to systemd-networkd or NetworkManager. Pure."""

from __future__ import annotations

import ipaddress
import re
import typing as t
import uuid
from dataclasses import dataclass

from ..reconcile import Family, Field, Mode, Object, SentenceError

# In this order the distributions' own and netplan's files, which begin with higher numbers, do not come first.
PREFIX = "05-openipu-"
_NAMESPACE = uuid.UUID("5a1f4d52-8c06-4a0b-9d52-6f9d3e2f4c11")  # so that a connection has the same id on every run

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
    """One VLAN of the bond; ``addresses`` with the length of the prefix, like 10.5.0.101/16."""

    name: str
    id: int
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bond:
    """What is wanted."""

    name: str
    members: tuple[str, ...]
    mode: str
    lacp_rate: str
    hash_policy: str
    mii_monitor: int  # ms
    mtu: int
    vlans: tuple[Vlan, ...]

    @property
    def made(self) -> list[str]:
        """The interfaces that come of it: the bond first."""
        return [self.name, *(vlan.name for vlan in self.vlans)]

    def objects(self) -> tuple[Object, list[Object]]:
        """The bond and its VLANs as the engine compares them with what runs."""
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


def wanted(params: Object, members: t.Sequence[str]) -> Bond:
    """The bond that the options ask for. Raises SentenceError."""
    name = params["name"]
    for interface in (name, *members):
        if not re.match(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$", interface):
            raise SentenceError("'%s' cannot be the name of an interface: it may have up to 15 letters." % interface)
    vlans: list[Vlan] = []
    for index, item in enumerate(params["vlans"]):
        if not 1 <= item["id"] <= 4094:
            raise SentenceError("vlans[%d] has id %d: VLANs are 1 to 4094." % (index, item["id"]))
        if item["id"] in [vlan.id for vlan in vlans]:
            raise SentenceError("VLAN %d stands twice in vlans: leave one out." % item["id"])
        addresses = tuple(_address(address, item["id"]) for address in item["addresses"] or ())
        vlans.append(Vlan("%s.%d" % (name, item["id"]), item["id"], addresses))
    told = {key: params[key] for key in ("mode", "lacp_rate", "hash_policy", "mii_monitor", "mtu")}
    return Bond(name=name, members=tuple(members), vlans=tuple(vlans), **told)


def _address(text: str, vlan: int) -> str:
    try:
        if "/" in text:
            return ipaddress.ip_interface(text).with_prefixlen
    except ValueError:
        pass
    raise SentenceError("'%s' of VLAN %d is no address with a prefix: write it like 10.5.0.101/16." % (text, vlan))


def networkd(bond: Bond) -> dict[str, str]:
    """The files of systemd-networkd, by name."""
    options: _Pairs = [("Mode", bond.mode), ("MIIMonitorSec", "%dms" % bond.mii_monitor)]
    if bond.mode == "802.3ad":
        options.append(("LACPTransmitRate", bond.lacp_rate))
    if bond.mode != "active-backup":
        options.append(("TransmitHashPolicy", bond.hash_policy))
    quiet: _Pairs = [("LinkLocalAddressing", "no"), ("IPv6AcceptRA", "no"), ("ConfigureWithoutCarrier", "yes")]
    trunk: _Pairs = quiet + [("VLAN", vlan.name) for vlan in bond.vlans]
    # The host is online when its own addresses are there; without any, when the bond has a port that is up.
    alone = not any(vlan.addresses for vlan in bond.vlans)
    stem = PREFIX + bond.name
    files = {
        stem + ".netdev": _ini([("NetDev", [("Name", bond.name), ("Kind", "bond")]), ("Bond", options)]),
        stem + ".network": _network(bond, bond.name, "carrier" if alone else "no", trunk),
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
    """The connections of NetworkManager, by the name of their file."""
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
