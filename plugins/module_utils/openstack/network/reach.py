# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks that a tenant sees and reaches, compared with those that it may. No I/O.

A tenant reaches a network when it may create ports there, or when a router connects the network to one of those.
Security groups are ignored, since a tenant chooses those of its ports itself.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ...reconcile import Object
from .families import ALL_PROJECTS, NETWORK, PORT, ROUTER, SHARE, SUBNET
from .parse import ROUTER_PORTS, Raw


@dataclass(frozen=True)
class Tenant:
    """Project, and the networks that it may see and reach.

    They are names of networks of the provider, or ids. Another project can create a network of the same name.
    """

    project: str
    id: str
    provider: str  # id of the project that owns the networks of the POD
    allowed: frozenset[str]
    common: frozenset[str] = frozenset()  # those that other projects may use too

    def may_use(self, net: Object) -> bool:
        """Return whether the tenant may see and reach a network."""
        own = net["project_id"] == self.id or net["router:external"]
        return bool(own or self._names(net) & self.allowed)

    def has_common(self, net: Object) -> bool:
        """Return whether other projects may use a network too."""
        return bool(self._names(net) & self.common)

    def unreachable(self, nets: t.Iterable[Object]) -> frozenset[str]:
        """Return the allowed networks that are not in a list."""
        return self.allowed.difference(*map(self._names, nets))

    def title(self, net: Object) -> str:
        """Return the name of a network for messages, with its id if another network of this name is allowed."""
        name = net["name"] or net["id"]
        ambiguous = name in self.allowed and not self.may_use(net)
        return "'%s' with the ID %s" % (name, net["id"]) if ambiguous else "'%s'" % name

    def _names(self, net: Object) -> set[str]:
        return {net["id"], net["name"]} if net["project_id"] == self.provider else {net["id"]}


@dataclass(frozen=True)
class ReachableNetworks:
    """Ids of networks on which the tenant may create ports, and of those that routers connect to them."""

    attached: frozenset[str]
    routed: frozenset[str]
    routers: dict[str, str]  # id of a routed network -> name of a router to it

    @property
    def all(self) -> frozenset[str]:
        """Ids of all reachable networks."""
        return self.attached | self.routed


def reachable_networks(raw: Raw, project: str) -> ReachableNetworks:
    """Return the networks that a project reaches, given the objects that an administrator sees."""
    attached = {net["id"] for net in raw[NETWORK.kind] if net["project_id"] == project}
    attached |= {network for network, target in _shares(raw) if target in (project, ALL_PROJECTS)}
    connected = _connected_networks(raw)
    names = {router["id"]: router["name"] or router["id"] for router in raw[ROUTER.kind]}
    routed: dict[str, str] = {}
    pending = list(attached)
    while pending:
        current = pending.pop()
        for router, networks in connected.items():
            if current in networks:
                for network in networks - attached - set(routed):
                    routed[network] = names.get(router, router)
                    pending.append(network)
    return ReachableNetworks(frozenset(attached), frozenset(routed), routed)


def _shares(raw: Raw) -> t.Iterator[tuple[str, str]]:
    """Yield the id of each shared network with the id of a project that may use it, or ``ALL_PROJECTS``."""
    for policy in raw[SHARE.kind]:
        if policy["action"] == "access_as_shared" and policy["object_type"] == "network":
            yield policy["object_id"], policy.get("target_project") or policy["target_tenant"]


def _connected_networks(raw: Raw) -> dict[str, set[str]]:
    """Return the networks in which each router has an interface. A gateway only leads out and does not count."""
    connected: dict[str, set[str]] = {}
    for port in raw[PORT.kind]:
        if port["device_owner"] in ROUTER_PORTS:
            connected.setdefault(port["device_id"], set()).add(port["network_id"])
    return connected


