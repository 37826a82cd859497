# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell what a rack's power distribution unit carries, and whether it can carry more."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pdu_info
short_description: Tell what a rack's power distribution unit carries, and whether it can carry more
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Reads load, energy and alarms of a rack PDU, of all of it, its phases and its banks of outlets, and what their breakers still let through.
  - Says whether a load that is about to be powered would exceed a breaker, and fails when it would, unless told otherwise.
  - Powers are reckoned with a power factor of 1; give kVA instead of kW for a load that has another.
extends_documentation_fragment:
  - openipu.pod.pdu
  - openipu.pod.attributes.info
  - openipu.pod.attributes.pdu
options:
  added_loads:
    description:
      - What is to be powered in addition to what is.
      - A load without a place is spread evenly over the phases, and one on a phase over the banks of that phase.
    type: list
    elements: dict
    suboptions:
      power:
        description: How much, in kW.
        type: float
        required: true
      phase:
        description: On which phase.
        type: int
      bank:
        description: On which bank.
        type: int
  expected_power:
    description:
      - What the PDU is to deliver in all when everything is on, in kW. What it does not deliver yet is to come, evenly over the phases.
      - It is the same question before and after everything was powered.
    type: float
  breaker_share:
    description: How much of a breaker may be used, from 0 to 1. In North America C(0.8) is the rule for what is on all the time.
    type: float
    default: 1.0
  fail_on_excess:
    description: Whether the task fails when a breaker would be exceeded.
    type: bool
    default: true
seealso:
  - module: openipu.pod.pdu
"""

EXAMPLES = r"""
- name: Is there room for two more IPU-Machines on bank 3?
  openipu.pod.pdu_info:
    host: 10.1.3.131
    username: reader
    auth_key: "{{ pdu_auth_key }}"
    priv_key: "{{ pdu_priv_key }}"
    added_loads:
      - {bank: 3, power: 3}

- name: Look, and do not fail
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
  description: What it is. C(phase_breaker) is in A, C(power_rating) in kW.
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
    - The load of all of it, with C(power) and C(rating) in kW, C(apparent_power) in kVA, C(energy) in kWh, and C(headroom_power), what may
      be added, in kW. C(load_state) is V(low_load), V(normal), V(near_overload) or V(overload). What the model does not tell is left out.
  type: dict
  returned: success
  sample: {power: 9.61, apparent_power: 9.9, energy: 1204.5, load_state: normal, rating: 22.0, headroom_power: 12.39}
phases:
  description: The load of each phase, with C(current), C(breaker) and C(headroom) in A, C(voltage) in V, and powers in kW.
  type: list
  elements: dict
  returned: success
  sample:
    - {number: 1, current: 14.2, voltage: 230, power: 3.2, load_state: normal, breaker: 32, headroom: 17.8, headroom_power: 4.09}
banks:
  description: The load of each bank of outlets, in the same units, and the phases that it draws from.
  type: list
  elements: dict
  returned: success
  sample:
    - {number: 1, current: 7.1, load_state: normal, phases: [1], breaker: 16, headroom: 8.9, headroom_power: 2.05}
outlets:
  description: Number, name, state and bank of each outlet; empty for a PDU that cannot switch them.
  type: list
  elements: dict
  returned: success
  sample: [{number: 1, name: server1, state: 'on', bank: 1}]
alarms:
  description: What it complains of, with C(kind), C(number), C(state) and C(reason), a sentence.
  type: list
  elements: dict
  returned: success
  sample: [{kind: bank, number: 3, state: near_overload, reason: 'Bank 3 is near overload, at 13.4 A.'}]
fits:
  description: Whether no breaker would be exceeded; null when nothing was asked.
  type: bool
  returned: success
excesses:
  description:
    - The breakers that would be, with C(kind), C(number), what they carry now (C(present)), what is C(added), the C(limit), in A or, for
      all of it, in kW, and C(reason).
  type: list
  elements: dict
  returned: success
refusal:
  description: Why it is not to be powered, in a sentence; empty when it may be.
  type: str
  returned: when O(added_loads) or O(expected_power) was given
"""

from ansible_collections.openipu.pod.plugins.module_utils.pdu.infos import PDU_INFO
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(PDU_INFO)


if __name__ == "__main__":
    main()
