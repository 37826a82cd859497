# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring what Neutron holds for a POD to what is asked for."""

from __future__ import annotations

DOCUMENTATION = r"""
module: openstack_pod_network
short_description: Bring what Neutron holds for a POD to what is asked for
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Makes the networks, subnets, ports, security groups, routers and shares of a POD what O(config) says, in one task.
  - Each collection is read once. What differs is made in bulk where Neutron takes it so, and changed some at a time.
  - Objects are known by name within the project, and a port by its MAC first. A MAC that is another machine's from now on takes its port along, with
    the new name, address and DNS name.
  - What a task made is tagged with O(pod). An object that was there already under its name, untagged, is taken over. One that is another POD's is refused,
    and so is to change or remove a port that a server has.
  - What the server chose, and O(config) does not speak of, is no difference.
  - Contradictions, MACs, addresses and VLANs that others have, ports that others have on what is to go, and quotas are looked at before anything is
    written. What Neutron refuses after that
    fails on its own, and the rest is done. Running the task again does what was left.
extends_documentation_fragment:
  - openipu.pod.openstack
  - openipu.pod.attributes
  - openipu.pod.attributes.openstack
attributes:
  check_mode:
    support: full
    details: Everything is read and looked at, quotas too, and nothing is written.
options:
  pod:
    description: Whose all of it is, like V({{ pod_name }}). It is the tag C(openipu.pod=NAME) of what a task made.
    type: str
    required: true
  config:
    description:
      - What there is to be. The inventory plugin P(openipu.pod.pod#inventory) gives it as C(pod_openstack_config).
      - A list that is left out is none of the task's business.
    type: dict
    suboptions:
      address_scopes:
        description:
          - Address scopes, between whose subnets routers need not translate addresses.
          - Neutron has no tags for them. One named like O(pod), or C(POD-…), in which nobody else has a pool, is the POD's.
        type: list
        elements: dict
        suboptions:
          name:
            description: Its name.
            type: str
            required: true
          ip_version:
            description: The version of IP, 4 unless given.
            type: int
            choices: [4, 6]
          shared:
            description: Whether all projects may use it.
            type: bool
      subnet_pools:
        description: Pools of prefixes for subnets.
        type: list
        elements: dict
        suboptions:
          name:
            description: Its name.
            type: str
            required: true
          prefixes:
            description: The prefixes, like V(10.1.5.0/24).
            type: list
            elements: str
            required: true
          address_scope:
            description: Its address scope, or V(none).
            type: str
      networks:
        description: Networks.
        type: list
        elements: dict
        suboptions:
          name:
            description: Its name.
            type: str
            required: true
          vlan:
            description: The VLAN on the wire.
            type: int
          physical_network:
            description: The physical network, as the configuration of Neutron calls it.
            type: str
          network_type:
            description: The type. With O(config.networks[].vlan) that is V(vlan), unless given.
            type: str
            choices: [vlan, flat, local, geneve, gre, vxlan]
          mtu:
            description: The largest packet, in bytes.
            type: int
          dns_domain:
            description: The DNS domain of its ports, with a dot at the end.
            type: str
          port_security:
            description: Whether its ports are filtered, unless they say otherwise.
            type: bool
          external:
            description: Whether routers may have their gateway in it.
            type: bool
          description:
            description: What it is for.
            type: str
      subnets:
        description: Subnets.
        type: list
        elements: dict
        suboptions:
          name:
            description: Its name.
            type: str
            required: true
          network:
            description: Its network.
            type: str
            required: true
          cidr:
            description: Its prefix, like V(10.1.5.0/24).
            type: str
            required: true
          subnet_pool:
            description: The subnet pool that the prefix is from.
            type: str
          gateway:
            description: The address of its router, or V(none).
            type: str
          dhcp:
            description: Whether Neutron serves DHCP.
            type: bool
          pools:
            description: Addresses for ports that ask for none, like V(10.1.5.150-10.1.5.253).
            type: list
            elements: str
          dns_servers:
            description: DNS servers, the first one first.
            type: list
            elements: str
          host_routes:
            description: Routes that DHCP tells.
            type: list
            elements: dict
            suboptions:
              destination:
                description: Where to, as a prefix.
                type: str
                required: true
              nexthop:
                description: By way of which address.
                type: str
                required: true
      security_groups:
        description: Security groups.
        type: list
        elements: dict
        suboptions:
          name:
            description: Its name.
            type: str
            required: true
          description:
            description: What it is for.
            type: str
          rules:
            description: What may pass, and nothing else. The rules that Neutron gives a new group go too, unless they are here.
            type: list
            elements: dict
            suboptions:
              direction:
                description: Which way.
                type: str
                choices: [ingress, egress]
                required: true
              ethertype:
                description: The version of IP.
                type: str
                choices: [IPv4, IPv6]
                default: IPv4
              protocol:
                description: The protocol by name or number; any without.
                type: str
              port:
                description: The port, or the type of ICMP.
                type: int
              port_max:
                description: The last port, when there are several, or the code of ICMP.
                type: int
              remote:
                description: The other end, as a prefix.
                type: str
              remote_group:
                description: The other end, as a security group.
                type: str
              description:
                description: What it is for. It is told when the rule is made.
                type: str
      ports:
        description: Ports.
        type: list
        elements: dict
        suboptions:
          name:
            description: Its name, one of its own among all of them.
            type: str
            required: true
          network:
            description: Its network.
            type: str
            required: true
          mac:
            description: Its MAC.
            type: str
          addresses:
            description: Its addresses.
            type: list
            elements: str
          subnets:
            description: Subnets from which a new port gets any address each, beside O(config.ports[].addresses).
            type: list
            elements: str
          dns_name:
            description: Its name in DNS.
            type: str
          port_security:
            description: Whether it is filtered.
            type: bool
          security_groups:
            description: Its security groups.
            type: list
            elements: str
          vnic_type:
            description: What a server gets of it, like V(direct) for a virtual function.
            type: str
            choices: [normal, direct, direct-physical, macvtap, baremetal, virtio-forwarder]
          hardware_offload:
            description:
              - Whether Open vSwitch lets the card forward its packets, with a virtual function whose card is in the mode C(switchdev).
              - With V(direct), Open vSwitch binds a port only so in Neutron, and the SR-IOV agent only otherwise. A port that nobody has is made anew to
                change it.
              - Takes Neutron 2023.2 or later with ML2's extension driver C(port_hardware_offload_type).
            type: bool
          description:
            description: What it is for.
            type: str
      routers:
        description: Routers.
        type: list
        elements: dict
        suboptions:
          name:
            description: Its name.
            type: str
            required: true
          external_network:
            description: The network of its gateway, or V(none).
            type: str
          snat:
            description: Whether it translates addresses towards the gateway.
            type: bool
          description:
            description: What it is for.
            type: str
          interfaces:
            description: The subnets that it joins, and no others.
            type: list
            elements: dict
            suboptions:
              subnet:
                description: The subnet.
                type: str
                required: true
              address:
                description: Its address there. Without, it is the subnet's gateway; V(any) is one from the pool.
                type: str
      shares:
        description: What other projects may use (RBAC).
        type: list
        elements: dict
        suboptions:
          kind:
            description: The kind of object.
            type: str
            choices: [network, security_group, address_scope, subnet_pool]
            default: network
          name:
            description: Its name.
            type: str
            required: true
          project:
            description: The project, by name or id, or V(*) for all.
            type: str
            required: true
          state:
            description: Whether there is to be this one. O(prune) takes back all others; this is for one of many that others make at the same time.
            type: str
            choices: [present, absent]
            default: present
  state:
    description:
      - V(present) makes true what O(config) says.
      - V(absent) removes all that is tagged with O(pod).
    type: str
    choices: [present, absent]
    default: present
  prune:
    description:
      - The kinds of which also is removed what is tagged with O(pod) and not in O(config). A kind that O(config) has no list of is left alone.
      - Shares have no tags. It is those of objects that are tagged, whoever made them, as for vPODs that were ordered since.
    type: list
    elements: str
    choices: [address_scopes, subnet_pools, networks, subnets, security_groups, ports, routers, shares]
    default: []
seealso:
  - module: openstack.cloud.port
"""

