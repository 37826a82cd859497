# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one host is to serve to the networks of a POD: leases, names, zones. Pure.

It joins three things: ``services.network_services`` of the POD, what was asked of the host, and the facts that Ansible
gathered of its interfaces.
"""

from __future__ import annotations

import ipaddress
import re
import typing as t

from .networking import dns_name
from .source import unknown

Config = dict[str, t.Any]
Row = t.Mapping[str, t.Any]

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_MAC = re.compile(r"[0-9a-f][02468ace](:[0-9a-f]{2}){5}")
_EVERYWHERE = ipaddress.IPv4Network("0.0.0.0/0")
_SUGGESTED = 101  # the number of the first server in the reference design


def serve(
    services: Row, host: str, facts: Row, networks: t.Mapping[str, Row], more: t.Sequence[Row], domain: str
) -> Config:
    """What ``host`` is to serve.

    ``services`` is what ``services.network_services`` made, ``facts`` what Ansible knows of the interfaces of the host,
    ``networks`` by name what is asked of it (``interface``; perhaps ``gateway``, ``mtu`` in bytes, ``dns_servers``,
    ``ntp_servers``), ``more`` hosts beside those of the POD, in the same shape.

    The result has ``problems`` (sentences; where there are some, the rest is of no use), ``domain``, ``networks`` (each
    with ``name``, ``interface``, ``subnet``, ``start``, ``netmask``, ``address``, ``gateway`` and ``mtu`` or None,
    ``dns_servers``, ``ntp_servers``), ``leases`` (``mac``, ``address``, ``name``), ``names`` (``address``, ``names``)
    and ``zones``, which are answered for here and nowhere else.
    """
    problems = [] if _is_domain(domain) else ["'%s' is no DNS domain such as pod64.example: give another" % domain]
    served = []
    for name, asked in networks.items():
        try:
            served.append(_network(name, asked, services["networks"], host, facts))
        except ValueError as error:
            problems.append(str(error))
    hosts = [*services["hosts"], *_own(host, served, services["hosts"])]
    for row in more:
        try:
            hosts.append(_more(row, services["networks"]))
        except ValueError as error:
            problems.append(str(error))
    problems += _twice(hosts)
    names = {network["name"] for network in served}
    return {
        "problems": problems,
        "domain": domain,
        "networks": served,
        "leases": [
            {key: row[key] for key in ("mac", "address", "name")}
            for row in hosts
            if row.get("mac") and row["network"] in names and row["device"] != host
        ],
        "names": [{"address": row["address"], "names": [row["name"], *row["aliases"]]} for row in hosts],
        "zones": [
            domain,
            *dict.fromkeys(zone for each in services["networks"].values() for zone in reverse_zones(each["subnet"])),
        ],
    }


def reverse_zones(subnet: str) -> list[str]:
    """The zones under in-addr.arpa that hold the addresses of a subnet and no others."""
    network = ipaddress.IPv4Network(subnet)
    octets = max(1, -(-network.prefixlen // 8))
    parts = network.subnets(new_prefix=8 * octets)
    return ["%s.in-addr.arpa" % ".".join(reversed(str(part[0]).split(".")[:octets])) for part in parts]


def _is_domain(text: str) -> bool:
    return len(text) <= 253 and all(_LABEL.fullmatch(label) for label in text.split("."))


def _network(name: str, asked: Row, known: t.Mapping[str, Row], host: str, facts: Row) -> Config:
    """One network with the address that the host has in it. Raises ValueError with a sentence."""
    if name not in known:
        raise ValueError(
            "%s with a subnet; give it one in pod.yml, or do not serve it" % unknown("network", name, known)
        )
    subnet = ipaddress.IPv4Network(known[name]["subnet"])
    address = _address(name, asked["interface"], subnet, host, facts)
    gateway = asked.get("gateway") or known[name].get("gateway")
    if gateway and not _inside(gateway, subnet):
        sentence = "gateway %s of network '%s' is outside its subnet %s: correct one of them"
        raise ValueError(sentence % (gateway, name, subnet))
    told = {key: list(asked.get(key) or [address]) for key in ("dns_servers", "ntp_servers")}
    for key, servers in told.items():
        for server in servers:
            if not _inside(server, _EVERYWHERE):
                raise ValueError("'%s' in %s of network '%s' is not an IPv4 address" % (server, key, name))
    return {
        "name": name,
        "interface": asked["interface"],
        "subnet": str(subnet),
        "start": str(subnet.network_address),
        "netmask": str(subnet.netmask),
        "address": address,
        "gateway": gateway,
        "mtu": asked.get("mtu") or known[name].get("mtu"),
        **told,
    }


def _address(network: str, interface: str, subnet: ipaddress.IPv4Network, host: str, facts: Row) -> str:
    """The first address of an interface that is in the subnet."""
    known = facts.get("interfaces", [])
    if interface not in known:
        sentence = "network '%s' is to be served on interface '%s', which %s does not have: it has %s"
        raise ValueError(sentence % (network, interface, host, ", ".join(sorted(known))))
    # Ansible puts other characters for some in the name of the fact.
    fact = next((f for f in facts.values() if isinstance(f, t.Mapping) and f.get("device") == interface), {})
    primary = fact.get("ipv4") or {}
    addresses = [a["address"] for a in [primary, *fact.get("ipv4_secondaries", [])] if a.get("address")]
    for address in addresses:
        if _inside(address, subnet):
            return str(address)
    sentence = (
        "network '%s' is to be served on interface '%s' of %s, which has no address in %s (%s): give it one such as %s"
    )
    found = "it has %s" % ", ".join(addresses) if addresses else "it has none at all"
    raise ValueError(sentence % (network, interface, host, subnet, found, _suggestion(subnet)))


def _suggestion(subnet: ipaddress.IPv4Network) -> ipaddress.IPv4Address:
    number = _SUGGESTED if subnet.num_addresses <= 256 else 256 + _SUGGESTED
    return subnet[min(number, subnet.num_addresses - 2)]


def _inside(address: str, subnet: ipaddress.IPv4Network) -> bool:
    try:
        return ipaddress.IPv4Address(address) in subnet
    except ValueError:
        return False


def _own(host: str, served: t.Iterable[Row], hosts: t.Sequence[Row]) -> list[Row]:
    """The addresses of this host that the POD does not know, under names like those that it does."""
    known = {row["address"] for row in hosts if row["device"] == host}
    return [
        {
            "device": host,
            "name": dns_name(host, network["name"]),
            "aliases": [],
            "network": network["name"],
            "address": network["address"],
        }
        for network in served
        if network["address"] not in known
    ]


def _more(row: Row, networks: t.Mapping[str, Row]) -> Config:
    """A host beside those of the POD. Raises ValueError with a sentence."""
    names = [row["name"], *(row.get("aliases") or [])]
    for name in names:
        if not _LABEL.fullmatch(name):
            raise ValueError("'%s' is no host name: lower case letters, digits and '-', without a dot" % name)
    if row["network"] not in networks:
        raise ValueError("host '%s': %s" % (names[0], unknown("network", row["network"], networks)))
    subnet = networks[row["network"]]["subnet"]
    if not _inside(row["address"], ipaddress.IPv4Network(subnet)):
        sentence = "address %s of host '%s' is outside subnet %s of network '%s': correct one of them"
        raise ValueError(sentence % (row["address"], names[0], subnet, row["network"]))
    mac = (row.get("mac") or "").lower().replace("-", ":")
    if mac and not _MAC.fullmatch(mac):
        raise ValueError("'%s' of host '%s' is not a MAC such as 0c:42:a1:00:00:01" % (row["mac"], names[0]))
    return {**row, "device": names[0], "aliases": names[1:], "mac": mac}


def _twice(hosts: t.Iterable[Row]) -> list[str]:
    """What is given to two hosts at once."""
    problems = []
    owners: dict[tuple[str, str], str] = {}
    for row in hosts:
        label = "'%s' (%s)" % (row["name"], row["address"])
        given = [("name", name) for name in (row["name"], *row["aliases"])]
        given += [(what, row[key]) for what, key in (("address", "address"), ("MAC", "mac")) if row.get(key)]
        for each in given:
            if each in owners:
                problems.append("%s %s is given to both %s and %s: give each its own" % (*each, owners[each], label))
            owners[each] = label
    return problems
