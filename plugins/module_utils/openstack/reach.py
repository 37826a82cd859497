# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a tenant sees and reaches, compared with what it may. Pure.

To reach is to have a way by policy: ports may be made on the network, or a router leads there from one on which
they may. What security groups let pass is not looked at: a tenant chooses those of its ports itself.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ..reconcile import Object
from .reading import ROUTER_PORTS, Raw
from .resources import EVERYBODY, NETWORK, PORT, ROUTER, SHARE, SUBNET


@dataclass(frozen=True)
class Tenant:
    """A project, and the names of the networks that it may see and reach."""

    project: str
    id: str
    may: frozenset[str]


@dataclass(frozen=True)
class Reached:
    """Ids of networks: those on which the tenant may make ports, and those that it gets to from there."""

    attached: frozenset[str]
    routed: frozenset[str]
    by: dict[str, str]  # id of a routed network -> name of the router that leads there

    @property
    def all(self) -> frozenset[str]:
        """Both."""
        return self.attached | self.routed


def reached(raw: Raw, project: str) -> Reached:
    """Where a project gets to, as an administrator sees it."""
    attached = {net["id"] for net in raw[NETWORK.kind] if net["project_id"] == project}
    for policy in raw[SHARE.kind]:
        target = policy.get("target_project") or policy["target_tenant"]
        shared = policy["action"] == "access_as_shared" and policy["object_type"] == "network"
        if shared and target in (project, EVERYBODY):
            attached.add(policy["object_id"])
    joined = _joined(raw)
    names = {router["id"]: router["name"] or router["id"] for router in raw[ROUTER.kind]}
    routed: dict[str, str] = {}
    fresh = list(attached)
    while fresh:
        here = fresh.pop()
        for router, networks in joined.items():
            if here in networks:
                for network in networks - attached - set(routed):
                    routed[network] = names.get(router, router)
                    fresh.append(network)
    return Reached(frozenset(attached), frozenset(routed), routed)


def _joined(raw: Raw) -> dict[str, set[str]]:
    """The networks that each router has an interface in. A gateway is a way out, and none in."""
    joined: dict[str, set[str]] = {}
    for port in raw[PORT.kind]:
        if port["device_owner"] in ROUTER_PORTS:
            joined.setdefault(port["device_id"], set()).add(port["network_id"])
    return joined


def compared(tenant: Tenant, raw: Raw, reach: Reached, seen: Raw | None) -> list[Object]:
    """What is more or less than the tenant may; ``seen`` is what it was really shown, None when nobody asked.

    Its own networks and those to the outside, which everybody sees, are always fine.
    """
    names = {net["id"]: net["name"] or net["id"] for net in raw[NETWORK.kind]}
    fine = {
        net["id"]
        for net in raw[NETWORK.kind]
        if net["project_id"] == tenant.id or net["router:external"] or net["name"] in tenant.may
    }
    findings: list[Object] = []

    def find(kind: str, network: str, sentence: str) -> None:
        findings.append({"project": tenant.project, "kind": kind, "network": network, "reason": sentence})

    for id in sorted(reach.attached - fine, key=lambda id: names.get(id, id)):
        name = names.get(id, id)
        find("attaches", name, "Tenant '%s' may make ports on network '%s': remove its share." % (tenant.project, name))
    for id in sorted(reach.routed - fine, key=lambda id: names.get(id, id)):
        name = names.get(id, id)
        sentence = "Tenant '%s' gets to network '%s' by way of router '%s': remove that interface."
        find("reaches", name, sentence % (tenant.project, name, reach.by[id]))
    findings += _shown(tenant, fine, seen or {})
    missing = tenant.may - {names[id] for id in reach.all if id in names}
    for name in sorted(missing):
        find("lacks", name, "Tenant '%s' does not get to network '%s': share it." % (tenant.project, name))
    return findings


def _shown(tenant: Tenant, fine: set[str], seen: Raw) -> list[Object]:
    """What the tenant was shown and should not have been."""
    findings: list[Object] = []
    called = {net["id"]: net["name"] or net["id"] for net in seen.get(NETWORK.kind, ())}

    def find(kind: str, network: str, sentence: str, *what: t.Any) -> None:
        reason = "Tenant '%s' %s" % (tenant.project, sentence % what)
        findings.append({"project": tenant.project, "kind": kind, "network": network, "reason": reason})

    for net in seen.get(NETWORK.kind, ()):
        name = called[net["id"]]
        if net["id"] not in fine:
            find("sees", name, "sees network '%s': remove its share, or its role.", name)
        if net.get("provider:segmentation_id") is not None and net["project_id"] != tenant.id:
            find("sees", name, "sees on which VLAN network '%s' is, as administrators do: take that role away.", name)
    for kind, what in ((SUBNET.kind, "subnet"), (PORT.kind, "port")):
        for item in seen.get(kind, ()):
            # Whoever sees a network sees its subnets, and of its ports those of its own project.
            if item["project_id"] == tenant.id or (kind == SUBNET.kind and item["network_id"] in called):
                continue
            name = str(called.get(item["network_id"], item["network_id"]))
            find(
                "sees",
                name,
                "sees %s '%s' of network '%s': take its role away.",
                what,
                item["name"] or item["id"],
                name,
            )
    return findings


def addresses(raw_ports: t.Iterable[Object], networks: t.Mapping[str, str]) -> list[Object]:
    """The ports on networks, with their addresses, in the order of networks and names."""
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
