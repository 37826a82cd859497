# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Neutron objects, converted from the API to objects of the families. No I/O."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from ...reconcile import Family, Object
from ..common.lookup import ambiguous
from ..common.tags import owner_of
from .families import (
    ADDRESS_SCOPE,
    INTERFACE,
    NETWORK,
    NONE,
    PORT,
    RESOURCES,
    ROUTER,
    SECURITY_GROUP,
    SHARE,
    SUBNET,
    SUBNET_POOL,
    SWITCHDEV,
    Objects,
    share_id,
)
from .security_rules import parse_rule, sorted_rules

Raw = t.Mapping[str, list[Object]]  # objects of the API, by kind

ROUTER_PORTS = (
    "network:router_interface",
    "network:router_interface_distributed",
    "network:ha_router_replicated_interface",
)
_KINDS_OF_SHARES = {RESOURCES[f.kind]: f.kind for f in (NETWORK, SECURITY_GROUP, ADDRESS_SCOPE, SUBNET_POOL)}


@dataclass(frozen=True)
class RawState:
    """Visible objects of the API, and ids of projects by the name or id in the options.

    ``former_names`` are the names in Neutron, by id, of objects that ``raw`` has under their desired names.
    ``doubt`` is a sign of missing objects, such as a port without its network. It blocks removals.
    """

    project: str
    raw: Raw
    projects: t.Mapping[str, str] = field(default_factory=dict)
    former_names: t.Mapping[str, str] = field(default_factory=dict)
    doubt: str = ""

    def id(self, family: Family, name: str) -> str | None:
        """Return the id of an object: that of the project, or else the only visible one. Raises UserError."""
        found = [raw for raw in self.raw.get(family.kind, ()) if raw["name"] == name]
        own = [raw for raw in found if raw["project_id"] == self.project]
        chosen = own or found
        if len(chosen) > 1:
            raise ambiguous(family, name, chosen)
        return str(chosen[0]["id"]) if chosen else None

    def project_suffix(self, raw: Object) -> str:
        """Return the other project that owns an object, in the form that follows its name in messages."""
        names = {id: name for name, id in self.projects.items()}
        other = raw["project_id"]
        return "" if other in ("", self.project) else " of project '%s'" % names.get(other, other)

    def names(self, family: Family) -> dict[str, str]:
        """Return the names of all visible objects by id.

        An object of another project with the name of one of this project is represented by its id.
        """
        visible = self.raw.get(family.kind, ())
        own = {raw["name"] for raw in visible if raw["project_id"] == self.project}
        hidden = {raw["id"] for raw in visible if raw["project_id"] != self.project and raw["name"] in own}
        return {raw["id"]: raw["id"] if raw["id"] in hidden else raw["name"] for raw in visible}


@dataclass(frozen=True)
class NetworkState(RawState):
    """Actual state: visible objects of the API, and the project's objects of each family.

    ``rejected_addresses`` are those that Neutron rejected for the same task. The writer adds to them.
    """

    objects: Objects = field(default_factory=dict)
    rejected_addresses: set[tuple[str, str]] = field(default_factory=set)  # network and address


def parse_state(state: RawState, owner: str) -> NetworkState:
    """Return the actual objects of the families. Raises UserError."""
    objects: dict[str, list[Object]] = {}
    for family, convert in _CONVERTERS.items():
        own = [raw for raw in state.raw.get(family.kind, ()) if raw["project_id"] == state.project]
        objects[family.kind] = [
            {
                "name": raw["name"],
                "uuid": raw["id"],
                "owner": owner_of(raw),
                **_former(state, raw),
                **convert(state, raw),
            }
            for raw in _without_duplicate_names(family, own, owner)
        ]
    objects[ADDRESS_SCOPE.kind] = [
        {**scope, "owner": _owner_of_scope(state, scope, owner)} for scope in objects[ADDRESS_SCOPE.kind]
    ]
    objects[INTERFACE.kind] = _interfaces(state, objects)
    objects[SHARE.kind] = _shares(state, objects)
    return NetworkState(state.project, state.raw, state.projects, state.former_names, state.doubt, objects)


def _former(state: RawState, raw: Object) -> Object:
    return {"former_name": state.former_names[raw["id"]]} if raw["id"] in state.former_names else {}


def _owner_of_scope(state: RawState, scope: Object, owner: str) -> str | None:
    """Return the owner of an address scope, which has no tags in Neutron.

    A scope with the owner's name is the owner's, unless another POD has a subnet pool in it. A scope whose name
    starts with the owner's may belong to another POD, unless the owner has a pool in it.
    """
    pools = state.raw.get(SUBNET_POOL.kind, ())
    owners = {owner_of(raw) for raw in pools if raw["address_scope_id"] == scope["uuid"]}
    if owners <= {owner}:
        own = scope["name"] == owner or (owners and scope["name"].startswith(owner + "-"))
        return owner if own else None
    return owners.pop() if len(owners) == 1 else None


def _without_duplicate_names(family: Family, found: list[Object], owner: str) -> list[Object]:
    """Return the owned one of objects with the same name. All ports are returned, since they also have MACs."""
    if family is PORT:
        return [raw for raw in found if not raw["device_owner"].startswith("network:")]
    named: dict[str, list[Object]] = {}
    for raw in found:
        named.setdefault(raw["name"], []).append(raw)
    chosen = []
    for name, candidates in named.items():
        own = [raw for raw in candidates if owner_of(raw) == owner]
        if len(own) > 1:
            raise ambiguous(family, name, own)
        if own or len(candidates) == 1:
            chosen.append((own or candidates)[0])
    return chosen


