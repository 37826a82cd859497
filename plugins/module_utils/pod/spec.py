# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keys of pod.yml and the columns of machines.csv, with the forms of their texts."""

from __future__ import annotations

from ..vipu.partition_fields import IPU_FIELDS, PARTITION_FIELDS
from ..vipu.ports import AGENT_PORT, CONTROLLER_PORT
from .forms import HOST, NAME, NAMESPACE, NODE_LABEL, NODE_NAME, TEAM_NAME, WORD
from .mapping_schema import TEXTS, MappingSchema, Option, Spec, mapping, mapping_list, number
from .model import DATA, MACHINES_PER_RACK, MANAGEMENT, VLAN_NUMBERS, VLANS
from .openstack_spec import OPENSTACK

# Lowest and highest valid numbers.
PORTS = (1, 65535)
RACK_NUMBERS = (0, 255)
UNITS = (1, MACHINES_PER_RACK)
RACK_UNITS = (1, 60)  # U
PORT_CHANNELS = (1, 2000)  # of EOS
INSTANCES = (0, 100000)

_WORDS = {**TEXTS, "form": WORD}
_NAME: Option = {"required": True, "form": NAME}
_WORD: Option = {"form": WORD}
_HOSTS: Option = {**TEXTS, "form": HOST, "single": True}
_MANAGED: Option = {"type": "bool", "default": True}
CONTROLLER = MappingSchema(
    "controller",
    {"server": {}, "host": _HOSTS, "port": number(*PORTS, default=CONTROLLER_PORT)},
    {
        "server": "Name of the server with the controller. By default, the first server with the role controller.",
        "host": "Name or address of the controller, or a list of them, instead of server.",
        "port": "TCP port of the controller.",
    },
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
    {group: {**TEXTS, "choices": list(HOST_ROLES)} for group in ("controllers", "machines", "poplar_servers")},
    {
        "controllers": "Roles for the servers with the role controller.",
        "machines": "Roles for hosts that simulate IPU-Machines.",
        "poplar_servers": "Roles for the servers with the role poplar.",
    },
)
NETWORK = MappingSchema(
    "network",
    {"vlan": number(*VLAN_NUMBERS), "subnet": {}},
    {
        "vlan": "VLAN. By default, that of the reference design.",
        "subnet": "IPv4 subnet, in the form 10.1.0.0/16. By default, that of the reference design.",
    },
)
NETWORKS = MappingSchema(
    "networks",
    {name: mapping(NETWORK) for name in VLANS},
    {
        "bmc": "BMCs of the IPU-Machines.",
        "gw": "IPU-Gateways, and p1 of the servers.",
        "management": "p2 and iDRAC of the servers, switches and PDUs.",
        "data": "RNICs of the IPU-Machines, and bonds of the servers.",
        "storage": "Storage, on the bonds of the servers.",
    },
)
KUBERNETES = MappingSchema(
    "kubernetes",
    {"label": {"form": NODE_LABEL}, "servers": TEXTS, "node_names": {"type": "dict", "form": NODE_NAME}},
    {
        "label": "Label of all nodes of the POD. By default, vipu-ctrl=NAME with the name of the POD.",
        "servers": "Poplar servers that are nodes. By default, all.",
        "node_names": "Names in Kubernetes by server. By default, the names of the servers in lower case.",
    },
)
ROLES = ("controller", "poplar")
SERVER_INTERFACES = ("p1", "p2", "idrac", "data")
SERVER_VALUES = MappingSchema(
    "server's interface",
    {name: {} for name in SERVER_INTERFACES},
    {
        "p1": "Port p1, in network gw.",
        "p2": "Port p2, in network management.",
        "idrac": "BMC of the server, in network management. It has no default address.",
        "data": "Bond of the two 100GbE ports, in networks data and storage.",
    },
)
SERVER = MappingSchema(
    "server",
    {
        "name": _NAME,
        "roles": {**TEXTS, "choices": list(ROLES), "default": ["poplar"]},
        "managed": _MANAGED,
        "bare_metal": {"type": "bool", "default": False},
        "addresses": mapping(SERVER_VALUES),
        "macs": mapping(SERVER_VALUES),
    },
    {
        "name": "Name of the server and of its host in the inventory.",
        "roles": "Roles of the server.",
        "managed": "Whether the playbooks configure and check the server.",
        "bare_metal": "Whether the server is a node of Ironic. It needs an address of its idrac.",
        "addresses": "Addresses by interface. By default, the rule of the POD assigns them.",
        "macs": "MAC addresses by interface.",
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
        "uplink_channel": number(*PORT_CHANNELS),
    },
    {
        "name": "Name of the switch and of its host in the inventory.",
        "kind": "Networks of the switch: data (100GbE) or management (1GbE).",
        "model": "Model. By default, that of the reference design.",
        "managed": "Whether the playbooks configure and check the switch.",
        "address": "Management address. By default, the rule of the POD assigns it.",
        "mac": "MAC of the management port.",
        "uplinks": "Ports to the network of the site, trunks of all VLANs of the switch.",
        "uplink_channel": "Number of the port-channel of the uplinks. Omit it for none.",
    },
)
PDU = MappingSchema(
    "PDU",
    {"name": _NAME, "model": {**_WORD, "default": "AP8886"}, "managed": _MANAGED, "address": {}, "mac": {}},
    {
        "name": "Name of the PDU and of its host in the inventory.",
        "model": "Model.",
        "managed": "Whether the playbooks configure and check the PDU.",
        "address": "Management address. By default, the rule of the POD assigns it.",
        "mac": "MAC of the management port.",
    },
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
    {
        "device": "Name of the device.",
        "connector": "Connector of the device: mgmt or rnic, p1, p2, idrac, data1 or data2, management.",
        "switch": "Name of the switch.",
        "port": "Port of the switch.",
        "vlans": "VLANs of the port. By default, those of the networks of the connector.",
    },
)
RACK = MappingSchema(
    "rack",
    {
        "name": _NAME,
        "number": number(*RACK_NUMBERS, required=True),
        "servers": mapping_list(SERVER),
        "switches": mapping_list(SWITCH),
        "pdus": mapping_list(PDU),
        "cables": mapping_list(CABLE),
    },
    {
        "name": "Name of the rack, and group of its devices in the inventory.",
        "number": "Logical rack number, the third part of its addresses.",
        "servers": "Servers.",
        "switches": "Switches.",
        "pdus": "PDUs.",
        "cables": "Cables that differ from the reference port map.",
    },
    elsewhere={"machines": "write the machines into machines.csv, with the name of the rack in the column 'rack'"},
)
CLUSTER = MappingSchema(
    "cluster",
    {
        "id": _NAME,
        "racks": TEXTS,
        "machines": TEXTS,
        "topology": {"choices": ["mesh", "torus"], "default": "mesh"},
        "cluster_topology": {"choices": ["looped"]},
        "num_ilds": {"type": "int", "default": 1},
    },
    {
        "id": "Name of the cluster.",
        "racks": "Racks with its IPU-Machines, in the order of the IPU-Link domains.",
        "machines": "IPU-Machines instead of racks, the lowest in the rack first.",
        "topology": "Cabling of the IPU-Links: torus for a closed loop, else mesh.",
        "cluster_topology": "Cabling of the GW-Links between domains. Omit it for the default of the controller.",
        "num_ilds": "Number of IPU-Link domains, each within one rack.",
    },
    mutually_exclusive=[("racks", "machines")],
    required_one_of=[("racks", "machines")],
)
ALLOCATION = MappingSchema(
    "allocation",
    {"id": _NAME, "cluster": {"required": True}, "size": {"type": "int"}, "machines": TEXTS},
    {
        "id": "Name of the allocation.",
        "cluster": "Name of the cluster.",
        "size": "Number of IPU-Machines, which the controller chooses.",
        "machines": "Consecutive IPU-Machines of the cluster, instead of a size.",
    },
    mutually_exclusive=[("size", "machines")],
    required_one_of=[("size", "machines")],
)
IPU = MappingSchema(
    "IPU",
    {field.name: field.option for field in IPU_FIELDS},
    {
        "ild": "Number of the IPU-Link domain.",
        "topology_id": "Position of the IPU in the domain.",
        "ild_routing_id": "Routing id of the domain.",
        "routing_id": "Routing id of the IPU.",
    },
)
# The options of the module vipu_partition besides id.
_PARTITION: Spec = {**{field.name: field.option for field in PARTITION_FIELDS}, "ipus": mapping_list(IPU)}
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
    {
        "id": "Name of the partition.",
        "allocation": "Name of the allocation.",
        "size": "Number of IPUs, a power of two.",
        "cluster": "Cluster of the allocation.",
        "num_gcds": "Number of GCDs.",
        "num_replicas": "Number of GCD sync replicas.",
        "num_segments": "Number of IPU-Link segments.",
        "routing": "Routing of the IPU-Links.",
        "gw_routing": "Routing of the GW-Links.",
        "sync_type": "Type of synchronization.",
        "reconfigurable": "Whether IPU programs can change the IPU-Links.",
        "ipus": "IPUs of the partition. By default, the controller chooses them.",
        "disable_auto_reset": "Whether the IPUs keep their state when a program ends.",
        "relocatable": "Whether the controller may move the partition to other IPUs.",
    },
)
USER = MappingSchema(
    "user",
    {"id": _NAME, "role": {"choices": ["user", "admin"], "default": "user"}, "allocations": TEXTS},
    {
        "id": "Name of the user.",
        "role": "Role in the controller.",
        "allocations": "Allocations that the user may use. By default, none.",
    },
)
# An order of a team has the id TEAM.ORDER, so a team name has no '.' and is short.
TEAM = MappingSchema(
    "team",
    {
        "name": {"required": True, "form": TEAM_NAME},
        "ipus": {"type": "int", "required": True},
        "namespace": {"form": NAMESPACE},
        "project": {},
        "instances": number(*INSTANCES),
    },
    {
        "name": "Name of the team.",
        "ipus": "Quota of IPUs, at most the IPUs of the POD.",
        "namespace": "Namespace in Kubernetes, which gets the quota.",
        "project": "Project in OpenStack, which gets the quota.",
        "instances": "Limit of VMs in the project. By default, one for every four IPUs.",
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
    "strict",
    "use_extra_vars",
)
POD = MappingSchema(
    "pod",
    {
        "plugin": {"choices": ["openipu.pod.pod"], "required": True},
        **{key: {"type": "raw"} for key in INVENTORY_KEYS},
        "name": _NAME,
        "machines": {"default": "machines.csv"},
        "shared_inventory": {"type": "bool", "default": False},
        "agent_port": number(*PORTS, default=AGENT_PORT),
        "controller": mapping(CONTROLLER),
        "networks": mapping(NETWORKS),
        "openstack": mapping(OPENSTACK),
        "kubernetes": mapping(KUBERNETES),
        "deploy": mapping(DEPLOY),
        "racks": {**mapping_list(RACK), "required": True},
        "clusters": mapping_list(CLUSTER),
        "allocations": mapping_list(ALLOCATION),
        "partitions": mapping_list(PARTITION),
        "users": mapping_list(USER),
        "teams": mapping_list(TEAM),
    },
    {
        "plugin": "Inventory plugin, by which Ansible recognises this file.",
        **dict.fromkeys(INVENTORY_KEYS, "Option of Ansible for constructed groups or caches."),
        "name": "Name of the POD.",
        "machines": "Table of IPU-Machines, relative to this file.",
        "shared_inventory": "Whether other PODs are in the same inventory.",
        "agent_port": "TCP port of the V-IPU agents.",
        "controller": "V-IPU controller.",
        "networks": "Networks with their VLANs and subnets.",
        "openstack": "Networks in OpenStack. Omit it without OpenStack.",
        "kubernetes": "Nodes of Kubernetes. Omit it without Kubernetes.",
        "deploy": "Roles that the playbooks apply to hosts. By default, none.",
        "racks": "Racks with their devices.",
        "clusters": "Clusters of the controller.",
        "allocations": "Shares of clusters.",
        "partitions": "Partitions of allocations.",
        "users": "Users of the controller.",
        "teams": "Teams with a quota of IPUs.",
    },
    elsewhere={"machines": "it is the name of a table. Write the machines into machines.csv, one per line"},
)
MACHINE = MappingSchema(
    "machine",
    {
        "name": _NAME,
        "rack": {},
        "unit": number(*UNITS, required=True),
        "bmc_mac": {"required": True},
        "gw_mac": {"required": True},
        "rnic_mac": {"required": True},
        "bmc_address": {},
        "gw_address": {},
        "rnic_address": {},
        "rack_unit": number(*RACK_UNITS),
        "serial": _WORD,
        "agent": {"form": NAME},
    },
    {
        "name": "Name of the IPU-Machine and of its host in the inventory.",
        "rack": "Name of the rack. It may be omitted with a single rack.",
        "unit": "Number in the rack, 1 the lowest.",
        "bmc_mac": "MAC of the BMC.",
        "gw_mac": "MAC of the IPU-Gateway.",
        "rnic_mac": "MAC of the RNIC.",
        "bmc_address": "Address of the BMC. By default, the rule of the POD assigns it.",
        "gw_address": "Address of the IPU-Gateway. By default, the rule of the POD assigns it.",
        "rnic_address": "Address of the RNIC. By default, the rule of the POD assigns it.",
        "rack_unit": "Mounting height, in U.",
        "serial": "Serial number of the board.",
        "agent": "Id of the V-IPU agent. By default, the name.",
    },
)
MACHINE_REQUIRED = tuple(name for name, option in MACHINE.declared.items() if option.get("required"))
