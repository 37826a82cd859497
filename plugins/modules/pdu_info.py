# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the load of a rack PDU and check whether more load fits."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pdu_info
short_description: Read the load of a rack PDU and check whether more load fits
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Reads load, energy and alarms of a rack power distribution unit (PDU), in total and by phase and bank of outlets, and the remaining
    headroom of its breakers.
  - Checks whether an additional load would exceed a breaker. If so, the task fails, unless O(fail_on_excess=false).
  - Powers are computed with a power factor of 1. For a load with another power factor, set kVA instead of kW.
extends_documentation_fragment:
  - openipu.pod.pdu
  - openipu.pod.attributes.info
  - openipu.pod.attributes.pdu_group
options:
  added_loads:
    description:
      - Loads to add to the present load. Omit to add none.
      - A load without O(added_loads[].phase) and O(added_loads[].bank) is distributed evenly over the phases. A load on a phase is distributed
        evenly over the banks of that phase.
    type: list
    elements: dict
    suboptions:
      power:
        description: Power of the load, in kW.
        type: float
        required: true
      phase:
        description: Number of the phase.
        type: int
      bank:
        description: Number of the bank.
        type: int
  expected_power:
    description:
      - Total power when all devices are on, in kW. The difference from the present power is checked as a load, distributed evenly over the phases.
        Omit to check only O(added_loads).
      - The same value is valid before and after the devices are powered on.
    type: float
  breaker_share:
    description: Usable share of the rating of a breaker, above 0 and at most 1. For continuous loads in North America, the rule is C(0.8).
    type: float
    default: 1.0
  fail_on_excess:
    description: Whether the task fails when the load would exceed a breaker. The failed result has only the message, because Ansible prints it.
    type: bool
    default: true
seealso:
  - module: openipu.pod.pdu
"""

EXAMPLES = r"""
- name: Check whether two more IPU-Machines fit on bank 3
  openipu.pod.pdu_info:
    host: 10.1.3.131
    username: reader
    auth_key: "{{ pdu_auth_key }}"
    priv_key: "{{ pdu_priv_key }}"
    added_loads:
      - {bank: 3, power: 3}

- name: Check the expected power without failing
  openipu.pod.pdu_info:
    host: 10.1.3.131
    username: reader
    auth_key: "{{ pdu_auth_key }}"
    priv_key: "{{ pdu_priv_key }}"
    expected_power: 19.5
    fail_on_excess: false
  register: pdu1
"""

RETURN = r"""
pdu:
  description: Identity and ratings of the PDU. C(phase_breaker) is in A, C(power_rating) in kW.
  type: dict
  returned: success
  sample:
    name: pdu1
    location: rack1
    contact: hall1@example.com
    model: AP8886
    serial: ZA1234567890
    firmware: v6.9.6
    hardware: '05'
    outlets: 42
    switched_outlets: 0
    phase_breaker: 32
    power_rating: 22.0
device:
  description:
    - Total load, with C(power), C(rating) and C(headroom_power) in kW, C(apparent_power) in kVA, and C(energy) in kWh. The headroom is the
      power that may be added.
    - C(load_state) is V(low_load), V(normal), V(near_overload) or V(overload). Values that the model does not report are omitted.
  type: dict
  returned: success
  sample: {power: 9.61, apparent_power: 9.9, energy: 1204.5, load_state: normal, rating: 22.0, headroom_power: 12.39}
phases:
  description: Load of each phase, with C(current), C(breaker) and C(headroom) in A, C(voltage) in V, and powers in kW.
  type: list
  elements: dict
  returned: success
  sample:
    - {number: 1, current: 14.2, voltage: 230, power: 3.2, load_state: normal, breaker: 32, headroom: 17.8, headroom_power: 4.09}
banks:
  description: Load of each bank of outlets, in the same units, and the phases that supply it.
  type: list
  elements: dict
  returned: success
  sample:
    - {number: 1, current: 7.1, load_state: normal, phases: [1], breaker: 16, headroom: 8.9, headroom_power: 2.05}
outlets:
  description: Number, name, state and bank of each outlet. Empty for a PDU without switched outlets.
  type: list
  elements: dict
  returned: success
  sample: [{number: 1, name: server1, state: 'on', bank: 1}]
alarms:
  description: Active alarms, with C(kind), C(number), C(state) and the message C(reason).
  type: list
  elements: dict
  returned: success
  sample: [{kind: bank, number: 3, state: near_overload, reason: 'Bank 3 is near overload, at 13.4 A.'}]
fits:
  description: Whether the load fits all breakers. Null without O(added_loads) and O(expected_power).
  type: bool
  returned: success
excesses:
  description:
    - Limits that the load would exceed, with C(kind), C(number), the C(present) and the C(added) load, the C(limit), and the message C(reason).
    - Values are in A for breakers, and in kW for the whole PDU.
  type: list
  elements: dict
  returned: success
excess_message:
  description: Message that the load does not fit. Empty when it fits.
  type: str
  returned: when O(added_loads) or O(expected_power) was given
"""

from ansible_collections.openipu.pod.plugins.module_utils.pdu.info_task import PDU_INFO
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(PDU_INFO)


if __name__ == "__main__":
    main()
