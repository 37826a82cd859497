# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keys of pod.yml and the columns of machines.csv, with the forms of their texts."""

from __future__ import annotations

import typing as t

from ..vipu.partition_fields import IPU_FIELDS, PARTITION_FIELDS
from ..vipu.ports import AGENT_PORT, CONTROLLER_PORT
from .forms import NAME, NAMESPACE, NODE_LABEL, NODE_NAME, TEAM_NAME, WORD
from .mapping_schema import MappingSchema, Option, Spec
from .model import CONTROL_SUBNET, DATA, DATA_MTU, MACHINES_PER_RACK, MANAGEMENT, VLANS


def _mapping(schema: MappingSchema) -> Option:
    return {"type": "dict", "schema": schema}


def _list(schema: MappingSchema) -> Option:
    return {"type": "list", "elements": "dict", "schema": schema}


def _number(lowest: int, highest: int, **option: t.Any) -> Option:
    return {"type": "int", "range": (lowest, highest), **option}


# Lowest and highest valid numbers.
PORTS = (1, 65535)
VLAN_NUMBERS = (1, 4094)
MTUS = (1280, 9216)  # bytes
RACK_NUMBERS = (0, 255)
UNITS = (1, MACHINES_PER_RACK)
RACK_UNITS = (1, 60)  # U
INSTANCES = (0, 100000)

