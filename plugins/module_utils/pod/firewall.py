# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Firewall of a host by its kinds: the table of `allowed_traffic` as nftables rules. No I/O.

Incoming traffic is blocked unless a rule accepts it. Outgoing traffic is rejected only on networks for which the
table has destinations, so other hosts may connect to any address.
"""

from __future__ import annotations

import ipaddress
import re
import typing as t

from ..vipu.ports import DISCOVERY_PORT
from . import model
from .allowed_traffic import (
    BOTH,
    DNS,
    MACHINE_EXPORTER,
    SSH,
    SYSLOG,
    Rule,
    allow_all_egress,
    control_instance_bmc,
    control_instance_gw,
    controller_bmc,
    controller_gw,
    controller_management,
    poplar_management,
    poplar_storage,
    rule,
    shell,
)
from .mistakes import unknown

NETWORKS = (model.BMC, model.GW, model.MANAGEMENT, model.DATA, model.STORAGE)
DHCP, NTP = 67, 123
OPEN: list[Rule] = [{"direction": "both"}]  # all traffic is accepted

_INTERFACE = re.compile(r"[^\s\"/]{1,15}")
_PROTOCOLS = ("tcp", "udp")
_FAR = {"in": ("input", "saddr", "sources"), "out": ("output", "daddr", "destinations")}
Subnets = t.Mapping[str, t.Any]  # by network, the subnet or None
Peers = t.Mapping[str, t.Any]
_REJECT = "reject with icmpx admin-prohibited"
_ANY = "0.0.0.0/0"  # any address as a remote, as in Neutron


def firewall(
    kinds: t.Sequence[str],
    networks: t.Mapping[str, t.Mapping[str, t.Any]],
    interfaces: t.Mapping[str, str],
    peers: t.Mapping[str, t.Any],
    allow: t.Sequence[t.Mapping[str, t.Any]] = (),
    forward: t.Sequence[str] = (),
) -> dict[str, list[str]]:
    """Return the rules of a host as ``{"input": […], "output": […], "forward": […]}``, each rule a line for nft.

    ``kinds`` are keys of `KINDS`. A network is matched by its ``subnet`` in ``networks``, by the interface of the host
    in ``interfaces``, or by both. ``peers`` are the other hosts: ``dns_servers``, ``management_servers``,
    ``nfs_servers``, ``controllers``, ``poplar_servers`` (addresses or subnets), ``agent_port``, ``controller_port``.
    ``allow`` are further rules: ``ports``, and optionally ``direction`` (default in), ``protocol`` (default tcp),
    ``network`` and ``comment``. Incoming rules can have ``sources``, and outgoing rules ``destinations`` (addresses or
    subnets). ``forward`` are interfaces whose packets the host may forward; a ``*`` at the end matches any rest.
    Raises ValueError with a message for users.
    """
    places = {name: _place(name, networks, interfaces) for name in NETWORKS}
    for kind in kinds:
        _check_management_network(kind, places)
    lines: dict[str, list[str]] = {"input": [], "output": []}
    rejected = []  # rules at the end of the output chain
    free, bound = set(), []  # networks without and with restrictions of outgoing traffic
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
            rejected.append('%s %s comment "%s: reject the rest"' % (place["output"], _REJECT, name))
    # The table covers IPv4. Interfaces with restrictions only must not send IPv6 either.
    rejected += [
        'oifname "%s" meta nfproto ipv6 %s' % (interface, _REJECT)
        for interface in dict.fromkeys(interfaces[name] for name in bound if name in interfaces)
        if interface not in {interfaces.get(name) for name in free}
    ]
    for number, extra in enumerate(allow, 1):
        _append_extra(lines, places, number, extra)
    lines["output"] += rejected
    lines["forward"] = [_forwarded(interface) for interface in forward]
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


def _control_instance(network: str, subnets: Subnets, peers: Peers) -> list[Rule] | None:
    """Return the rules of a control instance. The controller and the machines that it reaches are in ``allow``."""
    dns_servers = _hosts(peers, "dns_servers")
    if network == model.BMC:
        return control_instance_bmc(subnets[network], dns_servers)
    if network == model.GW:
        return control_instance_gw(subnets[network], _hosts(peers, "management_servers"), dns_servers)
    return _controller(network, subnets, peers)


def _poplar(network: str, subnets: Subnets, peers: Peers) -> list[Rule] | None:
    if network == model.MANAGEMENT:
        return _all(poplar_management({"remote": who}) for who in _remotes(peers, "controllers", subnets))
    if network == model.DATA:
        return OPEN
    if network == model.STORAGE:
        # Without known NFS servers, outgoing traffic to the storage network is not restricted.
        return poplar_storage(_hosts(peers, "nfs_servers")) or None
    return None


def _management(network: str, subnets: Subnets, peers: Peers) -> list[Rule] | None:
    """Return the rules of the management server of a stand-alone POD: DHCP, DNS, NTP and syslog."""
    if network == model.STORAGE:
        return None
    subnet = subnets[network]
    # DHCP clients have no address yet and send broadcasts.
    rules = [*allow_all_egress(), {**rule("ingress", "udp", DHCP, description="leases"), "to_all": True}]
    rules += [rule("ingress", protocol, DNS, subnet, description="names") for protocol in BOTH]
    rules += [rule("ingress", "udp", NTP, subnet, description="time")]
    if network in (model.BMC, model.GW, model.MANAGEMENT):
        rules += [rule("ingress", protocol, SYSLOG, subnet, description="logs") for protocol in BOTH]
    return [*rules, shell()] if network == model.MANAGEMENT else rules


def _agent(network: str, subnets: Subnets, peers: Peers) -> list[Rule] | None:
    """Return the rules of an agent host, which mirror those of a controller. It may have the GW network only."""
    if network != model.GW:
        return None
    subnet = subnets[network]
    rules = [*allow_all_egress(), rule("ingress", "icmp", remote=subnet, description="reachability")]
    return rules + [
        rule("ingress", "tcp", port, subnet, description=description)
        for port, description in ((SSH, "shell"), (MACHINE_EXPORTER, "metrics"), (peers["agent_port"], "V-IPU agent"))
    ]


def _presence(gateways: str | None) -> list[Rule]:
    """Return the rules for multicast announcements of agents; receivers join the group with IGMP."""
    rules = [rule(direction, "igmp", description="multicast") for direction in ("ingress", "egress")]
    rules.append(rule("ingress", "udp", DISCOVERY_PORT, gateways, description="presence of agents"))
    return [{**each, "to_all": True} for each in rules]


KINDS: dict[str, t.Callable[[str, Subnets, Peers], t.Any]] = {
    "controller": _controller,
    "control_instance": _control_instance,
    "poplar": _poplar,
    "management": _management,
    "agent": _agent,
}


# The network for management access by kind; the default is the management network.
_MANAGED_ON = {"agent": model.GW}


def _check_management_network(kind: str, places: t.Mapping[str, t.Any]) -> None:
    if kind not in KINDS:
        raise ValueError(unknown("kind of host", kind, KINDS))
    network = _MANAGED_ON.get(kind, model.MANAGEMENT)
    if places[network] is None:
        raise ValueError(
            "network '%s', on which hosts of kind '%s' are managed, has neither a subnet nor an interface: set one of "
            "them" % (network, kind)
        )


def _all(tables: t.Iterable[list[Rule]]) -> list[Rule]:
    return [each for table in tables for each in table]


def _subnets(networks: t.Mapping[str, t.Mapping[str, t.Any]]) -> Subnets:
    return {name: (networks.get(name) or {}).get("subnet") for name in NETWORKS}


def _hosts(peers: Peers, key: str) -> list[str]:
    return list(peers.get(key) or [])


def _remotes(peers: Peers, key: str, subnets: Subnets) -> list[str]:
    """Return the addresses of these peers; by default, the subnet of the management network."""
    return _hosts(peers, key) or [subnets[model.MANAGEMENT] or _ANY]


def _place(
    name: str, networks: t.Mapping[str, t.Mapping[str, t.Any]], interfaces: t.Mapping[str, str]
) -> dict[str, str] | None:
    """Return the expression that matches packets of a network, by chain; None without subnet and interface."""
    subnet, interface = _subnets(networks)[name], interfaces.get(name)
    if interface is not None and not _INTERFACE.fullmatch(interface):
        raise ValueError("invalid interface name '%s' of network '%s': correct it" % (interface, name))
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


def _forwarded(interface: str) -> str:
    if not _INTERFACE.fullmatch(interface) or "*" in interface[:-1] or interface == "*":
        raise ValueError("invalid interface name '%s' in forward_interfaces: correct it" % interface)
    return 'iifname "%s" accept' % interface


def _append(lines: dict[str, list[str]], network: str, place: t.Mapping[str, str], each: Rule) -> None:
    """Append a rule to its chain."""
    if each.get("ethertype") == "IPv6":
        return  # networks of a POD have IPv4 subnets only; open networks accept IPv6 elsewhere
    chain, far = ("input", "saddr") if each["direction"] == "ingress" else ("output", "daddr")
    match = place[chain]
    if each.get("to_all"):  # multicast and broadcast: match the interface only
        match = match.partition("ip ")[0].rstrip()
    parts = [match]
    if each.get("remote", _ANY) != _ANY:
        parts.append("ip %s %s" % (far, each["remote"]))
    if each.get("port"):
        parts.append("%s dport %d" % (each["protocol"], each["port"]))
    elif each.get("protocol"):
        parts.append("meta l4proto %s" % each["protocol"])
    description = each.get("description")
    parts.append('accept comment "%s%s"' % (network, ": %s" % description if description else ""))
    lines[chain].append(" ".join(part for part in parts if part))


def _append_extra(
    lines: dict[str, list[str]],
    places: t.Mapping[str, t.Mapping[str, str] | None],
    number: int,
    extra: t.Mapping[str, t.Any],
) -> None:
    """Append a rule of the site to its chain."""
    where = "rule %d of allow" % number
    direction, protocol, network = extra.get("direction") or "in", extra.get("protocol") or "tcp", extra.get("network")
    if direction not in _FAR:
        raise ValueError("%s: %s" % (where, unknown("direction", direction, _FAR)))
    chain, far, who = _FAR[direction]
    wrong = "sources" if who == "destinations" else "destinations"
    if extra.get(wrong):
        raise ValueError("%s: direction %s has %s, not %s: correct it" % (where, direction, who, wrong))
    if protocol not in _PROTOCOLS:
        raise ValueError("%s: %s" % (where, unknown("protocol", protocol, _PROTOCOLS)))
    if network is not None and network not in places:
        raise ValueError("%s: %s" % (where, unknown("network", network, places)))
    if network is not None and places[network] is None:
        raise ValueError("%s: network '%s' has neither a subnet nor an interface: set one of them" % (where, network))
    ports = [int(port) for port in extra["ports"]]
    if not ports or not all(0 < port < 65536 for port in ports):
        raise ValueError("%s: ports must have at least one number from 1 to 65535" % where)
    comment = str(extra.get("comment") or "additional rule")
    if not re.fullmatch(r"[^\"\\\x00-\x1f]{1,60}", comment):
        raise ValueError('%s: comment must have at most 60 characters, without \\ and "' % where)
    place = places[network] if network is not None else None
    for each in extra.get(who) or [_ANY]:
        remote = _network(each, where)
        parts = [place[chain]] if place else []
        if str(remote) != _ANY:
            parts.append("%s %s %s" % ("ip" if remote.version == 4 else "ip6", far, remote))
        parts.append("%s dport { %s }" % (protocol, ", ".join(map(str, ports))))
        lines[chain].append('%s accept comment "%s"' % (" ".join(parts), comment))


def _network(text: str, where: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise ValueError(
            "%s: '%s' is not an address or a subnet such as 10.2.0.0/16: correct it" % (where, text)
        ) from None
