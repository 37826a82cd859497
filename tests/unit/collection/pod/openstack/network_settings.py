# SPDX-License-Identifier: GPL-3.0-or-later
"""Configurations of OpenStack networks for the tests of a POD, and parts of them by name."""

from __future__ import annotations

from ansible_collections.openipu.pod.plugins.module_utils.pod.openstack_networks import network_config

FACTORY = (
    "networks: {bmc: {subnet: 10.1.1.0/24}, gw: {subnet: 10.1.2.0/24}, "
    "management: {subnet: 10.1.3.0/24}, data: {subnet: 10.1.5.0/24}}"
)
SERVERS = (
    ", servers: [{name: s1, addresses: {idrac: 10.1.3.201}}], switches: [{name: tor, kind: data}, "
    "{name: mgmt, kind: management}]"
)
TWO = "{external_network: outside, tenants: [{project: alpha}, {project: beta, vlan: 21, allocation: b}]}"
HALVES = "allocations: [{id: a, cluster: cl, machines: [m1.1, m1.2]}, {id: b, cluster: cl, machines: [m1.3, m1.4]}]"


def config(pod, openstack="{}", **content):
    loaded = pod.load(**{"networks": FACTORY, "rack_tail": SERVERS, **content, "tail": _tail(openstack, content)})
    return network_config(loaded, loaded.cloud)


def _tail(openstack, content):
    return f"openstack: {openstack}\n" + content.pop("tail", "")


def named(items):
    return {item["name"]: item for item in items}


def routed(found):
    return {router["name"]: [item["subnet"] for item in router["interfaces"]] for router in found["routers"]}


def rules(found, group):
    keys = ("direction", "protocol", "port", "remote", "remote_group")
    return [tuple(rule.get(key) for key in keys) for rule in named(found["security_groups"])[f"test-{group}"]["rules"]]
