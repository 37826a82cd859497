# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The key ``openstack`` of pod.yml, with the keys in it."""

from __future__ import annotations

from .forms import WORD
from .mapping_schema import TEXTS, MappingSchema, Option, mapping, mapping_list, number
from .model import CONTROL_SUBNET, DATA, DATA_MTU, MANAGEMENT, VLAN_NUMBERS, VLANS

MTUS = (1280, 9216)  # bytes, lowest and highest

_WORD: Option = {"form": WORD}
PHYSICAL_NETWORKS = MappingSchema(
    "physical networks",
    {DATA: {**_WORD, "default": "physnet100g"}, MANAGEMENT: {**_WORD, "default": "physnet1g"}},
    {
        "data": "Physical network of the data switches in Neutron.",
        "management": "Physical network of the management switches in Neutron.",
    },
)
CLOUD_NETWORK = MappingSchema(
    "network of openstack",
    {"gateway": {}, "router_address": {}, "pools": TEXTS},
    {
        "gateway": "Address of an existing router. Omit it for a router in OpenStack.",
        "router_address": "Address of the router in OpenStack. By default, the last one of the subnet.",
        "pools": "Ranges of addresses for VMs, in the form 10.1.5.150-10.1.5.250. By default, a range without devices.",
    },
)
CLOUD_NETWORKS = MappingSchema(
    "networks of openstack",
    {name: mapping(CLOUD_NETWORK) for name in VLANS},
    {
        "bmc": "Settings of network bmc in OpenStack.",
        "gw": "Settings of network gw in OpenStack.",
        "management": "Settings of network management in OpenStack.",
        "data": "Settings of network data in OpenStack.",
        "storage": "Settings of network storage in OpenStack.",
    },
)
# Networks between controller VMs and Poplar VMs: one per tenant, or the management network of the POD.
CONTROL_NETWORKS = ("tenant", MANAGEMENT)
TENANT_STORAGE = MappingSchema(
    "storage of a tenant",
    {"vlan": number(*VLAN_NUMBERS, required=True), "subnet": {"required": True}, "nfs_servers": TEXTS},
    {
        "vlan": "VLAN of the storage network.",
        "subnet": "IPv4 subnet of the storage network, separate from all others.",
        "nfs_servers": "Addresses of the NFS servers. Omit the list to allow all addresses of the subnet.",
    },
)
TENANT = MappingSchema(
    "tenant",
    {
        "project": {"required": True},
        "vlan": number(*VLAN_NUMBERS),
        "allocation": {},
        "storage": mapping(TENANT_STORAGE),
    },
    {
        "project": "Name of the project.",
        "vlan": "VLAN of a separate data network. Omit it to use the data network of the POD.",
        "allocation": "Allocation with the machines of the separate data network.",
        "storage": "Separate storage network. Omit it for none.",
    },
)
OPENSTACK = MappingSchema(
    "openstack",
    {
        "physical_networks": mapping(PHYSICAL_NETWORKS),
        "mtu": number(*MTUS, default=DATA_MTU),
        "dns_domain": {},
        "dns_servers": TEXTS,
        "management_servers": TEXTS,
        "nfs_servers": TEXTS,
        "external_network": {},
        "address_scope": {"type": "bool", "default": False},
        "control_network": {"choices": CONTROL_NETWORKS, "default": CONTROL_NETWORKS[0]},
        "control_subnet": {"default": CONTROL_SUBNET},
        "networks": mapping(CLOUD_NETWORKS),
        "tenants": mapping_list(TENANT),
    },
    {
        "physical_networks": "Names of the physical networks in Neutron.",
        "mtu": "Largest packet on the data switches, in bytes.",
        "dns_domain": "DNS domain of the networks.",
        "dns_servers": "Addresses of the DNS servers that DHCP announces and that security groups allow.",
        "management_servers": "Addresses with access to controller VMs. By default, those of the controllers.",
        "nfs_servers": "Addresses of the NFS servers. Omit the list to allow all addresses of the storage network.",
        "external_network": "Network of the router gateways. Omit it for no routers.",
        "address_scope": "Whether all subnets share one address scope and one subnet pool.",
        "control_network": "Network between controller VMs and Poplar VMs: one per tenant, or the management network.",
        "control_subnet": "IPv4 subnet of each control network.",
        "networks": "Settings of single networks.",
        "tenants": "Projects that use the POD.",
    },
)
