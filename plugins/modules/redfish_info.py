#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the health of a machine through the Redfish API of its BMC."""

from __future__ import annotations

DOCUMENTATION = r"""
module: redfish_info
short_description: Read the health of a machine through the Redfish API of its BMC
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Reads systems, managers and firmware versions from the BMC of an IPU-Machine or a server. Reports items that are powered off or not healthy.
  - Uses only the basic profile of Redfish, and sends one request at a time. Values that the BMC does not report are null, and not a problem.
extends_documentation_fragment:
  - openipu.pod.attributes.info
options:
  host:
    description: Name or address of the BMC.
    type: str
    required: true
  port:
    description: HTTPS port of the BMC.
    type: int
    default: 443
  username:
    description: User name. Omit for anonymous access.
    type: str
  password:
    description: Password of O(username).
    type: str
  ca_path:
    description: PEM file with the CA certificate to verify the certificate of the BMC. Omit to use the CA certificates of the host.
    type: path
  validate_certs:
    description: Whether to verify the certificate. Without verification, another host in the network can obtain the password.
    type: bool
    default: true
  timeout:
    description: Timeout of one request, in seconds.
    type: float
    default: 30.0
  fail_on_problem:
    description: Whether the task fails when RV(problems) is not empty.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Verify that the machine is on and healthy
  openipu.pod.redfish_info:
    host: 10.1.1.3
    username: root
    password: "{{ vault_bmc_password }}"
    ca_path: /etc/ssl/certs/pod-ca.pem
    fail_on_problem: true

- name: Read the health without failing
  openipu.pod.redfish_info:
    host: 10.1.1.3
    username: root
    password: "{{ vault_bmc_password }}"
  register: bmc
"""

RETURN = r"""
redfish_version:
  description: Version of Redfish.
  type: str
  returned: when the BMC responds
  sample: 1.15.0
systems:
  description: Systems, that is, the computers that the BMC manages.
  type: list
  elements: dict
  returned: when the BMC responds
  sample: [{id: system, name: ipum03, manufacturer: Graphcore, model: IPU-M2000, serial: 8203921-0103, power: "On", state: Enabled, health: OK}]
managers:
  description: Managers, that is, the BMCs.
  type: list
  elements: dict
  returned: when the BMC responds
  sample: [{id: bmc, model: OpenBmc, version: 2.3.1, state: Enabled, health: OK}]
firmware:
  description: Firmware versions. Empty without a firmware inventory.
  type: list
  elements: dict
  returned: when the BMC responds
  sample: [{id: bmc_active, version: 2.3.1, state: Enabled, health: OK}]
problems:
  description: Messages about items that are powered off or not healthy.
  type: list
  elements: str
  returned: when the BMC responds
  sample: ["System system of the BMC at 10.1.1.3 is powered off."]
"""

from ansible_collections.openipu.pod.plugins.module_utils.redfish import REDFISH_INFO
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(REDFISH_INFO)


if __name__ == "__main__":
    main()
