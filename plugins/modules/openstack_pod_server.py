# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manage servers on the networks of a POD."""

from __future__ import annotations

DOCUMENTATION = r"""
module: openstack_pod_server
short_description: Manage servers on the networks of a POD
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Creates a port for each network of a server, then the server with these ports, and waits until the server is active. It also waits for a server that
    an earlier run started. Servers are removed before their ports.
  - Image and flavor are checked before any port is created. In check mode, see O(predict_missing).
  - A server that failed to start is recreated. One with the status C(ERROR) that ran before is an error, unless O(recreate) is set.
  - An existing server of another O(pod) is rejected.
extends_documentation_fragment:
  - openipu.pod.openstack
  - openipu.pod.attributes
  - openipu.pod.attributes.openstack_group
attributes:
  check_mode:
    support: full
    details: Reads everything and writes nothing.
options:
  pod:
    description: Name of the owning POD or vPOD. Servers and ports get the tag C(openipu.pod=NAME).
    type: str
    required: true
  project:
    description:
      - Name or ID of the project of the servers. The default is the project of the credentials.
      - In another project, an administrator can remove servers, and check them in check mode. To create servers, log in to their project.
    type: str
  servers:
    description: Servers of the project.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the server.
        type: str
        required: true
      image:
        description:
          - Name of the image. Required for a new server.
          - The image is one of the project, a public one, or one that is shared with the project, which has accepted it.
          - An existing server keeps its image. It is compared by name, unless that image is removed or not visible. So an image can be replaced by a
            new one of the same name. With O(recreate), the server then gets the new image. A renamed image counts as another one.
        type: str
      flavor:
        description: Name of the flavor. Required for a new server.
        type: str
      host:
        description: Name of the Poplar server that runs the VM, as in Nova. Requires the role of an administrator. Omit to let Nova choose.
        type: str
      key_pair:
        description: Name of the SSH key pair, which belongs to the user of the credentials.
        type: str
      user_data:
        description: User data for cloud-init at the first start.
        type: str
      config_drive:
        description: Whether the server gets its user data on a config drive.
        type: bool
      networks:
        description: Network interfaces, in order. An existing server gets no new ports. A network without a port is then an error.
        type: list
        elements: dict
        suboptions:
          network:
            description: Name of the network.
            type: str
            required: true
          name:
            description: Suffix of the name of the port, after the name of the server. The default is the name of the network.
            type: str
          addresses:
            description: IP addresses.
            type: list
            elements: str
          address_choices:
            description:
              - IP addresses to choose from, in order of preference. The port gets the first one that no other port of its network has.
              - When another client takes that address first, the task chooses the next one.
              - A port that is in use, or that has one of them, keeps its addresses.
              - Mutually exclusive with O(servers[].networks[].addresses) and O(servers[].networks[].subnets).
            type: list
            elements: str
          subnets:
            description: Subnets of a new port. It gets a free address from each of them, in addition to O(servers[].networks[].addresses).
            type: list
            elements: str
          port_security:
            description: Whether port security is enabled.
            type: bool
          security_groups:
            description: Names of the security groups.
            type: list
            elements: str
          vnic_type:
            description: Type of the virtual NIC of a server, such as V(direct) for a virtual function.
            type: str
            choices: [normal, direct, direct-physical, macvtap, baremetal, virtio-forwarder]
          hardware_offload:
            description:
              - Whether the card forwards the packets for Open vSwitch. Requires a virtual function of a card in C(switchdev) mode.
              - With V(direct), Neutron binds the port with Open vSwitch if this is V(true), and with the SR-IOV agent otherwise. An unused port
                is recreated to change it.
              - Requires Neutron 2023.2 or later with the ML2 extension driver C(port_hardware_offload_type), or Nova 2024.1 or later, which takes
                the mode from the card. With such a Nova and without the driver, the option is ignored.
            type: bool
  state:
    description: Whether the servers exist. V(absent) also removes all their ports, including unused ones of a failed start.
    type: str
    choices: [present, absent]
    default: present
  recreate:
    description:
      - Whether to recreate a server with another or an older image, another flavor or host, or with the status C(ERROR).
      - The data on its disks is lost.
    type: bool
    default: false
  predict_missing:
    description:
      - Whether check mode accepts new servers whose image or flavor does not exist yet, such as those that an earlier task of the run creates.
      - Set V(false) for tasks that have C(check_mode=true) in a run without check mode. Ignored without check mode.
    type: bool
    default: true
  wait_timeout:
    description: Timeout in seconds for the start or the removal of a server.
    type: float
    default: 300.0
seealso:
  - module: openipu.pod.openstack_pod_network
"""

EXAMPLES = r"""
- name: Create a Poplar VM with a virtual function on the data network
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

- name: Remove the VM of a tenant
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
  description: Names of the created, updated, recreated, removed and unchanged ports.
  type: dict
  returned: always
  sample: {created: [vpod1-poplar-data], updated: [], recreated: [], removed: [], unchanged: []}
servers:
  description: Names of the servers, as for RV(ports). A server that had failed to start is recreated.
  type: dict
  returned: always
details:
  description: Servers by name, each with C(id), C(status) and C(addresses) by network.
  type: dict
  returned: for O(state=present)
ids:
  description: IDs by kind and name, such as C(ids.servers). Check mode has no IDs of new objects. Objects without an ID have no entry.
  type: dict
  returned: always
  sample: {servers: {vpod1-poplar: 5f0b...}}
errors:
  description: Objects that could not be written, each with C(kind), C(id), C(msg) and C(error_code).
  type: list
  elements: dict
  returned: when an object could not be written
"""

from ansible_collections.openipu.pod.plugins.module_utils.openstack.server.task import OPENSTACK_POD_SERVER
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(OPENSTACK_POD_SERVER)


if __name__ == "__main__":
    main()
