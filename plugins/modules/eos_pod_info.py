# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell what an Arista switch is and sees, and whether cables are in the right ports."""

from __future__ import annotations

DOCUMENTATION = r"""
module: eos_pod_info
short_description: Tell what an Arista switch is and sees, and whether cables are in the right ports
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Reads version, ports, LLDP neighbours and learnt MAC addresses of a switch, in one request.
  - Compares them with the cables of the POD model, and names every device that is in the wrong port.
  - Who was not heard yet is called neither right nor wrong.
extends_documentation_fragment:
  - openipu.pod.eos
  - openipu.pod.attributes.info
  - openipu.pod.attributes.eos
options:
  host:
    description: Name or address of the switch; its eAPI has to be on (C(management api http-commands)).
    type: str
    required: true
  cables:
    description:
      - What belongs where. The inventory plugin P(openipu.pod.pod#inventory) gives it for every switch of a POD as C(pod_cables).
      - Without, nothing is compared.
    type: list
    elements: dict
    suboptions:
      device:
        description: The device.
        type: str
        required: true
      connector:
        description: What of it the cable is in.
        type: str
        required: true
      port:
        description: The port of the switch.
        type: str
        required: true
      macs:
        description: The MAC addresses that are heard from it there.
        type: list
        elements: str
      vlans:
        description: Not looked at.
        type: list
        elements: int
  fail_on_findings:
    description: Whether the task fails when something is in the wrong port.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: See whether everything is plugged in where it belongs
  openipu.pod.eos_pod_info:
    host: "{{ ansible_host }}"
    username: admin
    password: "{{ switch_password }}"
    cables: "{{ pod_cables }}"
    fail_on_findings: true
"""

RETURN = r"""
switch:
  description: What it is.
  type: dict
  returned: success
  sample: {hostname: tor1, model: DCS-7060CX-32S-F, version: 4.28.3M, serial: JPE12345678, mac: '28:99:3a:00:00:01'}
interfaces:
  description: Its ports by name, with status, description, bandwidth (bit/s) and VLAN.
  type: dict
  returned: success
neighbors:
  description: Who was heard by LLDP, with the port and the port at the other end.
  type: list
  elements: dict
  returned: success
macs:
  description: MAC addresses that were learnt, with VLAN and port.
  type: list
  elements: dict
  returned: success
ok:
  description: Whether nothing was found wrong; null when there was nothing to compare with.
  type: bool
  returned: success
findings:
  description: What was found wrong.
  type: list
  elements: dict
  returned: success
  contains:
    kind:
      description: V(wrong_port), V(link_down) or V(no_port).
      type: str
      returned: always
    device:
      description: The device.
      type: str
      returned: always
    connector:
      description: What of it the cable is in.
      type: str
      returned: always
    port:
      description: Where it belongs.
      type: str
      returned: always
    found:
      description: Where it was found instead, if that is known.
      type: str
      returned: always
    reason:
      description: The same in a sentence.
      type: str
      returned: always
"""

from ansible_collections.openipu.pod.plugins.module_utils.eos.infos import EOS_POD_INFO
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(EOS_POD_INFO)


if __name__ == "__main__":
    main()
