# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Neutron tells, as objects of the families. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from ..reconcile import Family, Object, SentenceError
from .resources import (
    ADDRESS_SCOPE,
    CALLED,
    INTERFACE,
    NETWORK,
    NONE,
    PORT,
    ROUTER,
    SECURITY_GROUP,
    SHARE,
    SUBNET,
    SUBNET_POOL,
    SWITCHDEV,
    TAG,
)
from .rules import rule_of, sorted_rules

Raw = dict[str, list[Object]]  # what the API told, by kind

ROUTER_PORTS = (
    "network:router_interface",
    "network:router_interface_distributed",
    "network:ha_router_replicated_interface",
)
_KINDS_OF_SHARES = {CALLED[f.kind]: f.kind for f in (NETWORK, SECURITY_GROUP, ADDRESS_SCOPE, SUBNET_POOL)}


@dataclass
class Seen:
    """What there is: ``objects`` of this project by kind, and whatever else can be named, by ``ids``."""

    project: str
    raw: Raw
    projects: dict[str, str] = field(default_factory=dict)  # name as it was asked for -> id
    objects: dict[str, list[Object]] = field(default_factory=dict)

    def id(self, family: Family, name: str) -> str | None:
        """The id behind a name: of this project's object, or of the only one that is seen otherwise."""
        found = [raw for raw in self.raw.get(family.kind, ()) if raw["name"] == name]
        own = [raw for raw in found if raw["project_id"] == self.project]
        chosen = own or found
        if len(chosen) > 1:
            raise ambiguous(family, name, chosen)
        return str(chosen[0]["id"]) if chosen else None

    def whose(self, raw: Object) -> str:
        """Of which other project something is, in sentences."""
        names = {id: name for name, id in self.projects.items()}
        other = raw["project_id"]
        return "" if other in ("", self.project) else " of project '%s'" % names.get(other, other)

    def names(self, family: Family) -> dict[str, str]:
        """Names by id, of everything that is seen; what another project has under a name of ours goes by its id."""
        seen = self.raw.get(family.kind, ())
        own = {raw["name"] for raw in seen if raw["project_id"] == self.project}
        hidden = {raw["id"] for raw in seen if raw["project_id"] != self.project and raw["name"] in own}
        return {raw["id"]: raw["id"] if raw["id"] in hidden else raw["name"] for raw in seen}


def ambiguous(family: Family, name: str, found: t.Sequence[Object]) -> SentenceError:
    """The refusal to choose between objects of the same name."""
    return SentenceError(
        "There are %d %s named '%s' (%s): rename all but one, or remove them."
        % (len(found), family.plural.replace("_", " "), name, ", ".join(sorted(raw["id"] for raw in found)))
    )


def owner_of(raw: Object) -> str | None:
    """For which POD a task made it, None when none did."""
    tags = [tag for tag in raw.get("tags") or () if tag.startswith(TAG)]
    return tags[0].removeprefix(TAG) if tags else None


def read(seen: Seen, owner: str) -> None:
    """Fill in ``seen.objects``, by kind. Raises SentenceError."""
    for family, make in _READERS.items():
        mine = [raw for raw in seen.raw.get(family.kind, ()) if raw["project_id"] == seen.project]
        seen.objects[family.kind] = [
            {"name": raw["name"], "uuid": raw["id"], "owner": owner_of(raw), **make(seen, raw)}
            for raw in _one_of_each(family, mine, owner)
        ]
    for scope in seen.objects[ADDRESS_SCOPE.kind]:
        scope["owner"] = _owner_of_scope(seen, scope, owner)
    seen.objects[INTERFACE.kind] = _interfaces(seen)
    seen.objects[SHARE.kind] = _shares(seen)


def _owner_of_scope(seen: Seen, scope: Object, owner: str) -> str | None:
    """Neutron has no tags for address scopes: ours has our name, and nobody else's pool in it.

    One that only begins like our name may be another POD's, unless a pool of ours is in it.
    """
    owners = {owner_of(raw) for raw in seen.raw.get(SUBNET_POOL.kind, ()) if raw["address_scope_id"] == scope["uuid"]}
    if owners <= {owner}:
        ours = scope["name"] == owner or (owners and scope["name"].startswith(owner + "-"))
        return owner if ours else None
    return owners.pop() if len(owners) == 1 else None