_NAMES = {"type": "list", "elements": "str"}
_WORDS = {**_NAMES, "form": WORD}
_NAME: Option = {"required": True, "form": NAME}
_WORD: Option = {"form": WORD}
_ONE_OR_SEVERAL_WORDS: Option = {**_WORDS, "single": True}
_MANAGED: Option = {"type": "bool", "default": True}
CONTROLLER = MappingSchema(
    "controller",
    {"server": {}, "host": _ONE_OR_SEVERAL_WORDS, "port": _number(*PORTS, default=CONTROLLER_PORT)},
    mutually_exclusive=[("server", "host")],
)
# Roles of this collection for hosts. playbooks/hosts.yml and deployed_clients.yml define their order.
HOST_ROLES = (
    "common",
    "management_server",
    "vipu_server",
    "virm_agent",
    "poplar_server",
    "vipu_client",
    "monitoring",
)
DEPLOY = MappingSchema(
    "deploy",
    {group: {**_NAMES, "choices": list(HOST_ROLES)} for group in ("controllers", "machines", "poplar_servers")},
)
NETWORK = MappingSchema("network", {"vlan": _number(*VLAN_NUMBERS), "subnet": {}})
NETWORKS = MappingSchema("networks", {name: _mapping(NETWORK) for name in VLANS})
PHYSICAL_NETWORKS = MappingSchema(
    "physical networks", {DATA: {**_WORD, "default": "physnet100g"}, MANAGEMENT: {**_WORD, "default": "physnet1g"}}
)
CLOUD_NETWORK = MappingSchema("network of openstack", {"gateway": {}, "router_address": {}, "pools": _NAMES})
CLOUD_NETWORKS = MappingSchema("networks of openstack", {name: _mapping(CLOUD_NETWORK) for name in VLANS})
# Networks between controller VMs and Poplar VMs: one per tenant, or the management network of the POD.
CONTROL_NETWORKS = ("tenant", MANAGEMENT)
TENANT_STORAGE = MappingSchema(
    "storage of a tenant",
    {"vlan": _number(*VLAN_NUMBERS, required=True), "subnet": {"required": True}, "nfs_servers": _NAMES},
)
TENANT = MappingSchema(
    "tenant",
    {
        "project": {"required": True},
        "vlan": _number(*VLAN_NUMBERS),
        "allocation": {},
        "storage": _mapping(TENANT_STORAGE),
    },
)
OPENSTACK = MappingSchema(
    "openstack",
    {
        "physical_networks": _mapping(PHYSICAL_NETWORKS),
        "mtu": _number(*MTUS, default=DATA_MTU),
        "dns_domain": {},
        "dns_servers": _NAMES,
        "management_servers": _NAMES,
        "nfs_servers": _NAMES,
        "external_network": {},
        "address_scope": {"type": "bool", "default": False},
        "control_network": {"choices": CONTROL_NETWORKS, "default": CONTROL_NETWORKS[0]},
        "control_subnet": {"default": CONTROL_SUBNET},
        "networks": _mapping(CLOUD_NETWORKS),
        "tenants": _list(TENANT),
    },
)
KUBERNETES = MappingSchema(
    "kubernetes",
    {"label": {"form": NODE_LABEL}, "servers": _NAMES, "node_names": {"type": "dict", "form": NODE_NAME}},
)
ROLES = ("controller", "poplar")
SERVER_INTERFACES = ("p1", "p2", "idrac", "data")
SERVER_VALUES = MappingSchema("server's interface", {name: {} for name in SERVER_INTERFACES})
SERVER = MappingSchema(
    "server",
    {
        "name": _NAME,
        "roles": {**_NAMES, "choices": list(ROLES), "default": ["poplar"]},
        "managed": _MANAGED,
        "bare_metal": {"type": "bool", "default": False},
        "addresses": _mapping(SERVER_VALUES),
        "macs": _mapping(SERVER_VALUES),
    },
)
SWITCH = MappingSchema(
    "switch",
    {
        "name": _NAME,
        "kind": {"choices": [DATA, MANAGEMENT], "required": True},
        "model": _WORD,
        "managed": _MANAGED,
        "address": {},
        "mac": {},
        "uplinks": {**_WORDS, "default": []},
        "uplink_channel": {"type": "int"},
    },
)
PDU = MappingSchema(
    "PDU", {"name": _NAME, "model": {**_WORD, "default": "AP8886"}, "managed": _MANAGED, "address": {}, "mac": {}}
)
CABLE = MappingSchema(
    "cable",
    {
        "device": {"required": True},
        "connector": {"required": True},
        "switch": {"required": True},
        "port": {**_WORD, "required": True},
        "vlans": {"type": "list", "elements": "int"},
    },
)
RACK = MappingSchema(
    "rack",
    {
        "name": _NAME,
        "number": _number(*RACK_NUMBERS, required=True),
        "servers": _list(SERVER),
        "switches": _list(SWITCH),
        "pdus": _list(PDU),
        "cables": _list(CABLE),
    },
)
CLUSTER = MappingSchema(
    "cluster",
    {
        "id": _NAME,
        "racks": _NAMES,
        "machines": _NAMES,
        "topology": {"choices": ["mesh", "torus"], "default": "mesh"},
        "cluster_topology": {"choices": ["looped"]},
        "num_ilds": {"type": "int", "default": 1},
    },
    mutually_exclusive=[("racks", "machines")],
    required_one_of=[("racks", "machines")],
)
ALLOCATION = MappingSchema(
    "allocation",
    {"id": _NAME, "cluster": {"required": True}, "size": {"type": "int"}, "machines": _NAMES},
    mutually_exclusive=[("size", "machines")],
    required_one_of=[("size", "machines")],
)
IPU = MappingSchema("IPU", {field.name: field.option for field in IPU_FIELDS})
# The options of the module vipu_partition besides id.
_PARTITION: Spec = {**{field.name: field.option for field in PARTITION_FIELDS}, "ipus": _list(IPU)}
_REQUIRED = ("allocation", "size")
PARTITION_OPTIONS: Spec = {name: option for name, option in _PARTITION.items() if name not in _REQUIRED}
PARTITION_DIVISORS = ("num_gcds", "num_replicas", "num_segments")
PARTITION = MappingSchema(
    "partition",
    {
        "id": _NAME,
        **{name: {**_PARTITION[name], "required": True} for name in _REQUIRED},
        **PARTITION_OPTIONS,
    },
)
USER = MappingSchema(
    "user",
    {"id": _NAME, "role": {"choices": ["user", "admin"], "default": "user"}, "allocations": _NAMES},
)
# An order of a team has the id TEAM.ORDER, so a team name has no '.' and is short.
TEAM = MappingSchema(
    "team",
    {
        "name": {"required": True, "form": TEAM_NAME},
        "ipus": {"type": "int", "required": True},
        "namespace": {"form": NAMESPACE},
        "project": {},
        "instances": _number(*INSTANCES),
    },
)
# Keys of the inventory plugin; the model ignores them.
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
POD = MappingSchema(
    "pod",
    {
        **{key: {"type": "raw"} for key in INVENTORY_KEYS},
        "name": _NAME,
        "machines": {"default": "machines.csv"},
        "shared_inventory": {"type": "bool", "default": False},
        "agent_port": _number(*PORTS, default=AGENT_PORT),
        "controller": _mapping(CONTROLLER),
        "networks": _mapping(NETWORKS),
        "openstack": _mapping(OPENSTACK),
        "kubernetes": _mapping(KUBERNETES),
        "deploy": _mapping(DEPLOY),
        "racks": {**_list(RACK), "required": True},
        "clusters": _list(CLUSTER),
        "allocations": _list(ALLOCATION),
        "partitions": _list(PARTITION),
        "users": _list(USER),
        "teams": _list(TEAM),
    },
)
MACHINE = MappingSchema(
    "machine",
    {
        "name": _NAME,
        "rack": {},
        "unit": _number(*UNITS, required=True),
        "bmc_mac": {"required": True},
        "gw_mac": {"required": True},
        "rnic_mac": {"required": True},
        "bmc_address": {},
        "gw_address": {},
        "rnic_address": {},
        "rack_unit": _number(*RACK_UNITS),
        "serial": _WORD,
        "agent": {"form": NAME},
    },
)
MACHINE_REQUIRED = ("name", "unit", "bmc_mac", "gw_mac", "rnic_mac")
