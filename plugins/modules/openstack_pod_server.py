# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start servers on the networks of a POD."""

from __future__ import annotations

DOCUMENTATION = r"""
module: openstack_pod_server
short_description: Start servers on the networks of a POD
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Makes a port for every network of a server, then the server with these ports, and waits until it is active, also when an earlier run has
    begun to start it. It goes first, and its ports after it.
  - Image and flavor are looked for before any port is made.
  - A server whose start failed is made anew. One that is there and was not made for the same O(pod) is refused.
extends_documentation_fragment:
  - openipu.pod.openstack
  - openipu.pod.attributes
  - openipu.pod.attributes.openstack
attributes:
  check_mode:
    support: full
    details: Everything is read, and nothing is written.
options:
  pod:
    description: Whose they are. It is the tag C(openipu.pod=NAME) of servers and ports.
    type: str
    required: true
  project:
    description:
      - The project whose servers they are, by name or id. That is the one that is logged in to unless given.
      - An administrator can look at servers of another one in check mode, and remove them. To start some, log in to their project.
    type: str
  servers:
    description: Servers of the project.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Its name.
        type: str
        required: true
      image:
        description: The image that it starts from. Needed for a new one.
        type: str
      flavor:
        description: Its flavor. Needed for a new one.
        type: str
      host:
        description: The Poplar server that it runs on, as Nova calls it. That takes an administrator's role.
        type: str
      key_pair:
        description: The key pair of the user who asks that it lets in.
        type: str
      user_data:
        description: What cloud-init is to do at the first start.
        type: str
      config_drive:
        description: Whether it gets this by a drive of its own.
        type: bool
      networks:
        description: Its interfaces, in order.
        type: list
        elements: dict
        suboptions:
          network:
            description: The network.
            type: str
            required: true
          name:
            description: What the port is called, after the name of the server. The network unless given.
            type: str
          addresses:
            description: Its addresses.
            type: list
            elements: str
          subnets:
            description: Subnets from which it gets any address each, beside O(servers[].networks[].addresses).
            type: list
            elements: str
          port_security:
            description: Whether it is filtered.
            type: bool
          security_groups:
            description: Its security groups.
            type: list
            elements: str
          vnic_type:
            description: What the server gets of it, like V(direct) for a virtual function.
            type: str
            choices: [normal, direct, direct-physical, macvtap, baremetal, virtio-forwarder]
          hardware_offload:
            description:
              - Whether Open vSwitch lets the card forward its packets, with a virtual function whose card is in the mode C(switchdev).
              - With V(direct), Open vSwitch binds a port only so in Neutron, and the SR-IOV agent only otherwise. A port that nobody has is made anew to
                change it.
              - Takes Neutron 2023.2 or later with ML2's extension driver C(port_hardware_offload_type).
            type: bool
  state:
    description: Whether the servers are to be there. With them go their ports, those too that are not named, and that a start that failed has left.
    type: str
    choices: [present, absent]
    default: present
  recreate:
    description: Whether a server with another image, flavor or host is made anew. What is on its disks is lost.
    type: bool
    default: false
  wait_timeout:
    description: How many seconds a server may take to start or to go.
    type: float
    default: 300.0
seealso:
  - module: openipu.pod.openstack_pod_network
"""

EXAMPLES = r"""
- name: A Poplar VM with a virtual function on the data network
  openipu.pod.openstack_pod_server:
    cloud: tenant-a
    pod: vpod1
    servers:
      - name: vpod1-poplar
        image: poplar
        flavor: poplar.1of2
        host: poplar1
        user_data: "{{ lookup('ansible.builtin.file', 'user-data.yml') }}"
        networks:
          - {network: pod64-data, name: data, vnic_type: direct, hardware_offload: true}
          - {network: pod64-management, name: management, security_groups: [pod64-poplar-management]}

- name: Remove it as the provider
  openipu.pod.openstack_pod_server:
    cloud: admin
    pod: vpod1
    project: tenant-a
    servers:
      - name: vpod1-poplar
        networks:
          - {network: pod64-data, name: data}
          - {network: pod64-management, name: management}
    state: absent
"""

RETURN = r"""
ports:
  description: The names of the ports that were created, updated, removed and left as they are.
  type: dict
  returned: always
  sample: {created: [vpod1-poplar-data], updated: [], recreated: [], removed: [], unchanged: []}
servers:
  description: The same of servers. One whose start had failed is among the recreated.
  type: dict
  returned: always
details:
  description: C(id), C(status) and C(addresses) by network, of every server, by name.
  type: dict
  returned: for O(state=present)
errors:
  description: What could not be written, each with C(kind), C(id) and C(msg).
  type: list
  elements: dict
  returned: when something could not be written
"""

from ansible_collections.openipu.pod.plugins.module_utils.openstack.server_task import OPENSTACK_POD_SERVER
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(OPENSTACK_POD_SERVER)


if __name__ == "__main__":
    main()