def _one_of_each(family: Family, found: list[Object], owner: str) -> list[Object]:
    """Of objects with the same name, the one that is owned; ports are told apart by more, later."""
    if family is PORT:
        return [raw for raw in found if not raw["device_owner"].startswith("network:")]
    named: dict[str, list[Object]] = {}
    for raw in found:
        named.setdefault(raw["name"], []).append(raw)
    chosen = []
    for name, candidates in named.items():
        mine = [raw for raw in candidates if owner_of(raw) == owner]
        if len(mine) > 1:
            raise ambiguous(family, name, mine)
        if mine or len(candidates) == 1:
            chosen.append((mine or candidates)[0])
    return chosen


def _network(seen: Seen, raw: Object) -> Object:
    told = {
        "vlan": "provider:segmentation_id",
        "physical_network": "provider:physical_network",
        "network_type": "provider:network_type",
        "mtu": "mtu",
        "dns_domain": "dns_domain",
        "port_security": "port_security_enabled",
        "external": "router:external",
        "description": "description",
    }
    return {name: raw[key] for name, key in told.items() if key in raw}


def _subnet(seen: Seen, raw: Object) -> Object:
    return {
        "network": seen.names(NETWORK).get(raw["network_id"], raw["network_id"]),
        "cidr": raw["cidr"],
        "subnet_pool": seen.names(SUBNET_POOL).get(raw["subnetpool_id"], raw["subnetpool_id"]),
        "gateway": raw["gateway_ip"] or NONE,
        "dhcp": raw["enable_dhcp"],
        "pools": ["%s-%s" % (pool["start"], pool["end"]) for pool in raw["allocation_pools"]],
        "dns_servers": raw["dns_nameservers"],
        "host_routes": raw["host_routes"],
    }


def _group(seen: Seen, raw: Object) -> Object:
    names = seen.names(SECURITY_GROUP)
    return {
        "description": raw["description"],
        "rules": sorted_rules(rule_of(rule, names) for rule in raw["security_group_rules"]),
    }


def _port(seen: Seen, raw: Object) -> Object:
    groups = seen.names(SECURITY_GROUP)
    port = {
        "network": seen.names(NETWORK).get(raw["network_id"], raw["network_id"]),
        "mac": raw["mac_address"],
        "addresses": [fixed["ip_address"] for fixed in raw["fixed_ips"]],
        "security_groups": [groups.get(id, id) for id in raw["security_groups"]],
        "description": raw["description"],
        "bound": raw["device_owner"] or raw["device_id"],
    }
    told = {"dns_name": "dns_name", "port_security": "port_security_enabled", "vnic_type": "binding:vnic_type"}
    port.update((name, raw[key]) for name, key in told.items() if key in raw)
    if "hardware_offload_type" in raw:
        port["hardware_offload"] = raw["hardware_offload_type"] == SWITCHDEV
    return port


def _router(seen: Seen, raw: Object) -> Object:
    gateway = raw["external_gateway_info"] or {}
    network = gateway.get("network_id")
    router = {
        "external_network": seen.names(NETWORK).get(network, network) if network else NONE,
        "description": raw["description"],
    }
    if "enable_snat" in gateway:
        router["snat"] = gateway["enable_snat"]
    return router


def _pool(seen: Seen, raw: Object) -> Object:
    scope = raw["address_scope_id"]
    scopes = seen.names(ADDRESS_SCOPE)
    return {"prefixes": raw["prefixes"], "address_scope": scopes.get(scope, scope) if scope else NONE}


def _scope(seen: Seen, raw: Object) -> Object:
    return {"ip_version": raw["ip_version"], "shared": raw["shared"]}


_READERS: dict[Family, t.Callable[[Seen, Object], Object]] = {
    ADDRESS_SCOPE: _scope,
    SUBNET_POOL: _pool,
    NETWORK: _network,
    SUBNET: _subnet,
    SECURITY_GROUP: _group,
    PORT: _port,
    ROUTER: _router,
}


def _interfaces(seen: Seen) -> list[Object]:
    routers = {router["uuid"]: router for router in seen.objects[ROUTER.kind]}
    subnets = seen.names(SUBNET)
    found = []
    for raw in seen.raw.get(PORT.kind, ()):
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


def _shares(seen: Seen) -> list[Object]:
    projects = {id: name for name, id in seen.projects.items()}
    objects = {item["uuid"]: (kind, item) for kind in _KINDS_OF_SHARES.values() for item in seen.objects[kind]}
    found = []
    for raw in seen.raw.get(SHARE.kind, ()):
        place = objects.get(raw["object_id"])
        if place is None or raw["action"] != "access_as_shared":
            continue
        kind, item = place
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


def share_id(kind: str, name: str, project: str) -> str:
    """What a share is called in results."""
    return "%s/%s/%s" % (kind, name, project)
