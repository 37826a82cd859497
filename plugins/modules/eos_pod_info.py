# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the state of an Arista switch and check its cables."""

from __future__ import annotations

DOCUMENTATION = r"""
module: eos_pod_info
short_description: Read the state of an Arista switch and check its cables
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Reads version, ports, LLDP neighbours and learnt MAC addresses of a switch, in one request.
  - Compares them with the cables of the POD model, and reports every device in a wrong port.
  - Devices that the switch has not detected yet are not reported as misplaced.
extends_documentation_fragment:
  - openipu.pod.eos
  - openipu.pod.attributes.info
  - openipu.pod.attributes.eos_group
options:
  host:
    description: Name or address of the switch. Its eAPI must be enabled (C(management api http-commands)).
    type: str
    required: true
  cables:
    description:
      - Expected cables. The inventory plugin P(openipu.pod.pod#inventory) provides them for every switch of a POD as C(pod_cables).
      - Omit to skip the check.
    type: list
    elements: dict
    suboptions:
      device:
        description: Name of the device.
        type: str
        required: true
      connector:
        description: Connector of the device.
        type: str
        required: true
      port:
        description: Port of the switch.
        type: str
        required: true
      macs:
        description: MAC addresses of the device at this connector.
        type: list
        elements: str
      vlans:
        description: Ignored. Accepted so that C(pod_cables) can be passed unchanged.
        type: list
        elements: int
  fail_on_findings:
    description: Whether the task fails when RV(findings) is not empty. The failed result has only the findings, because Ansible prints it.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Check the cables of the switch
  openipu.pod.eos_pod_info:
    host: "{{ ansible_host }}"
    username: admin
    password: "{{ switch_password }}"
    cables: "{{ pod_cables }}"
    fail_on_findings: true
"""

RETURN = r"""
switch:
  description: Identity of the switch.
  type: dict
  returned: success
  sample: {hostname: tor1, model: DCS-7060CX-32S-F, version: 4.28.3M, serial: JPE12345678, mac: '28:99:3a:00:00:01'}
interfaces:
  description: Ports by name, with status, description, bandwidth (bit/s) and VLAN.
  type: dict
  returned: success
neighbors:
  description: LLDP neighbours, with the port of the switch (C(port)) and of the neighbour (C(device_port)).
  type: list
  elements: dict
  returned: success
macs:
  description: Learnt MAC addresses, with VLAN and port.
  type: list
  elements: dict
  returned: success
ok:
  description: Whether there are no findings; null without O(cables).
  type: bool
  returned: success
findings:
  description: Defects of cables.
  type: list
  elements: dict
  returned: success, and failure with O(fail_on_findings)
  contains:
    kind:
      description: V(wrong_port) for a device in another port, V(link_down) for a port without a link, V(no_port) for a port that the switch lacks.
      type: str
      returned: always
    device:
      description: Name of the device.
      type: str
      returned: always
    connector:
      description: Connector of the device.
      type: str
      returned: always
    port:
      description: Expected port.
      type: str
      returned: always
    found:
      description: Actual port, or null if unknown.
      type: str
      returned: always
    reason:
      description: Message that describes the finding.
      type: str
      returned: always
"""

from ansible_collections.openipu.pod.plugins.module_utils.eos.info_task import EOS_POD_INFO
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(EOS_POD_INFO)


if __name__ == "__main__":
    main()