EXAMPLES = r"""
- name: Make OpenStack know the networks of the POD
  openipu.pod.openstack_pod_network:
    cloud: admin
    pod: "{{ pod_name }}"
    config: "{{ pod_openstack_config }}"
    prune: [networks, subnets, security_groups, ports, routers]

- name: A data network with one IPU-Machine, for one tenant
  openipu.pod.openstack_pod_network:
    cloud: admin
    pod: lab
    config:
      networks:
        - {name: lab-data, vlan: 11, physical_network: physnet100g, mtu: 9000, port_security: false, dns_domain: lab.example.}
      subnets:
        - {name: lab-data, network: lab-data, cidr: 10.1.5.0/24, gateway: none, pools: [10.1.5.150-10.1.5.250]}
      ports:
        - {name: ipum01-rnic, network: lab-data, mac: 0c:42:a1:00:05:01, addresses: [10.1.5.1], dns_name: ipum01-rnic}
      shares:
        - {name: lab-data, project: tenant-a}

- name: See what would change
  openipu.pod.openstack_pod_network:
    cloud: admin
    pod: "{{ pod_name }}"
    config: "{{ pod_openstack_config }}"
  check_mode: true
  diff: true

- name: Leave nothing of it
  openipu.pod.openstack_pod_network:
    cloud: admin
    pod: lab
    state: absent
"""

RETURN = r"""
networks:
  description: The names of the networks that were created, updated, removed and left as they are.
  type: dict
  returned: when O(config) has networks
  sample: {created: [pod64-data], updated: [], recreated: [], removed: [], unchanged: [pod64-storage]}
subnets:
  description: The same of subnets.
  type: dict
  returned: when O(config) has subnets
security_groups:
  description: The same of security groups. One whose rules changed is among the updated.
  type: dict
  returned: when O(config) has security groups
ports:
  description: The same of ports. One that was moved to another machine is among the updated, under its new name.
  type: dict
  returned: when O(config) has ports
routers:
  description: The same of routers.
  type: dict
  returned: when O(config) has routers
router_interfaces:
  description: The same of their interfaces, as C(router/subnet).
  type: dict
  returned: when O(config) has routers with interfaces
shares:
  description: The same of shares, as C(kind/name/project).
  type: dict
  returned: when O(config) has shares
subnet_pools:
  description: The same of subnet pools.
  type: dict
  returned: when O(config) has subnet pools
address_scopes:
  description: The same of address scopes.
  type: dict
  returned: when O(config) has address scopes
errors:
  description: What could not be written, each with C(kind), C(id) and C(msg).
  type: list
  elements: dict
  returned: when something could not be written
"""

from ansible_collections.openipu.pod.plugins.module_utils.openstack.tasks import OPENSTACK_POD_NETWORK
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(OPENSTACK_POD_NETWORK)


if __name__ == "__main__":
    main()
