# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the firewall of a host lets pass, by what the host is: the table of `filtering` as rules of nftables. Pure.

What comes in is refused unless a rule takes it. What goes out is refused on networks only for which the table says
where to, so a host that is nothing of a POD may still go anywhere.
"""

from __future__ import annotations

import ipaddress
import re
import typing as t

from . import model
from .filtering import (
    BOTH,
    DNS,
    MACHINE_EXPORTER,
    SSH,
    SYSLOG,
    Rule,
    anywhere,
    controller_bmc,
    controller_gw,
    controller_management,
    poplar_management,
    poplar_storage,
    rule,
    shell,
)
from .source import unknown

NETWORKS = (model.BMC, model.GW, model.MANAGEMENT, model.DATA, model.STORAGE)
DHCP, NTP, PRESENCE = 67, 123, 8091
OPEN: list[Rule] = [{"direction": "both"}]  # nothing is filtered

_INTERFACE = re.compile(r"[^\s\"/]{1,15}")
_PROTOCOLS = ("tcp", "udp")
_FAR = {"in": ("input", "saddr", "sources"), "out": ("output", "daddr", "destinations")}
Subnets = t.Mapping[str, t.Any]  # by network, the subnet or None
Peers = t.Mapping[str, t.Any]
_REFUSE = "reject with icmpx admin-prohibited"
_ANY = "0.0.0.0/0"  # stands for everybody in a remote, as in Neutron


def firewall(
    kinds: t.Sequence[str],
    networks: t.Mapping[str, t.Mapping[str, t.Any]],
    interfaces: t.Mapping[str, str],
    peers: t.Mapping[str, t.Any],
    allow: t.Sequence[t.Mapping[str, t.Any]] = (),
) -> dict[str, list[str]]:
    """The rules of a host, ``{"input": […], "output": […]}``, each a line as nft reads it.

    ``kinds`` is what the host is (`KINDS`), ``networks`` has the ``subnet`` of each, ``interfaces`` the interface that
    the host has in each: a network is told by either or both. ``peers`` tells who else there is: ``dns_servers``,
    ``management_servers``, ``nfs_servers``, ``controllers``, ``poplar_servers`` (addresses or subnets), ``agent_port``,
    ``controller_port``. ``allow`` lets more pass: ``ports``, and perhaps ``direction`` (in), ``protocol`` (tcp),
    ``network``, ``sources`` or, of what goes out, ``destinations`` (addresses or subnets), and ``why``. Raises
    ValueError with a sentence.
    """
    places = {name: _place(name, networks, interfaces) for name in NETWORKS}
    for kind in kinds:
        _check_reached(kind, places)
    lines: dict[str, list[str]] = {"input": [], "output": []}
    refused = []  # after all that may go out
    free, bound = set(), []  # networks of which nothing, or something, says where one may go
    for name, place in places.items():
        tables = [table for kind in kinds if (table := KINDS[kind](name, _subnets(networks), peers)) is not None]
        if not tables or place is None:
            continue
        rules = [each for table in tables if table is not OPEN for each in table]
        for each in rules:
            _append(lines, name, place, each)
        if OPEN in tables:
            for chain, match in place.items():
                lines[chain].append('%s accept comment "%s: not filtered"' % (match, name))
            free.add(name)
        elif any(each["direction"] == "egress" and "protocol" not in each for each in rules):
            free.add(name)
        else:
            bound.append(name)
            refused.append('%s %s comment "%s: no more"' % (place["output"], _REFUSE, name))
    # The table is about IPv4: where all is bound to it, nothing goes out by IPv6 either.
    refused += [
        'oifname "%s" meta nfproto ipv6 %s' % (interface, _REFUSE)
        for interface in dict.fromkeys(interfaces[name] for name in bound if name in interfaces)
        if interface not in {interfaces.get(name) for name in free}
    ]
    for number, asked in enumerate(allow, 1):
        _append_asked(lines, places, number, asked)
    lines["output"] += refused
    return {chain: list(dict.fromkeys(made)) for chain, made in lines.items()}


def _controller(network: str, subnets: Subnets, peers: Peers) -> list[Rule] | None:
    if network == model.BMC:
        return controller_bmc(subnets[network], _hosts(peers, "dns_servers"))
    if network == model.GW:
        rules = controller_gw(
            subnets[network], peers["agent_port"], _hosts(peers, "management_servers"), _hosts(peers, "dns_servers")
        )
        return rules + _presence(subnets[network])
    if network == model.MANAGEMENT:
        poplars, servers = _remotes(peers, "poplar_servers", subnets), _hosts(peers, "management_servers")
        return _all(controller_management(peers["controller_port"], {"remote": who}, servers) for who in poplars)
    return None


def _poplar(network: str, subnets: Subnets, peers: Peers) -> list[Rule] | None:
    if network == model.MANAGEMENT:
        return _all(poplar_management({"remote": who}) for who in _remotes(peers, "controllers", subnets))
    if network == model.DATA:
        return OPEN
    if network == model.STORAGE:
        # Without one that is known, any may be meant: what goes out to storage is left alone.
        return poplar_storage(_hosts(peers, "nfs_servers")) or None
    return None


def _management(network: str, subnets: Subnets, peers: Peers) -> list[Rule] | None:
    """The one that serves leases, names, time and a place for logs to a stand-alone POD."""
    if network == model.STORAGE:
        return None
    subnet = subnets[network]
    # Who asks for a lease has no address yet, and calls everybody.
    rules = [*anywhere(), {**rule("ingress", "udp", DHCP, description="leases"), "to_all": True}]
    rules += [rule("ingress", protocol, DNS, subnet, description="names") for protocol in BOTH]
    rules += [rule("ingress", "udp", NTP, subnet, description="time")]
    if network in (model.BMC, model.GW, model.MANAGEMENT):
        rules += [rule("ingress", protocol, SYSLOG, subnet, description="logs") for protocol in BOTH]
    return [*rules, shell()] if network == model.MANAGEMENT else rules


def _agent(network: str, subnets: Subnets, peers: Peers) -> list[Rule] | None:
    """A host that runs an agent: the other end of what a controller may. The GW network may be the only one it has."""
    if network != model.GW:
        return None
    subnet = subnets[network]
    rules = [*anywhere(), rule("ingress", "icmp", remote=subnet, description="reachability")]
    return rules + [
        rule("ingress", "tcp", port, subnet, description=what)
        for port, what in ((SSH, "shell"), (MACHINE_EXPORTER, "metrics"), (peers["agent_port"], "V-IPU agent"))
    ]


def _presence(gateways: str | None) -> list[Rule]:
    """Agents tell of themselves by multicast, which switches bring to those who ask for it."""
    rules = [rule(direction, "igmp", description="multicast") for direction in ("ingress", "egress")]
    rules.append(rule("ingress", "udp", PRESENCE, gateways, description="presence of agents"))
    return [{**each, "to_all": True} for each in rules]


KINDS: dict[str, t.Callable[[str, Subnets, Peers], t.Any]] = {
    "controller": _controller,
    "poplar": _poplar,
    "management": _management,
    "agent": _agent,
}


# On which network it is managed: without it, nobody would come in any more.
_REACHED_ON = {"agent": model.GW}  # others on the management network


def _check_reached(kind: str, places: t.Mapping[str, t.Any]) -> None:
    if kind not in KINDS:
        raise ValueError(unknown("kind of host", kind, KINDS))
    network = _REACHED_ON.get(kind, model.MANAGEMENT)
    if places[network] is None:
        raise ValueError(
            "network '%s', on which a host of kind '%s' is reached, has neither a subnet nor an interface here: "
            "give it one of them" % (network, kind)
        )


def _all(tables: t.Iterable[list[Rule]]) -> list[Rule]:
    return [each for table in tables for each in table]


def _subnets(networks: t.Mapping[str, t.Mapping[str, t.Any]]) -> Subnets:
    return {name: (networks.get(name) or {}).get("subnet") for name in NETWORKS}


def _hosts(peers: Peers, what: str) -> list[str]:
    return list(peers.get(what) or [])


def _remotes(peers: Peers, what: str, subnets: Subnets) -> list[str]:
    """Who these are: told, or else everybody on the management network."""
    return _hosts(peers, what) or [subnets[model.MANAGEMENT] or _ANY]


def _place(
    name: str, networks: t.Mapping[str, t.Mapping[str, t.Any]], interfaces: t.Mapping[str, str]
) -> dict[str, str] | None:
    """How packets of a network are told, by chain; None when they cannot be."""
    subnet, interface = _subnets(networks)[name], interfaces.get(name)
    if interface is not None and not _INTERFACE.fullmatch(interface):
        raise ValueError("'%s' is no name of an interface, which network '%s' is given: correct it" % (interface, name))
    if subnet is not None:
        subnet = str(_network(subnet, "network '%s'" % name))
    if not (interface or subnet):
        return None
    own = {"input": ("iifname", "daddr"), "output": ("oifname", "saddr")}
    return {
        chain: " ".join(
            ['%s "%s"' % (device, interface)] * bool(interface) + ["ip %s %s" % (address, subnet)] * bool(subnet)
        )
        for chain, (device, address) in own.items()
    }


def _append(lines: dict[str, list[str]], network: str, place: t.Mapping[str, str], each: Rule) -> None:
    """One rule as a line of its chain."""
    if each.get("ethertype") == "IPv6":
        return  # networks of a POD are told by IPv4 subnets, and IPv6 is left to what is open to all
    chain, far = ("input", "saddr") if each["direction"] == "ingress" else ("output", "daddr")
    match = place[chain]
    if each.get("to_all"):  # and to no address of the host: only its interface tells the network
        match = match.partition("ip ")[0].rstrip()
    parts = [match]
    if each.get("remote", _ANY) != _ANY:
        parts.append("ip %s %s" % (far, each["remote"]))
    if each.get("port"):
        parts.append("%s dport %d" % (each["protocol"], each["port"]))
    elif each.get("protocol"):
        parts.append("meta l4proto %s" % each["protocol"])
    what = each.get("description")
    parts.append('accept comment "%s%s"' % (network, ": %s" % what if what else ""))
    lines[chain].append(" ".join(part for part in parts if part))


def _append_asked(
    lines: dict[str, list[str]],
    places: t.Mapping[str, t.Mapping[str, str] | None],
    number: int,
    asked: t.Mapping[str, t.Any],
) -> None:
    """What a site lets pass beside the table."""
    where = "rule %d of what else may pass" % number
    direction, protocol, network = asked.get("direction") or "in", asked.get("protocol") or "tcp", asked.get("network")
    if direction not in _FAR:
        raise ValueError("%s: %s" % (where, unknown("direction", direction, _FAR)))
    chain, far, who = _FAR[direction]
    wrong = "sources" if who == "destinations" else "destinations"
    if asked.get(wrong):
        raise ValueError("%s: what goes %s has %s, and no %s: correct it" % (where, direction, who, wrong))
    if protocol not in _PROTOCOLS:
        raise ValueError("%s: %s" % (where, unknown("protocol", protocol, _PROTOCOLS)))
    if network is not None and network not in places:
        raise ValueError("%s: %s" % (where, unknown("network", network, places)))
    if network is not None and places[network] is None:
        raise ValueError(
            "%s: network '%s' has neither a subnet nor an interface here: give it one of them" % (where, network)
        )
    ports = [int(port) for port in asked["ports"]]
    if not ports or not all(0 < port < 65536 for port in ports):
        raise ValueError("%s: ports are numbers from 1 to 65535, and at least one is needed" % where)
    why = str(asked.get("why") or "asked for")
    if not re.fullmatch(r"[^\"\\\x00-\x1f]{1,60}", why):
        raise ValueError('%s: why is at most 60 characters without \\ and "' % where)
    place = places[network] if network is not None else None
    for each in asked.get(who) or [_ANY]:
        remote = _network(each, where)
        parts = [place[chain]] if place else []
        if str(remote) != _ANY:
            parts.append("%s %s %s" % ("ip" if remote.version == 4 else "ip6", far, remote))
        parts.append("%s dport { %s }" % (protocol, ", ".join(map(str, ports))))
        lines[chain].append('%s accept comment "%s"' % (" ".join(parts), why))


def _network(text: str, where: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise ValueError("%s: '%s' is no address or subnet such as 10.2.0.0/16: correct it" % (where, text)) from None