def find_leaks(
    tenant: Tenant,
    raw: Raw,
    reachable: ReachableNetworks,
    visible: Raw | None,
    projects: t.Mapping[str, str] | None = None,
) -> list[Object]:
    """Return a finding for each network that the tenant may not see or reach, should reach but does not, or shares.

    ``visible`` are the objects that the API returned to the tenant, None without its credentials. Own and external
    networks are always allowed. ``projects`` are known names of projects by id.
    """
    names = {net["id"]: net["name"] or net["id"] for net in raw[NETWORK.kind]}
    titles = {net["id"]: tenant.title(net) for net in raw[NETWORK.kind]}
    allowed = {net["id"] for net in raw[NETWORK.kind] if tenant.may_use(net)}
    findings: list[Object] = []

    def add(kind: str, network: str, reason: str) -> None:
        findings.append({"project": tenant.project, "kind": kind, "network": network, "reason": reason})

    for id in sorted(reachable.attached - allowed, key=lambda id: names.get(id, id)):
        name = names.get(id, id)
        reason = "Tenant '%s' can create ports on network %s. Remove the share of the network."
        add("attachable", name, reason % (tenant.project, titles.get(id, "'%s'" % id)))
    for id in sorted(reachable.routed - allowed, key=lambda id: names.get(id, id)):
        name = names.get(id, id)
        reason = "Tenant '%s' reaches network %s through router '%s'. Remove that interface."
        add("reachable", name, reason % (tenant.project, titles.get(id, "'%s'" % id), reachable.routers[id]))
    for network, others in _used_by_others(tenant, raw, reachable.attached & allowed):
        name = names[network]
        reason = "Tenant '%s' uses network '%s' together with project %s. Give each its own network."
        shown = ", ".join("'%s'" % (projects or {}).get(other, other) for other in others)
        add("common", name, reason % (tenant.project, name, shown))
    findings += _find_visible(tenant, allowed, visible or {})
    for name in sorted(tenant.unreachable(net for net in raw[NETWORK.kind] if net["id"] in reachable.all)):
        add("unreachable", name, "Tenant '%s' does not reach network '%s'. Share it." % (tenant.project, name))
    return findings


def _used_by_others(tenant: Tenant, raw: Raw, networks: t.Container[str]) -> t.Iterator[tuple[str, list[str]]]:
    """Yield the id of each network that is not common, with the ids of the other projects that may use it."""
    others: dict[str, set[str]] = {}
    for network, target in _shares(raw):
        if target != tenant.id:
            others.setdefault(network, set()).add(target)
    for net in sorted(raw[NETWORK.kind], key=lambda net: str(net["name"])):
        private = net["id"] in networks and not net["router:external"] and not tenant.has_common(net)
        if private and net["id"] in others:
            yield net["id"], sorted(others[net["id"]])


def _find_visible(tenant: Tenant, allowed: set[str], visible: Raw) -> list[Object]:
    """Return a finding for each object that the tenant sees and may not see."""
    findings: list[Object] = []
    names = {net["id"]: net["name"] or net["id"] for net in visible.get(NETWORK.kind, ())}

    def add(network: str, reason: str) -> None:
        reason = "Tenant '%s' %s" % (tenant.project, reason)
        findings.append({"project": tenant.project, "kind": "visible", "network": network, "reason": reason})

    for net in visible.get(NETWORK.kind, ()):
        name = names[net["id"]]
        if net["id"] not in allowed:
            reason = "sees network %s. Remove the share of the network, or the role of the tenant."
            add(name, reason % tenant.title(net))
        if net.get("provider:segmentation_id") is not None and net["project_id"] != tenant.id:
            add(name, "sees the VLAN of network '%s', as only administrators do. Revoke its administrator role." % name)
    for kind, title in ((SUBNET.kind, "subnet"), (PORT.kind, "port")):
        for item in visible.get(kind, ()):
            # A project that sees a network also sees its subnets, and its own ports there.
            if item["project_id"] == tenant.id or (kind == SUBNET.kind and item["network_id"] in names):
                continue
            name = str(names.get(item["network_id"], item["network_id"]))
            add(
                name,
                "sees %s '%s' of network '%s'. Revoke the role of the tenant."
                % (title, item["name"] or item["id"], name),
            )
    return findings


def port_addresses(raw_ports: t.Iterable[Object], networks: t.Mapping[str, str]) -> list[Object]:
    """Return the ports on networks with their addresses, sorted by network and name."""
    found = [
        {
            "network": networks[port["network_id"]],
            "name": port["name"],
            "mac": port["mac_address"],
            "addresses": [fixed["ip_address"] for fixed in port["fixed_ips"]],
        }
        for port in raw_ports
        if port["network_id"] in networks
    ]
    return sorted(found, key=lambda port: (port["network"], port["name"], port["mac"]))
