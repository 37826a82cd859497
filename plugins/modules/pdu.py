# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configure a rack PDU and switch its outlets."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pdu
short_description: Configure a rack PDU and switch its outlets
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Configures identification, thresholds, trap receivers and outlets of a rack power distribution unit (PDU) as in O(config).
  - The module reads the settings in O(config), writes those that differ in as few requests as possible, and verifies them.
  - A request that the PDU rejects changes nothing. If an earlier request succeeded, the error message lists the settings that were changed
    and those that were not.
  - Run tasks that add different trap receivers one after the other, because a PDU cannot be locked.
extends_documentation_fragment:
  - openipu.pod.pdu
  - openipu.pod.attributes
  - openipu.pod.attributes.pdu_group
attributes:
  check_mode:
    support: full
    details: Only reads from the PDU.
  idempotent:
    support: full
    details: Except for O(config.outlets[].command), which is executed in every run.
options:
  config:
    description: Desired configuration of the PDU. Required for O(state=merged). Omitted settings stay unchanged.
    type: dict
    suboptions:
      name:
        description: Name of the PDU.
        type: str
      location:
        description: Location of the PDU.
        type: str
      contact:
        description: Contact for the PDU.
        type: str
      low_load:
        description: Total power in kW below which the PDU raises a low load alarm, in steps of 0.1.
        type: float
      near_overload:
        description: Total power in kW from which the PDU raises a near overload alarm, in steps of 0.1.
        type: float
      overload:
        description: Total power in kW from which the PDU raises an overload alarm, in steps of 0.1.
        type: float
      phases:
        description: Thresholds of phases.
        type: list
        elements: dict
        suboptions:
          number:
            description: Number of the phase. Omit to configure all phases without an item of their own.
            type: int
          low_load:
            description: Current in A below which the PDU raises a low load alarm.
            type: int
          near_overload:
            description: Current in A from which the PDU raises a near overload alarm.
            type: int
          overload:
            description: Current in A from which the PDU raises an overload alarm.
            type: int
      banks:
        description: Thresholds of banks of outlets.
        type: list
        elements: dict
        suboptions:
          number:
            description: Number of the bank. Omit to configure all banks without an item of their own.
            type: int
          low_load:
            description: Current in A below which the PDU raises a low load alarm.
            type: int
          near_overload:
            description: Current in A from which the PDU raises a near overload alarm.
            type: int
          overload:
            description: Current in A from which the PDU raises an overload alarm.
            type: int
      trap_receivers:
        description: Receivers of SNMP traps. Other configured receivers stay unchanged.
        type: list
        elements: dict
        suboptions:
          address:
            description: IPv4 address of the receiver.
            type: str
            required: true
          community:
            description:
              - Community of its traps. Required for a new receiver.
              - It is never part of results and diffs. It is only compared if the PDU reports it.
            type: str
          enabled:
            description: Whether traps are sent to the receiver. The default for a new one is V(true).
            type: bool
      outlets:
        description: Outlets. Requires a switched model. Metered models, like the AP8886, are rejected.
        type: list
        elements: dict
        suboptions:
          number:
            description: Number of the outlet.
            type: int
            required: true
          name:
            description: Name of the outlet, usually the connected device.
            type: str
          state:
            description: Power state. The outlet is switched immediately, and the task waits for completion.
            type: str
            choices: ['on', 'off']
          command:
            description: V(reboot) turns the outlet off, and on again after O(config.outlets[].reboot_duration), in every run of the task.
            type: str
            choices: [reboot]
          on_delay:
            description: Seconds from power-on of the PDU until the outlet turns on. V(-1) means never.
            type: int
          off_delay:
            description: Seconds from a delayed off command until the outlet turns off. V(-1) means never.
            type: int
          reboot_duration:
            description: Seconds without power during a reboot.
            type: int
  state:
    description:
      - V(merged) applies O(config).
      - V(gathered) returns the configuration in the form of O(config), without communities.
    type: str
    choices: [merged, gathered]
    default: merged
  wait_timeout:
    description: Timeout for outlets to execute commands, in seconds.
    type: float
    default: 120.0
seealso:
  - module: openipu.pod.pdu_info
"""

EXAMPLES = r"""
- name: Configure identification, thresholds and a trap receiver
  openipu.pod.pdu:
    host: 10.1.3.131
    username: admin
    auth_key: "{{ pdu_auth_key }}"
    priv_key: "{{ pdu_priv_key }}"
    config:
      name: pdu1
      location: rack1
      contact: hall1@example.com
      near_overload: 17.6
      overload: 22
      phases:
        - {near_overload: 26, overload: 32}
      banks:
        - {near_overload: 13, overload: 16}
        - {number: 6, near_overload: 8, overload: 10}
      trap_receivers:
        - {address: 10.1.3.101, community: "{{ trap_community }}"}

- name: Power-cycle a server at a switched PDU that supports only SNMPv2c
  openipu.pod.pdu:
    host: 10.1.3.133
    version: v2c
    community: "{{ pdu_community }}"
    config:
      outlets:
        - {number: 4, name: server2, command: reboot}

- name: Read the configuration
  openipu.pod.pdu:
    host: 10.1.3.131
    username: admin
    auth_key: "{{ pdu_auth_key }}"
    priv_key: "{{ pdu_priv_key }}"
    state: gathered
  register: gathered
"""

RETURN = r"""
settings:
  description: Changes of settings of the whole PDU, as lists of names.
  type: dict
  returned: for O(state=merged), when O(config) sets any of them
  sample: {created: [], updated: [name, location], recreated: [], removed: [], unchanged: [contact]}
phases:
  description: Changes of phases, as lists of numbers.
  type: dict
  returned: for O(state=merged), when O(config) sets any of them
banks:
  description: Changes of banks, as lists of numbers.
  type: dict
  returned: for O(state=merged), when O(config) sets any of them
trap_receivers:
  description: Changes of trap receivers, as lists of addresses.
  type: dict
  returned: for O(state=merged), when O(config) sets any of them
outlets:
  description: Changes of outlets, as lists of numbers. Rebooted outlets are in C(updated).
  type: dict
  returned: for O(state=merged), when O(config) sets any of them
gathered:
  description: Configuration of the PDU, in the form of O(config).
  type: dict
  returned: for O(state=gathered)
errors:
  description: Objects that could not be written, each with C(kind), C(id), C(msg) and C(error_code).
  type: list
  elements: dict
  returned: when an object could not be written
"""

from ansible_collections.openipu.pod.plugins.module_utils.pdu.task import PDU_TASK
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(PDU_TASK)


if __name__ == "__main__":
    main()
