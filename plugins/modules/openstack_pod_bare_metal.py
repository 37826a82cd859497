# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Register the devices of a POD as bare-metal nodes."""

from __future__ import annotations

DOCUMENTATION = r"""
module: openstack_pod_bare_metal
short_description: Register the devices of a POD as bare-metal nodes
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Creates, changes and removes nodes of Ironic and their ports in one task. Ironic then shows and switches their power through Redfish.
  - Changes the provision state of idle nodes, and waits until Ironic has verified their BMCs. Nodes with an instance keep their state.
  - Nodes have the POD as C(openipu.pod) in C(extra). A node of another owner is rejected. A node with an instance is never removed.
  - The task never switches the power of a node.
  - Sets the maintenance of a node while its ports change, if Ironic requires that in its provision state.
  - Omitted settings stay unchanged, except the verification of certificates. Other properties, and other settings of a BMC, stay too.
extends_documentation_fragment:
  - openipu.pod.openstack
  - openipu.pod.attributes
  - openipu.pod.attributes.openstack_group
attributes:
  check_mode:
    support: full
    details: Reads everything and writes nothing. BMCs are not verified.
options:
  pod:
    description: Name of the POD that owns the nodes.
    type: str
    required: true
  nodes:
    description: Nodes. With O(state=absent), omit them to remove all nodes of the POD.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the node.
        type: str
        required: true
      driver:
        description: Hardware type. The default for a new node is V(redfish).
        type: str
      resource_class:
        description: Resource class, which flavors of Nova select.
        type: str
      description:
        description: Description of the node.
        type: str
      disable_power_off:
        description: Whether Ironic rejects requests to switch the node off. It requires Ironic 28.0 (2025.1) or later.
        type: bool
      automated_clean:
        description: Whether Ironic cleans the node before it becomes available.
        type: bool
      interfaces:
        description: Interfaces of the driver. Omitted ones have the default of the driver.
        type: dict
        suboptions:
          boot:
            description: Boot interface.
            type: str
          console:
            description: Console interface.
            type: str
          deploy:
            description: Deploy interface.
            type: str
          inspect:
            description: Inspection interface.
            type: str
          management:
            description: Management interface.
            type: str
          network:
            description: Network interface.
            type: str
          power:
            description: Power interface.
            type: str
          vendor:
            description: Vendor interface.
            type: str
      properties:
        description: Properties of the device, such as its serial number. Other properties are kept.
        type: dict
      traits:
        description: All traits. Others are removed.
        type: list
        elements: str
      bmc:
        description: Redfish service of the device.
        type: dict
        suboptions:
          address:
            description: Address, or URL if the port is not 443. Ironic connects with HTTPS.
            type: str
          username:
            description: User name.
            type: str
          password:
            description: Password. Ironic does not return it, so see O(update_password).
            type: str
          system_id:
            description: Path of the system, such as C(/redfish/v1/Systems/1). Omit it for a BMC with one system.
            type: str
          ca_path:
            description: >-
              Path of the CA certificates of the BMC, on the hosts of the conductors of Ironic. Omit it to verify with the authorities of
              their system.
            type: str
          validate_certs:
            description: Whether Ironic verifies the certificate of the BMC. With any other setting of O(nodes[].bmc), the default is V(true).
            type: bool
      ports:
        description: All ports. Others of the node are removed, except members of port groups.
        type: list
        elements: dict
        suboptions:
          mac:
            description: >-
              MAC, which identifies the port. A port of another node of the POD moves to this node, and leaves its port group with a warning.
            type: str
            required: true
          physical_network:
            description: Physical network of Neutron.
            type: str
          pxe_enabled:
            description: Whether the node boots from this port.
            type: bool
          local_link:
            description: Switch port at the other end of the cable.
            type: dict
            suboptions:
              switch_id:
                description: MAC of the switch.
                type: str
                required: true
              port_id:
                description: Name of the switch port.
                type: str
                required: true
              switch_info:
                description: Name of the switch.
                type: str
      state:
        description:
          - Provision state. V(manageable) is for devices without deployments. V(available) allows deployments, and cleans the node unless
            O(nodes[].automated_clean) is V(false). Cleaning erases disks.
          - Omit it to leave a new node in the state V(enroll), in which Ironic does not contact the BMC.
        type: str
        choices: [manageable, available]
  state:
    description:
      - V(present) creates and changes the listed nodes.
      - V(absent) removes the listed nodes, or all nodes of the POD.
    type: str
    choices: [present, absent]
    default: present
  prune:
    description: Whether to remove the nodes of the POD that are not in O(nodes).
    type: bool
    default: false
  update_password:
    description:
      - V(on_create) writes the password of new nodes, and of nodes whose BMC Ironic could not verify.
      - V(always) writes the passwords of all nodes. The task then always reports a change.
    type: str
    choices: [on_create, always]
    default: on_create
  wait_timeout:
    description: Timeout in seconds for the change of the provision state of a node.
    type: float
    default: 300.0
seealso:
  - module: openipu.pod.openstack_pod_network
  - module: openipu.pod.redfish_info
"""

EXAMPLES = r"""
- name: Register an IPU-Machine for its power state
  openipu.pod.openstack_pod_bare_metal:
    cloud: admin
    pod: pod64
    nodes:
      - name: ipum01
        resource_class: ipu-machine
        disable_power_off: true
        properties: {serial: 8203921-0101, rack: rack1, rack_unit: 3}
        traits: [CUSTOM_IPU_MACHINE]
        bmc:
          address: 10.1.1.1
          username: root
          password: "{{ vault_bmc_password }}"
          ca_path: /etc/ironic/bmc-ca.pem
        ports:
          - {mac: "0c:42:a1:00:05:01", physical_network: physnet100g, pxe_enabled: false}
        state: manageable

- name: Remove all nodes of a POD
  openipu.pod.openstack_pod_bare_metal:
    cloud: admin
    pod: pod64
    state: absent
"""

RETURN = r"""
nodes:
  description: Names of the created, updated, recreated, removed and unchanged nodes.
  type: dict
  returned: success
  sample: {created: [ipum01], updated: [], recreated: [], removed: [], unchanged: []}
ports:
  description: MACs of the ports, as for RV(nodes).
  type: dict
  returned: success
details:
  description: Nodes of the POD by name, each with C(id), C(provision_state), C(power_state) and C(maintenance).
  type: dict
  returned: for O(state=present)
  sample: {ipum01: {id: 5f0b..., provision_state: manageable, power_state: power on, maintenance: false}}
kept_ports:
  description:
    - Ports that stay although they are not desired, because they are in a port group. Each has C(mac), C(node) and C(group).
    - A warning names those of a group without any desired port, as after an exchange of an RNIC.
  type: list
  elements: dict
  returned: for O(state=present)
  sample: [{mac: "0c:42:a1:00:51:02", node: server2, group: 9d5e...}]
ids:
  description: IDs by kind and name or MAC, such as C(ids.nodes). Check mode has no IDs of new objects.
  type: dict
  returned: success
  sample: {nodes: {ipum01: 5f0b...}}
errors:
  description: Objects that could not be written, each with C(kind), C(id), C(msg) and C(error_code).
  type: list
  elements: dict
  returned: when an object could not be written
"""

from ansible_collections.openipu.pod.plugins.module_utils.openstack.bare_metal.task import OPENSTACK_POD_BARE_METAL
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(OPENSTACK_POD_BARE_METAL)


if __name__ == "__main__":
    main()
