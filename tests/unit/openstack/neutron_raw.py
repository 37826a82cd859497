# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects as Neutron tells them, and what a plan makes of them."""

from __future__ import annotations

from typing import Any

from ansible_collections.openipu.pod.plugins.module_utils.openstack.checks import check_asked
from ansible_collections.openipu.pod.plugins.module_utils.openstack.planning import exact_routers, planned
from ansible_collections.openipu.pod.plugins.module_utils.openstack.reading import Seen, read
from ansible_collections.openipu.pod.plugins.module_utils.openstack.resources import CONFIG_OPTIONS
from ansible_collections.openipu.pod.plugins.module_utils.openstack.wanted import wanted

OWNER, PROJECT = "pod", "p1"


def network(name: str, vlan: int = 11, **more: Any) -> dict[str, Any]:
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


def subnet(name: str, on: str, cidr: str, **more: Any) -> dict[str, Any]:
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


def seen(projects: dict[str, str] | None = None, **raw: list[dict[str, Any]]) -> Seen:
    """What there is, by kind."""
    found = Seen(PROJECT, raw, projects or {})
    read(found, OWNER)
    return found


def steps(config: dict[str, Any], there: Seen, prune: bool = False, owner: str = OWNER) -> list[Any]:
    """What has to be done, checked."""
    objects = wanted(config, owner)
    check_asked(objects)
    return planned(objects, there, owner, CONFIG_OPTIONS if prune else (), exact_routers(config))


def told(found: list[Any]) -> list[tuple[str, str, str]]:
    """What is not as it should be: kind, key and what is done."""
    return [(s.family.kind, s.key, s.action.value) for s in found if s.action.value != "none"]
