# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keys of pod.yml and the columns of machines.csv."""

from __future__ import annotations

from .model import AGENT_PORT, CONTROLLER_PORT, DATA, DATA_MTU, MANAGEMENT, VLANS
from .source import Shape, Spec

# Read item by item, each with its own shape.
_LIST = {"type": "list", "elements": "dict"}
_NAMES = {"type": "list", "elements": "str"}

# Read by the inventory plugin, not by the model.
INVENTORY_KEYS = (
    "cache",
    "cache_connection",
    "cache_plugin",
    "cache_prefix",
    "cache_timeout",
    "compose",
    "groups",
    "keyed_groups",
    "leading_separator",
    "plugin",
    "strict",
    "use_extra_vars",
)

POD = Shape(
    "pod",
    {
        **{key: {"type": "raw"} for key in INVENTORY_KEYS},
        "name": {"required": True},
        "machines": {"default": "machines.csv"},
        "agent_port": {"type": "int", "default": AGENT_PORT},
        "controller": {"type": "dict"},
        "networks": {"type": "dict"},
        "openstack": {"type": "dict"},
        "deploy": {"type": "dict"},
        "racks": {**_LIST, "required": True},
        "clusters": _LIST,
        "allocations": _LIST,
        "partitions": _LIST,
        "users": _LIST,
    },
)
CONTROLLER = Shape(
    "controller",
    {"server": {}, "host": {}, "port": {"type": "int", "default": CONTROLLER_PORT}},
    mutually_exclusive=[("server", "host")],
)
# The roles of this collection for hosts; playbooks/hosts.yml and clients.yml put them there, in an order of their own.
HOST_ROLES = (
    "common",
    "management_server",
    "vipu_server",
    "virm_agent",
    "poplar_server",
    "vipu_client",
    "monitoring",
)
DEPLOY = Shape(
    "deploy",
    {group: {**_NAMES, "choices": list(HOST_ROLES)} for group in ("controllers", "machines", "poplar_servers")},
)
NETWORKS = Shape("networks", {name: {"type": "dict"} for name in VLANS})
OPENSTACK = Shape(
    "openstack",
    {
        "physical_networks": {"type": "dict"},
        "mtu": {"type": "int", "default": DATA_MTU},
        "dns_domain": {},
        "dns_servers": _NAMES,
        "management_servers": _NAMES,
        "nfs_servers": _NAMES,
        "external_network": {},
        "address_scope": {"type": "bool", "default": False},
        "networks": {"type": "dict"},
        "tenants": _LIST,
    },
)
PHYSICAL_NETWORKS = Shape("physical networks", {DATA: {"default": "physnet100g"}, MANAGEMENT: {"default": "physnet1g"}})
CLOUD_NETWORK = Shape("network of openstack", {"gateway": {}, "router_address": {}, "pools": _NAMES})
TENANT = Shape("tenant", {"project": {"required": True}, "vlan": {"type": "int"}, "allocation": {}})
NETWORK = Shape("network", {"vlan": {"type": "int"}, "subnet": {}})
RACK = Shape(
    "rack",
    {
        "name": {"required": True},
        "number": {"type": "int", "required": True},
        "servers": _LIST,
        "switches": _LIST,
        "pdus": _LIST,
        "cables": _LIST,
    },
)
ROLES = ("controller", "poplar")
SERVER_INTERFACES = ("p1", "p2", "idrac", "data")
SERVER = Shape(
    "server",
    {
        "name": {"required": True},
        "roles": {**_NAMES, "choices": list(ROLES), "default": ["poplar"]},
        "addresses": {"type": "dict"},
        "macs": {"type": "dict"},
    },
)
SERVER_VALUES = Shape("server's interface", {name: {} for name in SERVER_INTERFACES})
SWITCH = Shape(
    "switch",
    {
        "name": {"required": True},
        "kind": {"choices": [DATA, MANAGEMENT], "required": True},
        "model": {},
        "address": {},
        "mac": {},
        "uplinks": {**_NAMES, "default": []},
        "uplink_channel": {"type": "int"},
    },
)
PDU = Shape("PDU", {"name": {"required": True}, "model": {"default": "AP8886"}, "address": {}, "mac": {}})
CABLE = Shape(
    "cable",
    {
        "device": {"required": True},
        "connector": {"required": True},
        "switch": {"required": True},
        "port": {"required": True},
        "vlans": {"type": "list", "elements": "int"},
    },
)
CLUSTER = Shape(
    "cluster",
    {
        "id": {"required": True},
        "racks": _NAMES,
        "machines": _NAMES,
        "topology": {"choices": ["mesh", "torus"], "default": "mesh"},
        "cluster_topology": {"choices": ["looped"]},
        "num_ilds": {"type": "int", "default": 1},
    },
    mutually_exclusive=[("racks", "machines")],
    required_one_of=[("racks", "machines")],
)
ALLOCATION = Shape(
    "allocation",
    {"id": {"required": True}, "cluster": {"required": True}, "size": {"type": "int"}, "machines": _NAMES},
    mutually_exclusive=[("size", "machines")],
    required_one_of=[("size", "machines")],
)

# What the partition modules take beside id, allocation and size; their names and forms are the modules'.
PARTITION_OPTIONS: Spec = {
    "cluster": {},
    "num_gcds": {"type": "int"},
    "num_replicas": {"type": "int"},
    "num_segments": {"type": "int"},
    "routing": {"choices": ["dnc", "swnc", "btnc", "ringswnc"]},
    "gw_routing": {"choices": ["ring", "swring"]},
    "sync_type": {"choices": ["c2-compatible", "independent-rails", "pod-native", "pod-native-replicated-pipeline"]},
    "reconfigurable": {"type": "bool"},
    "ipus": _LIST,
    "disable_auto_reset": {"type": "bool"},
    "relocatable": {"type": "bool"},
}
IPU = Shape(
    "IPU",
    {
        "ild": {"type": "int", "default": 0},
        "topology_id": {"type": "int", "required": True},
        "ild_routing_id": {"type": "int", "default": 0},
        "routing_id": {"type": "int", "default": 0},
    },
)
PARTITION_DIVISORS = ("num_gcds", "num_replicas", "num_segments")
PARTITION = Shape(
    "partition",
    {
        "id": {"required": True},
        "allocation": {"required": True},
        "size": {"type": "int", "required": True},
        **PARTITION_OPTIONS,
    },
)
USER = Shape(
    "user",
    {"id": {"required": True}, "role": {"choices": ["user", "admin"], "default": "user"}, "allocations": _NAMES},
)

MACHINE = Shape(
    "machine",
    {
        "name": {"required": True},
        "rack": {},
        "unit": {"type": "int", "required": True},
        "bmc_mac": {"required": True},
        "gw_mac": {"required": True},
        "rnic_mac": {"required": True},
        "bmc_address": {},
        "gw_address": {},
        "rnic_address": {},
        "rack_unit": {"type": "int"},
        "serial": {},
        "agent": {},
    },
)
MACHINE_REQUIRED = ("name", "unit", "bmc_mac", "gw_mac", "rnic_mac")
