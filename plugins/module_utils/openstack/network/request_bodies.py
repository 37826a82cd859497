# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Request bodies of Neutron's API, made from objects of the families. Pure; the caller looks up ids."""

from __future__ import annotations

import ipaddress
import typing as t

from ...reconcile import Family, Object, Step
from .families import (
    ADDRESS_SCOPE,
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
)

Find = t.Callable[[Family, str], str]  # returns the id of an object; raises an error that the caller handles

# Fields that differ from the API by name only.
_RENAMED: dict[str, dict[str, str]] = {
    ADDRESS_SCOPE.kind: {"ip_version": "ip_version", "shared": "shared"},
    SUBNET_POOL.kind: {"prefixes": "prefixes"},
    NETWORK.kind: {
        "vlan": "provider:segmentation_id",
        "physical_network": "provider:physical_network",
        "network_type": "provider:network_type",
        "mtu": "mtu",
        "dns_domain": "dns_domain",
        "port_security": "port_security_enabled",
        "external": "router:external",
        "admin_state_up": "admin_state_up",
        "description": "description",
    },
    SUBNET.kind: {
        "cidr": "cidr",
        "dhcp": "enable_dhcp",
        "dns_servers": "dns_nameservers",
        "host_routes": "host_routes",
    },
    SECURITY_GROUP.kind: {"description": "description"},
    PORT.kind: {
        "mac": "mac_address",
        "dns_name": "dns_name",
        "port_security": "port_security_enabled",
        "vnic_type": "binding:vnic_type",
        "admin_state_up": "admin_state_up",
        "description": "description",
    },
    ROUTER.kind: {"admin_state_up": "admin_state_up", "description": "description"},
    SHARE.kind: {},
}


def creation_body(step: Step, find: Find) -> Object:
    """Return the body that creates the object of a step."""
    item = step.desired or {}
    body = {**_attributes(step.family, item, set(item), find), "name": step.key}
    if not body.get("external_gateway_info", True):
        del body["external_gateway_info"]
    if step.family is NETWORK and "vlan" in item:
        body.setdefault("provider:network_type", "vlan")
    elif step.family is ADDRESS_SCOPE:
        body.setdefault("ip_version", 4)
    elif step.family is SUBNET:
        body["ip_version"] = ipaddress.ip_network(item["cidr"]).version
        body["network_id"] = find(NETWORK, item["network"])
        if item.get("subnet_pool"):
            body["subnetpool_id"] = find(SUBNET_POOL, item["subnet_pool"])
    elif step.family is PORT:
        body["network_id"] = find(NETWORK, item["network"])
        if item.get("subnets"):
            fixed = [{"subnet_id": find(SUBNET, name)} for name in item["subnets"]]
            body["fixed_ips"] = [*body.get("fixed_ips", ()), *fixed]
        if not body.get("security_groups") and item.get("port_security") is False:
            body.pop("security_groups", None)
    return body


def change_body(step: Step, find: Find) -> Object:
    """Return the body that changes the object of a step; empty when only its tag is missing."""
    before, item = step.before or {}, step.desired or {}
    names = {f.name for f in step.family.fields if f.differs(item, before)}
    body = _attributes(step.family, item, names, find)
    if "former_name" in names:
        body["name"] = step.key
    if step.family is PORT and "port_security_enabled" in body and not body["port_security_enabled"]:
        body["security_groups"] = []
    if step.family is ROUTER and "snat" in names and "external_network" not in names:
        body["external_gateway_info"] = _gateway(item, find)
    return body


def _attributes(family: Family, item: Object, names: set[str], find: Find) -> Object:
    body = {key: item[name] for name, key in _RENAMED[family.kind].items() if name in names}
    if family is SUBNET:
        if "gateway" in names:
            body["gateway_ip"] = None if item["gateway"] == NONE else item["gateway"]
        if "pools" in names:
            pools = [pool.split("-") for pool in item["pools"]]
            body["allocation_pools"] = [{"start": start, "end": end} for start, end in pools]
    elif family is PORT:
        if "addresses" in names:
            body["fixed_ips"] = [{"ip_address": address} for address in item["addresses"]]
        if "security_groups" in names:
            body["security_groups"] = [find(SECURITY_GROUP, name) for name in item["security_groups"]]
        if "hardware_offload" in names and item["hardware_offload"]:
            body["hardware_offload_type"] = SWITCHDEV
    elif family is ROUTER and "external_network" in names:
        body["external_gateway_info"] = _gateway(item, find)
    elif family is SUBNET_POOL and "address_scope" in names:
        scope = item["address_scope"]
        body["address_scope_id"] = None if scope == NONE else find(ADDRESS_SCOPE, scope)
    return body


def _gateway(item: Object, find: Find) -> Object | None:
    if item["external_network"] == NONE:
        return {}
    gateway: Object = {"network_id": find(NETWORK, item["external_network"])}
    if "snat" in item:
        gateway["enable_snat"] = item["snat"]
    return gateway


def share_body(item: Object, object_id: str, project_id: str) -> Object:
    """Return the body of an RBAC policy that gives a project access to an object."""
    return {
        "object_type": RESOURCES[item["kind"]],
        "object_id": object_id,
        "action": "access_as_shared",
        "target_tenant": project_id,
    }


def rule_body(item: Object, group_id: str, find: Find) -> Object:
    """Return the body of a security group rule."""
    body = {
        "security_group_id": group_id,
        "direction": item["direction"],
        "ethertype": item["ethertype"],
        "protocol": item.get("protocol"),
        "port_range_min": item.get("port"),
        "port_range_max": item.get("port_max"),
        "remote_ip_prefix": item.get("remote"),
        "description": item.get("description"),
    }
    if item.get("remote_group"):
        body["remote_group_id"] = find(SECURITY_GROUP, item["remote_group"])
    return {name: value for name, value in body.items() if value is not None}
