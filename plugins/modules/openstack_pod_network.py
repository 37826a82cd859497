# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manage the networks, ports, security groups, routers and shares of a POD in Neutron."""

from __future__ import annotations

DOCUMENTATION = r"""
module: openstack_pod_network
short_description: Manage the networks, ports, security groups, routers and shares of a POD in Neutron
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Creates, changes and removes the networks, subnets, ports, security groups, routers and shares of a POD in one task, as O(config) describes them.
  - Each collection is read once. Objects are created in bulk where Neutron supports it, and changed concurrently.
  - Objects are identified by name within the project, and ports by MAC first. When a MAC moves to another machine, its port gets the name, the
    addresses and the DNS name of that machine.
  - Created objects get a tag with the name in O(pod). An existing object without the tag is adopted by its name. An object of another POD is
    rejected, and so are changes and removals of a port that a server uses.
  - Networks that were renamed in Neutron are recognized by their VLAN. Without a VLAN, they are recognized by the name of a subnet, or by the
    router and prefix of a subnet. Subnets are recognized by their network and prefix. The task restores their names.
  - Settings that O(config) omits stay unchanged, except that networks, ports and routers are up.
  - The task checks O(config) before it writes anything. It rejects contradictions and exceeded quotas. It also rejects MACs, addresses and VLANs
    of other objects, and removals of objects that ports of other owners use.
  - If Neutron rejects an object afterwards, only this object fails, and all others are written. Run the task again to write the rest.
extends_documentation_fragment:
  - openipu.pod.openstack
  - openipu.pod.openstack_network
  - openipu.pod.attributes
  - openipu.pod.attributes.openstack_group
attributes:
  check_mode:
    support: full
    details: Reads and checks everything, including quotas, and writes nothing.
options:
  pod:
    description: Name of the owning POD, such as V({{ pod_name }}). Created objects get the tag C(openipu.pod=NAME).
    type: str
    required: true
  state:
    description:
      - V(present) creates and changes the objects in O(config).
      - V(absent) removes all objects with the tag of O(pod).
    type: str
    choices: [present, absent]
    default: present
  prune:
    description:
      - Kinds of objects to prune. Objects with the tag of O(pod) that are missing in O(config) are removed, unless O(config) omits their list.
      - Shares have no tags. V(shares) removes all unlisted shares of tagged objects, including those that another task created for a vPOD.
    type: list
    elements: str
    choices: [address_scopes, subnet_pools, networks, subnets, security_groups, ports, routers, shares]
    default: []
  accept_incomplete_reads:
    description:
      - Whether to remove objects although Neutron may have returned only some of them, such as a port without its network.
      - A Neutron that has just started can do so. Set it when the message names an object that does not exist, such as after a removal by hand or
        an interrupted removal, or that belongs to another project.
      - Without removals, it has no effect.
    type: bool
    default: false
seealso:
  - module: openipu.pod.openstack_pod_network_info
  - module: openstack.cloud.port
"""

EXAMPLES = r"""
- name: Create the networks of the POD in OpenStack
  openipu.pod.openstack_pod_network:
    cloud: admin
    pod: "{{ pod_name }}"
    config: "{{ pod_openstack_config }}"
    prune: [networks, subnets, security_groups, ports, routers]

- name: Create a data network with one IPU-Machine for one tenant
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

- name: Preview the changes
  openipu.pod.openstack_pod_network:
    cloud: admin
    pod: "{{ pod_name }}"
    config: "{{ pod_openstack_config }}"
  check_mode: true
  diff: true

- name: Remove all objects of the POD
  openipu.pod.openstack_pod_network:
    cloud: admin
    pod: lab
    state: absent
"""

RETURN = r"""
networks:
  description: Names of the created, updated, recreated, removed and unchanged networks.
  type: dict
  returned: when O(config) has networks
  sample: {created: [pod64-data], updated: [], recreated: [], removed: [], unchanged: [pod64-storage]}
subnets:
  description: Names of the subnets, as for RV(networks).
  type: dict
  returned: when O(config) has subnets
security_groups:
  description: Names of the security groups, as for RV(networks). A group with changed rules is updated.
  type: dict
  returned: when O(config) has security groups
ports:
  description: Names of the ports, as for RV(networks). A port that moved to another machine is updated and has its new name.
  type: dict
  returned: when O(config) has ports
routers:
  description: Names of the routers, as for RV(networks).
  type: dict
  returned: when O(config) has routers
router_interfaces:
  description: Router interfaces as C(router/subnet), as for RV(networks).
  type: dict
  returned: when O(config) has routers with interfaces
shares:
  description: Shares as C(kind/name/project), as for RV(networks).
  type: dict
  returned: when O(config) has shares
subnet_pools:
  description: Names of the subnet pools, as for RV(networks).
  type: dict
  returned: when O(config) has subnet pools
address_scopes:
  description: Names of the address scopes, as for RV(networks).
  type: dict
  returned: when O(config) has address scopes
ids:
  description:
    - IDs by kind and name, such as C(ids.networks). Check mode has no IDs of new objects. Objects without an ID have no entry.
    - The result has no other fields of the objects, because a POD can have thousands of ports. M(openipu.pod.openstack_pod_network_info) returns
      all objects of the POD in the format of O(config), with their IDs.
  type: dict
  returned: always
  sample: {networks: {pod64-data: 5f0b...}}
errors:
  description: Objects that could not be written, each with C(kind), C(id), C(msg) and C(error_code).
  type: list
  elements: dict
  returned: when an object could not be written
"""

from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.task import OPENSTACK_POD_NETWORK
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(OPENSTACK_POD_NETWORK)


if __name__ == "__main__":
    main()