def _network(state: RawState, raw: Object) -> Object:
    keys = {
        "vlan": "provider:segmentation_id",
        "physical_network": "provider:physical_network",
        "network_type": "provider:network_type",
        "mtu": "mtu",
        "dns_domain": "dns_domain",
        "port_security": "port_security_enabled",
        "external": "router:external",
        "admin_state_up": "admin_state_up",
        "description": "description",
    }
    return {name: raw[key] for name, key in keys.items() if key in raw}


def _subnet(state: RawState, raw: Object) -> Object:
    return {
        "network": state.names(NETWORK).get(raw["network_id"], raw["network_id"]),
        "cidr": raw["cidr"],
        "subnet_pool": state.names(SUBNET_POOL).get(raw["subnetpool_id"], raw["subnetpool_id"]),
        "gateway": raw["gateway_ip"] or NONE,
        "dhcp": raw["enable_dhcp"],
        "pools": ["%s-%s" % (pool["start"], pool["end"]) for pool in raw["allocation_pools"]],
        "dns_servers": raw["dns_nameservers"],
        "host_routes": raw["host_routes"],
    }


def _group(state: RawState, raw: Object) -> Object:
    names = state.names(SECURITY_GROUP)
    return {
        "description": raw["description"],
        "rules": sorted_rules(parse_rule(rule, names) for rule in raw["security_group_rules"]),
    }


def _port(state: RawState, raw: Object) -> Object:
    groups = state.names(SECURITY_GROUP)
    port = {
        "network": state.names(NETWORK).get(raw["network_id"], raw["network_id"]),
        "mac": raw["mac_address"],
        "addresses": [fixed["ip_address"] for fixed in raw["fixed_ips"]],
        "security_groups": [groups.get(id, id) for id in raw["security_groups"]],
        "description": raw["description"],
        "bound": raw["device_owner"] or raw["device_id"],
    }
    keys = {
        "dns_name": "dns_name",
        "port_security": "port_security_enabled",
        "vnic_type": "binding:vnic_type",
        "admin_state_up": "admin_state_up",
    }
    port.update((name, raw[key]) for name, key in keys.items() if key in raw)
    if "hardware_offload_type" in raw:
        port["hardware_offload"] = raw["hardware_offload_type"] == SWITCHDEV
    return port


def _router(state: RawState, raw: Object) -> Object:
    gateway = raw["external_gateway_info"] or {}
    network = gateway.get("network_id")
    router = {
        "external_network": state.names(NETWORK).get(network, network) if network else NONE,
        "description": raw["description"],
    }
    if "enable_snat" in gateway:
        router["snat"] = gateway["enable_snat"]
    if "admin_state_up" in raw:
        router["admin_state_up"] = raw["admin_state_up"]
    return router


def _pool(state: RawState, raw: Object) -> Object:
    scope = raw["address_scope_id"]
    scopes = state.names(ADDRESS_SCOPE)
    return {"prefixes": raw["prefixes"], "address_scope": scopes.get(scope, scope) if scope else NONE}


def _scope(state: RawState, raw: Object) -> Object:
    return {"ip_version": raw["ip_version"], "shared": raw["shared"]}


_CONVERTERS: dict[Family, t.Callable[[RawState, Object], Object]] = {
    ADDRESS_SCOPE: _scope,
    SUBNET_POOL: _pool,
    NETWORK: _network,
    SUBNET: _subnet,
    SECURITY_GROUP: _group,
    PORT: _port,
    ROUTER: _router,
}


def _interfaces(state: RawState, objects: Objects) -> list[Object]:
    routers = {router["uuid"]: router for router in objects[ROUTER.kind]}
    subnets = state.names(SUBNET)
    found = []
    for raw in state.raw.get(PORT.kind, ()):
        router = routers.get(raw["device_id"])
        if router is None or raw["device_owner"] not in ROUTER_PORTS:
            continue
        for fixed in raw["fixed_ips"]:
            subnet = subnets.get(fixed["subnet_id"], fixed["subnet_id"])
            found.append(
                {
                    "id": "%s/%s" % (router["name"], subnet),
                    "uuid": raw["id"],
                    "subnet_uuid": fixed["subnet_id"],
                    "router": router["name"],
                    "subnet": subnet,
                    "address": fixed["ip_address"],
                    "owner": router["owner"],
                }
            )
    return found


def _shares(state: RawState, objects: Objects) -> list[Object]:
    projects = {id: name for name, id in state.projects.items()}
    shared = {item["uuid"]: (kind, item) for kind in _KINDS_OF_SHARES.values() for item in objects[kind]}
    found = []
    for raw in state.raw.get(SHARE.kind, ()):
        shared_object = shared.get(raw["object_id"])
        if shared_object is None or raw["action"] != "access_as_shared":
            continue
        kind, item = shared_object
        target = raw.get("target_project") or raw["target_tenant"]
        project = str(projects.get(target, target))
        found.append(
            {
                "id": share_id(kind, item["name"], project),
                "uuid": raw["id"],
                "kind": kind,
                "name": item["name"],
                "project": project,
                "owner": item["owner"],
            }
        )
    return found
