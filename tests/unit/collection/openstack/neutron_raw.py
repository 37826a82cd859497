# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects as Neutron returns them, and plans of them."""

from __future__ import annotations

from typing import Any

from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.checks import check_desired
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.families import desired
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.options import CONFIG_OPTIONS
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.parse import (
    NetworkState,
    RawState,
    parse_state,
)
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.plan import deletions_of, plan_network
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.renames import match_renamed

OWNER, PROJECT = "pod", "p1"


def network(name: str, /, vlan: int = 11, **more: Any) -> dict[str, Any]:
    return {
        "id": f"id-of-{name}",
        "name": name,
        "project_id": PROJECT,
        "tags": ["openipu.pod=pod"],
        "provider:network_type": "vlan",
        "provider:physical_network": "phys",
        "provider:segmentation_id": vlan,
        "mtu": 9000,
        "dns_domain": "",
        "port_security_enabled": True,
        "router:external": False,
        "description": "",
        **more,
    }


def subnet(name: str, on: str, cidr: str, /, **more: Any) -> dict[str, Any]:
    return {
        "id": f"id-of-{name}",
        "name": name,
        "project_id": PROJECT,
        "tags": ["openipu.pod=pod"],
        "network_id": f"id-of-{on}",
        "cidr": cidr,
        "subnetpool_id": None,
        "gateway_ip": None,
        "enable_dhcp": True,
        "allocation_pools": [],
        "dns_nameservers": [],
        "host_routes": [],
        **more,
    }


def port(name: str, mac: str, *addresses: str, on: str = "data", **more: Any) -> dict[str, Any]:
    return {
        "id": f"port-{mac}",
        "name": name,
        "project_id": PROJECT,
        "tags": ["openipu.pod=pod"],
        "network_id": f"id-of-{on}",
        "mac_address": mac,
        "fixed_ips": [{"subnet_id": "s", "ip_address": address} for address in addresses],
        "security_groups": [],
        "description": "",
        "device_owner": "",
        "device_id": "",
        "dns_name": name,
        "port_security_enabled": False,
        "binding:vnic_type": "normal",
        **more,
    }


def rule(direction: str, protocol: str | None = None, number: int | None = None, **more: Any) -> dict[str, Any]:
    return {
        "id": f"{direction}-{protocol}-{number}",
        "direction": direction,
        "ethertype": "IPv4",
        "protocol": protocol,
        "port_range_min": number,
        "port_range_max": number,
        "remote_ip_prefix": None,
        "remote_group_id": None,
        **more,
    }


def group(name: str, *rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "id": f"id-of-{name}",
        "name": name,
        "project_id": PROJECT,
        "tags": ["openipu.pod=pod"],
        "description": "",
        "security_group_rules": list(rules),
        **more,
    }


def router(name: str, gateway: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "id": f"id-of-{name}",
        "name": name,
        "project_id": PROJECT,
        "tags": ["openipu.pod=pod"],
        "external_gateway_info": gateway,
        "description": "",
        **more,
    }


class NoLimits:
    """Cloud without quotas and with all extensions."""

    def quotas(self) -> dict[str, Any]:
        return {}

    def has_extension(self, alias: str) -> bool:
        return True


def state(projects: dict[str, str] | None = None, **raw: list[dict[str, Any]]) -> NetworkState:
    """Return the actual state, given raw objects by kind."""
    return parse_state(RawState(PROJECT, raw, projects or {}), OWNER)


def plan(
    config: dict[str, Any], actual: NetworkState, prune: bool = False, owner: str = OWNER, limits: Any = None
) -> list[Any]:
    """Return the checked steps for an option ``config``."""
    deletions = deletions_of(config, CONFIG_OPTIONS if prune else ())
    objects = desired(config, owner)
    check_desired(objects)
    objects, actual = match_renamed(objects, actual, owner)
    return plan_network(objects, actual, owner, deletions, limits or NoLimits())


def changes(steps: list[Any]) -> list[tuple[str, str, str]]:
    """Return kind, key and action of each step that changes something."""
    return [(s.family.kind, s.key, s.action.value) for s in steps if s.action.value != "none"]


def machine(name, mac, address, **more):
    return {"name": name, "network": "data", "mac": mac, "addresses": [address], "dns_name": name, **more}


def state_with(*ports, **raw):
    raw.setdefault("network", [network("data")])
    return state(subnet=[subnet("data", "data", "10.5.0.0/16")], port=list(ports), **raw)
