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
  - Brings VLANs, ports, port-channels and services of a switch to what O(config) says, in one configuration session.
  - It asks one request of a switch that is as it should be, and four of one that is not.
  - The change is committed with a timer, and confirmed over a connection of its own. A change that cuts off the management of the switch
    therefore takes itself back.
  - The switch says itself what the session changes, and that is the diff.
extends_documentation_fragment:
  - openipu.pod.eos
  - openipu.pod.attributes
  - openipu.pod.attributes.eos
attributes:
  check_mode:
    support: full
    details: The switch is asked for the difference in a session that is then aborted.
options:
  config:
    description:
      - What the switch is to be configured with. The inventory plugin P(openipu.pod.pod#inventory) gives it for every switch of a POD
        as C(pod_switch_config).
      - What is not said here asks for nothing with O(state=merged).
    type: dict
    suboptions:
      vlans:
        description: VLANs.
        type: list
        elements: dict
        suboptions:
          id:
            description: Its number, 1 to 4094.
            type: int
            required: true
          name:
            description: Its name.
            type: str
      interfaces:
        description: Ports, port-channels and other interfaces.
        type: list
        elements: dict
        suboptions:
          name:
            description: As EOS prints it, like V(Ethernet9/1), V(Port-Channel1) or V(Management1).
            type: str
            required: true
          description:
            description: What is at the other end.
            type: str
          enabled:
            description: Whether it is up.
            type: bool
          mtu:
            description: The largest packet, in bytes.
            type: int
          address:
            description: Its address with the length of the prefix, like V(10.1.3.111/24).
            type: str
          mode:
            description: V(access) for one VLAN, V(trunk) for several with tags, V(routed) for none.
            type: str
            choices: [access, trunk, routed]
          access_vlan:
            description: The VLAN of O(config.interfaces[].mode=access).
            type: int
          native_vlan:
            description: The VLAN of frames without a tag, of O(config.interfaces[].mode=trunk).
            type: int
          trunk_vlans:
            description: The VLANs of O(config.interfaces[].mode=trunk).
            type: list
            elements: int
          port_channel:
            description: The port-channel that it belongs to.
            type: dict
            suboptions:
              id:
                description: Its number.
                type: int
                required: true
              lacp:
                description: Whether it speaks LACP, waits for the other end to do so, or does without.
                type: str
                choices: [active, passive, 'on']
                default: active
          edge:
            description: Whether a host is at the other end, for which spanning tree need not wait.
            type: bool
          lldp:
            description: Whether it sends and receives LLDP.
            type: bool
          dscp_trust:
            description: Whether the DSCP of packets chooses their class.
            type: bool
          no_drop:
            description: Priorities with flow control, whose frames are paused instead of dropped. An empty list turns it off.
            type: list
            elements: int
          ecn:
            description: Marks packets of one queue when it fills, for DCQCN.
            type: dict
            suboptions:
              queue:
                description: The queue.
                type: int
                required: true
              minimum:
                description: Kilobytes in the queue from which on some are marked.
                type: int
                required: true
              maximum:
                description: Kilobytes in the queue from which on all are marked.
                type: int
                required: true
      hostname:
        description: Its own name.
        type: str
      lldp:
        description: Whether LLDP runs at all.
        type: bool
      spanning_tree:
        description: The kind of spanning tree.
        type: str
        choices: [mstp, rstp, rapid-pvst, none]
      ntp_servers:
        description: Whom it asks for the time.
        type: list
        elements: str
      syslog_servers:
        description: Whom it sends its log.
        type: list
        elements: str
      gateways:
        description: Next hops of its default route.
        type: list
        elements: str
      snmp_location:
        description: Where it says that it stands.
        type: str
      snmp_contact:
        description: Whom it says to call.
        type: str
      snmp_communities:
        description: Communities that may read it by SNMP.
        type: list
        elements: str
      pfc_watchdog_timeout:
        description: Seconds for which a queue may be paused before the watchdog acts.
        type: float
      pfc_watchdog_recovery:
        description: Seconds without a pause after which it lets the queue go again.
        type: float
      pfc_watchdog_action:
        description: What the watchdog does with a queue that is stuck.
        type: str
        choices: [drop, errdisable, notify-only]
  state:
    description:
      - V(merged) makes true what O(config) says. Lists are added to.
      - V(replaced) makes every interface that O(config) names exactly so, what is not said becoming what it is by default, and lists and
        settings too. Interfaces, VLANs and settings that it does not name are left alone.
      - V(rendered) asks no switch, and gives the commands for an empty one.
      - V(gathered) tells what is configured, in the words of O(config), without what is as it is by default and without
        O(config.snmp_communities), which are secrets.
    type: str
    choices: [merged, replaced, rendered, gathered]
    default: merged
  model:
    description: The product for O(state=rendered), like V(DCS-7060CX-32S-F), for some products have words of their own.
    type: str
  confirm_timeout:
    description: Seconds after which the switch takes the change back unless it was confirmed. With V(0) it is committed for good at once.
    type: float
    default: 60.0
  save:
    description: Also write it to the configuration that the switch starts with.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Bring every switch to what the POD model says
  openipu.pod.eos_pod:
    host: "{{ ansible_host }}"
    username: admin
    password: "{{ switch_password }}"
    ca_path: ca.pem
    config: "{{ pod_switch_config }}"
    state: replaced

- name: One port more
  openipu.pod.eos_pod:
    host: 10.1.3.111
    username: admin
    password: "{{ switch_password }}"
    config:
      vlans:
        - {id: 11, name: data}
      interfaces:
        - {name: Ethernet25/1, description: storage1, mode: trunk, trunk_vlans: [11, 12], mtu: 9214, edge: true}

- name: See the commands without a switch
  openipu.pod.eos_pod:
    state: rendered
    model: DCS-7060CX-32S-F
    config: "{{ pod_switch_config }}"
  register: rendered
"""

RETURN = r"""
commands:
  description: The commands of the session, those that are needed only. Secrets are left out.
  type: list
  elements: str
  returned: always but for O(state=gathered)
  sample: [interface Ethernet9/1, switchport access vlan 11, exit]
vlans:
  description: The numbers of the VLANs that were created, updated and left as they are.
  type: dict
  returned: for O(state=merged) and O(state=replaced)
  sample: {created: [11, 12], updated: [], recreated: [], removed: [], unchanged: []}
interfaces:
  description: The same by name.
  type: dict
  returned: for O(state=merged) and O(state=replaced)
settings:
  description: The same of everything else.
  type: dict
  returned: for O(state=merged) and O(state=replaced)
gathered:
  description: What is configured, in the words of O(config).
  type: dict
  returned: for O(state=gathered)
  contains:
    vlans:
      description: VLANs.
      type: list
      elements: dict
      returned: always
    interfaces:
      description: Interfaces that are not as they are by default.
      type: list
      elements: dict
      returned: always
"""

from ansible_collections.openipu.pod.plugins.module_utils.eos.tasks import EOS_POD
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(EOS_POD)


if __name__ == "__main__":
    main()
