# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DHCP and DNS data that one host serves to the networks of a POD: leases, names, zones. No I/O.

It combines ``network_services`` of the POD, the settings of the host, and its Ansible facts.
"""

from __future__ import annotations

import ipaddress
import re
import typing as t

from .mistakes import unknown
from .openstack_networks import dns_name

Config = dict[str, t.Any]
Row = t.Mapping[str, t.Any]

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_MAC = re.compile(r"[0-9a-f][02468ace](:[0-9a-f]{2}){5}")
_EVERYWHERE = ipaddress.IPv4Network("0.0.0.0/0")
_SUGGESTED = 101  # the number of the first server in the reference design


def serve(
    services: Row, host: str, facts: Row, networks: t.Mapping[str, Row], more: t.Sequence[Row], domain: str
) -> Config:
    """Return the DHCP and DNS data that ``host`` serves.

    ``services`` is the result of ``network_services`` and ``facts`` are the Ansible facts of the host.
    ``networks`` has the settings by network (``interface``; optional ``gateway``, ``mtu`` in bytes, ``dns_servers``,
    ``ntp_servers``). ``more`` are hosts outside the POD, in the same format.

    The result has these keys:

    * ``problems``: messages; with any of them, the other values are incomplete
    * ``domain``
    * ``networks``: each with ``name``, ``interface``, ``subnet``, ``start``, ``netmask``, ``address``, ``gateway`` and
      ``mtu`` or None, ``dns_servers``, ``ntp_servers``
    * ``leases``: each with ``mac``, ``address``, ``name``
    * ``names``: each with ``address``, ``names``
    * ``zones`` for which the host is authoritative
    """
    problems = [] if _is_domain(domain) else ["'%s' is not a DNS domain such as pod64.example: correct it" % domain]
    served = []
    for name, settings in networks.items():
        try:
            served.append(_network(name, settings, services["networks"], host, facts))
        except ValueError as error:
            problems.append(str(error))
    hosts = [*services["hosts"], *_own(host, served, services["hosts"])]
    for row in more:
        try:
            hosts.append(_additional_host(row, services["networks"]))
        except ValueError as error:
            problems.append(str(error))
    problems += _duplicates(hosts)
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
    """Return the zones under in-addr.arpa that cover a subnet exactly."""
    network = ipaddress.IPv4Network(subnet)
    octets = max(1, -(-network.prefixlen // 8))
    parts = network.subnets(new_prefix=8 * octets)
    return ["%s.in-addr.arpa" % ".".join(reversed(str(part[0]).split(".")[:octets])) for part in parts]


def _is_domain(text: str) -> bool:
    return len(text) <= 253 and all(_LABEL.fullmatch(label) for label in text.split("."))


def _network(name: str, settings: Row, known: t.Mapping[str, Row], host: str, facts: Row) -> Config:
    """Return one network with the address of the host in it. Raises ValueError with a message for users."""
    if name not in known:
        raise ValueError(
            "%s with a subnet; set its subnet in pod.yml, or remove the network" % unknown("network", name, known)
        )
    subnet = ipaddress.IPv4Network(known[name]["subnet"])
    address = _address(name, settings["interface"], subnet, host, facts)
    gateway = settings.get("gateway") or known[name].get("gateway")
    if gateway and not _inside(gateway, subnet):
        message = "gateway %s of network '%s' is outside its subnet %s: correct one of them"
        raise ValueError(message % (gateway, name, subnet))
    servers_by_key = {key: list(settings.get(key) or [address]) for key in ("dns_servers", "ntp_servers")}
    for key, servers in servers_by_key.items():
        for server in servers:
            if not _inside(server, _EVERYWHERE):
                raise ValueError("'%s' in %s of network '%s' is not an IPv4 address: correct it" % (server, key, name))
    return {
        "name": name,
        "interface": settings["interface"],
        "subnet": str(subnet),
        "start": str(subnet.network_address),
        "netmask": str(subnet.netmask),
        "address": address,
        "gateway": gateway,
        "mtu": settings.get("mtu") or known[name].get("mtu"),
        **servers_by_key,
    }


def _address(network: str, interface: str, subnet: ipaddress.IPv4Network, host: str, facts: Row) -> str:
    """Return the first address of the interface in the subnet. Raises ValueError with a message for users."""
    known = facts.get("interfaces", [])
    if interface not in known:
        message = "network '%s' uses interface '%s', which %s does not have: choose from %s"
        raise ValueError(message % (network, interface, host, ", ".join(sorted(known))))
    # Names of facts replace some characters of the interface name.
    fact = next((f for f in facts.values() if isinstance(f, t.Mapping) and f.get("device") == interface), {})
    primary = fact.get("ipv4") or {}
    addresses = [a["address"] for a in [primary, *fact.get("ipv4_secondaries", [])] if a.get("address")]
    for address in addresses:
        if _inside(address, subnet):
            return str(address)
    message = "network '%s' uses interface '%s' of %s, which has no address in %s (%s): add one such as %s"
    found = "it has %s" % ", ".join(addresses) if addresses else "it has none"
    raise ValueError(message % (network, interface, host, subnet, found, _suggestion(subnet)))


def _suggestion(subnet: ipaddress.IPv4Network) -> ipaddress.IPv4Address:
    number = _SUGGESTED if subnet.num_addresses <= 256 else 256 + _SUGGESTED
    return subnet[min(number, subnet.num_addresses - 2)]


def _inside(address: str, subnet: ipaddress.IPv4Network) -> bool:
    try:
        return ipaddress.IPv4Address(address) in subnet
    except ValueError:
        return False


def _own(host: str, served: t.Iterable[Row], hosts: t.Sequence[Row]) -> list[Row]:
    """Return the addresses of this host that are not in the POD, with names in the same form."""
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


def _additional_host(row: Row, networks: t.Mapping[str, Row]) -> Config:
    """Return a host outside the POD. Raises ValueError with a message for users."""
    names = [row["name"], *(row.get("aliases") or [])]
    for name in names:
        if not _LABEL.fullmatch(name):
            raise ValueError("'%s' is not a host name: use lower case letters, digits and '-', without a dot" % name)
    if row["network"] not in networks:
        raise ValueError("host '%s': %s" % (names[0], unknown("network", row["network"], networks)))
    subnet = networks[row["network"]]["subnet"]
    if not _inside(row["address"], ipaddress.IPv4Network(subnet)):
        message = "address %s of host '%s' is outside subnet %s of network '%s': correct one of them"
        raise ValueError(message % (row["address"], names[0], subnet, row["network"]))
    mac = (row.get("mac") or "").lower().replace("-", ":")
    if mac and not _MAC.fullmatch(mac):
        raise ValueError("'%s' of host '%s' is not a MAC: use the form 0c:42:a1:00:00:01" % (row["mac"], names[0]))
    return {**row, "device": names[0], "aliases": names[1:], "mac": mac}


def _duplicates(hosts: t.Iterable[Row]) -> list[str]:
    """Return a message for each name, address and MAC of two hosts."""
    problems = []
    owners: dict[tuple[str, str], str] = {}
    for row in hosts:
        label = "'%s' (%s)" % (row["name"], row["address"])
        values = [("name", name) for name in (row["name"], *row["aliases"])]
        values += [(kind, row[key]) for kind, key in (("address", "address"), ("MAC", "mac")) if row.get(key)]
        for each in values:
            if each in owners:
                problems.append("%s %s is used by both %s and %s: use different values" % (*each, owners[each], label))
            owners[each] = label
    return problems
