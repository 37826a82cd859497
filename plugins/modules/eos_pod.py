# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configure an Arista switch of a POD in one session."""

from __future__ import annotations

DOCUMENTATION = r"""
module: eos_pod
short_description: Configure an Arista switch of a POD in one session
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Configures VLANs, ports, port-channels and services of a switch as in O(config), in one configuration session.
  - The module sends one request if nothing differs, otherwise four.
  - The change is committed with a timer and confirmed over a new connection. So the switch reverts a change that cuts off its management.
  - The diff is the difference that the switch reports for the session.
  - When another session is committed at the same time, the module reverts its own change, reads the configuration again, and commits the remaining
    differences. It waits for the commit timer of that session, at most O(confirm_timeout) seconds. With O(confirm_timeout=0), it waits at most
    O(timeout) seconds.
extends_documentation_fragment:
  - openipu.pod.eos
  - openipu.pod.attributes
  - openipu.pod.attributes.eos_group
attributes:
  check_mode:
    support: full
    details: The switch reports the difference of a session, which is then aborted.
options:
  config:
    description:
      - Desired configuration of the switch. Required unless O(state=gathered). The inventory plugin P(openipu.pod.pod#inventory) provides it for every
        switch of a POD as C(pod_switch_config).
      - With O(state=merged), omitted settings stay unchanged.
    type: dict
    suboptions:
      vlans:
        description: VLANs.
        type: list
        elements: dict
        suboptions:
          id:
            description: VLAN ID, 1 to 4094.
            type: int
            required: true
          name:
            description: Name of the VLAN.
            type: str
      interfaces:
        description: Ports, port-channels and other interfaces.
        type: list
        elements: dict
        suboptions:
          name:
            description: Name in the form that EOS prints, like V(Ethernet9/1), V(Port-Channel1) or V(Management1).
            type: str
            required: true
          description:
            description: Description of the interface, usually the connected device.
            type: str
          enabled:
            description: Whether the interface is administratively up.
            type: bool
          mtu:
            description: MTU in bytes.
            type: int
          address:
            description: Address with prefix length, like V(10.1.3.111/24).
            type: str
          mode:
            description: V(access) for one untagged VLAN, V(trunk) for several tagged VLANs, V(routed) for none.
            type: str
            choices: [access, trunk, routed]
          access_vlan:
            description: VLAN ID for O(config.interfaces[].mode=access).
            type: int
          native_vlan:
            description: VLAN ID of untagged frames for O(config.interfaces[].mode=trunk).
            type: int
          trunk_vlans:
            description: IDs of the tagged VLANs for O(config.interfaces[].mode=trunk).
            type: list
            elements: int
          port_channel:
            description: Port-channel of which the interface is a member.
            type: dict
            suboptions:
              id:
                description: Number of the port-channel.
                type: int
                required: true
              lacp:
                description: V(active) initiates LACP, V(passive) waits for the LACP partner, V(on) uses no LACP.
                type: str
                choices: [active, passive, 'on']
                default: active
          edge:
            description: Whether the port is a spanning tree edge port, which forwards at once. For ports of hosts.
            type: bool
          lldp:
            description: Whether the interface sends and receives LLDP.
            type: bool
          dscp_trust:
            description: Whether the switch trusts the DSCP of packets and derives their traffic class from it.
            type: bool
          no_drop:
            description: Priorities with priority flow control (PFC), whose frames are paused instead of dropped. An empty list disables it.
            type: list
            elements: int
          ecn:
            description: Explicit congestion notification (ECN) of one transmit queue, for DCQCN.
            type: dict
            suboptions:
              queue:
                description: Number of the queue.
                type: int
                required: true
              minimum:
                description: Queue length in kilobytes from which some packets are marked.
                type: int
                required: true
              maximum:
                description: Queue length in kilobytes from which all packets are marked.
                type: int
                required: true
      hostname:
        description: Host name of the switch.
        type: str
      lldp:
        description: Whether LLDP runs on the switch.
        type: bool
      spanning_tree:
        description: Spanning tree mode.
        type: str
        choices: [mstp, rstp, rapid-pvst, none]
      ntp_servers:
        description: NTP servers.
        type: list
        elements: str
      syslog_servers:
        description: Servers that receive the log of the switch.
        type: list
        elements: str
      gateways:
        description: Next hops of the default route.
        type: list
        elements: str
      snmp_location:
        description: SNMP location (C(sysLocation)).
        type: str
      snmp_contact:
        description: SNMP contact (C(sysContact)).
        type: str
      snmp_communities:
        description: SNMP communities with read access.
        type: list
        elements: str
      pfc_watchdog_timeout:
        description: Seconds of continuous pause after which the PFC watchdog acts on a queue.
        type: float
      pfc_watchdog_recovery:
        description: Seconds without a pause after which the PFC watchdog releases the queue.
        type: float
      pfc_watchdog_action:
        description: Action of the PFC watchdog on a stuck queue.
        type: str
        choices: [drop, errdisable, notify-only]
  state:
    description:
      - V(merged) applies O(config). Items of lists are added to the configured ones.
      - V(replaced) replaces each interface, list and setting in O(config). Omitted fields of an interface get their default. Interfaces, VLANs
        and settings that are not in O(config) stay unchanged.
      - V(rendered) returns the commands for a switch without configuration. It does not connect.
      - V(gathered) returns the configuration in the form of O(config), without default values and without O(config.snmp_communities),
        which are secrets.
    type: str
    choices: [merged, replaced, rendered, gathered]
    default: merged
  model:
    description:
      - Switch model for O(state=rendered), like V(DCS-7060CX-32S-F).
      - It selects the command of O(config.interfaces[].ecn), C(tx-queue) or C(uc-tx-queue). Omit for C(tx-queue).
    type: str
  confirm_timeout:
    description: Seconds after which the switch reverts the change unless it was confirmed. V(0) commits it without confirmation.
    type: float
    default: 60.0
  save:
    description: Whether to copy the changed configuration to the startup configuration.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Configure the switch as in the POD model
  openipu.pod.eos_pod:
    host: "{{ ansible_host }}"
    username: admin
    password: "{{ switch_password }}"
    ca_path: ca.pem
    config: "{{ pod_switch_config }}"
    state: replaced

- name: Add a port
  openipu.pod.eos_pod:
    host: 10.1.3.111
    username: admin
    password: "{{ switch_password }}"
    config:
      vlans:
        - {id: 11, name: data}
      interfaces:
        - {name: Ethernet25/1, description: storage1, mode: trunk, trunk_vlans: [11, 12], mtu: 9214, edge: true}

- name: Render the commands without a switch
  openipu.pod.eos_pod:
    state: rendered
    model: DCS-7060CX-32S-F
    config: "{{ pod_switch_config }}"
  register: rendered
"""

RETURN = r"""
commands:
  description: Commands of the session that change the configuration, without secrets.
  type: list
  elements: str
  returned: for all states but O(state=gathered)
  sample: [interface Ethernet9/1, switchport access vlan 11, exit]
vlans:
  description: Changes of VLANs, as lists of VLAN IDs.
  type: dict
  returned: for O(state=merged) and O(state=replaced)
  sample: {created: [11, 12], updated: [], recreated: [], removed: [], unchanged: []}
interfaces:
  description: Changes of interfaces, as lists of names.
  type: dict
  returned: for O(state=merged) and O(state=replaced)
settings:
  description: Changes of all other settings, as lists of names.
  type: dict
  returned: for O(state=merged) and O(state=replaced)
gathered:
  description: Configuration of the switch, in the form of O(config).
  type: dict
  returned: for O(state=gathered)
  contains:
    vlans:
      description: VLANs.
      type: list
      elements: dict
      returned: always
    interfaces:
      description: Interfaces with settings that differ from the default.
      type: list
      elements: dict
      returned: always
"""

from ansible_collections.openipu.pod.plugins.module_utils.eos.task import EOS_POD
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(EOS_POD)


if __name__ == "__main__":
    main()
