# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configure a rack's power distribution unit, and switch its outlets."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pdu
short_description: Configure a rack's power distribution unit, and switch its outlets
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Brings identification, thresholds, trap receivers and outlets of a rack PDU to what O(config) says.
  - It reads what it is asked about, writes what differs in as few requests as it fits, and reads that back.
  - A request that the PDU refuses changes nothing. When one before it was carried out, the task fails and tells what was done and what not.
extends_documentation_fragment:
  - openipu.pod.pdu
  - openipu.pod.attributes
  - openipu.pod.attributes.pdu
attributes:
  check_mode:
    support: full
    details: The PDU is read and nothing is written.
  idempotent:
    support: full
    details: But for O(config.outlets[].command), which is carried out each time.
options:
  config:
    description: What the PDU is to be. What is not said here asks for nothing.
    type: dict
    suboptions:
      name:
        description: Its own name.
        type: str
      location:
        description: Where it says that it stands.
        type: str
      contact:
        description: Whom it says to call.
        type: str
      low_load:
        description: Power of all of it in kW below which it complains, in steps of 0.1.
        type: float
      near_overload:
        description: Power of all of it in kW from which on it warns, in steps of 0.1.
        type: float
      overload:
        description: Power of all of it in kW from which on it is overloaded, in steps of 0.1.
        type: float
      phases:
        description: Thresholds of its phases.
        type: list
        elements: dict
        suboptions:
          number:
            description: The phase. Without, the item is for all phases that have none of their own.
            type: int
          low_load:
            description: Current in A below which it complains.
            type: int
          near_overload:
            description: Current in A from which on it warns.
            type: int
          overload:
            description: Current in A from which on it is overloaded.
            type: int
      banks:
        description: Thresholds of its banks of outlets.
        type: list
        elements: dict
        suboptions:
          number:
            description: The bank. Without, the item is for all banks that have none of their own.
            type: int
          low_load:
            description: Current in A below which it complains.
            type: int
          near_overload:
            description: Current in A from which on it warns.
            type: int
          overload:
            description: Current in A from which on it is overloaded.
            type: int
      trap_receivers:
        description: Who is told of alarms. Others are left alone.
        type: list
        elements: dict
        suboptions:
          address:
            description: The IPv4 address.
            type: str
            required: true
          community:
            description:
              - The community that traps to it carry. Needed for a new one.
              - It stands in no result and no diff. It is compared only with a PDU that tells it.
            type: str
          enabled:
            description: Whether it is told. A new one is, unless this says otherwise.
            type: bool
      outlets:
        description: Its outlets. Only switched models can do anything with them; a metered one, like the AP8886, is refused.
        type: list
        elements: dict
        suboptions:
          number:
            description: The outlet.
            type: int
            required: true
          name:
            description: What is plugged in.
            type: str
          state:
            description: Whether it gives power. It is turned on or off at once, and waited for.
            type: str
            choices: ['on', 'off']
          command:
            description: V(reboot) turns it off, and on again after O(config.outlets[].reboot_duration), each time that the task runs.
            type: str
            choices: [reboot]
          on_delay:
            description: Seconds from when the PDU gets power until the outlet gives it; V(-1) is never.
            type: int
          off_delay:
            description: Seconds from when it is told to turn off, with a delay, until it does; V(-1) is never.
            type: int
          reboot_duration:
            description: Seconds for which a reboot leaves it without power.
            type: int
  state:
    description:
      - V(merged) makes true what O(config) says.
      - V(gathered) tells what is configured, in the words of O(config), without communities.
    type: str
    choices: [merged, gathered]
    default: merged
  wait_timeout:
    description: How many seconds outlets may take to do what they are told.
    type: float
    default: 120.0
seealso:
  - module: openipu.pod.pdu_info
"""

EXAMPLES = r"""
- name: Say what it is, and have it warn before its breakers do
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

- name: Turn a server off and on again at a switched PDU that speaks SNMP v2c only
  openipu.pod.pdu:
    host: 10.1.3.133
    version: v2c
    community: "{{ pdu_community }}"
    config:
      outlets:
        - {number: 4, name: server2, command: reboot}

- name: See how it is configured
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
  description: The names of the settings of all of it that were updated and left as they are.
  type: dict
  returned: for O(state=merged), when O(config) has any
  sample: {created: [], updated: [name, location], recreated: [], removed: [], unchanged: [contact]}
phases:
  description: The same of phases, by number.
  type: dict
  returned: for O(state=merged), when O(config) has any
banks:
  description: The same of banks, by number.
  type: dict
  returned: for O(state=merged), when O(config) has any
trap_receivers:
  description: The same of trap receivers, by address, and those that were created.
  type: dict
  returned: for O(state=merged), when O(config) has any
outlets:
  description: The same of outlets, by number. One that was rebooted is among the updated.
  type: dict
  returned: for O(state=merged), when O(config) has any
gathered:
  description: What is configured, in the words of O(config).
  type: dict
  returned: for O(state=gathered)
errors:
  description: What could not be written, each with C(kind), C(id) and C(msg).
  type: list
  elements: dict
  returned: when something could not be written
"""

from ansible_collections.openipu.pod.plugins.module_utils.pdu.tasks import PDU_TASK
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(PDU_TASK)


if __name__ == "__main__":
    main()
