#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell how a machine is, by Redfish."""

from __future__ import annotations

DOCUMENTATION = r"""
module: redfish_info
short_description: Tell how a machine is, by the Redfish of its BMC
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Reads systems, managers and versions of firmware from a BMC, that of an IPU-Machine or a server, and fails when one is powered off or not healthy.
  - Asks for nothing but Redfish's basic profile, one request after the other. What a BMC does not tell is none in the result and no problem.
extends_documentation_fragment:
  - openipu.pod.attributes.info
options:
  host:
    description: Name or address of the BMC.
    type: str
    required: true
  port:
    description: Its port for HTTPS.
    type: int
    default: 443
  username:
    description: Who logs in. Without it, nobody does.
    type: str
  password:
    description: The password of O(username).
    type: str
  ca_path:
    description: The authority that signed the certificate of the BMC, a PEM file. Those that the host knows unless given.
    type: path
  validate_certs:
    description: Whether the certificate is verified. Without that, anybody in the network can get the password.
    type: bool
    default: true
  timeout:
    description: How many seconds one request may take.
    type: float
    default: 30.0
  fail_on_problem:
    description: Whether the task fails when something is wrong. Otherwise look at RV(problems).
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: See that the machine is on and healthy
  openipu.pod.redfish_info:
    host: 10.1.1.3
    username: root
    password: "{{ vault_bmc_password }}"
    ca_path: /etc/ssl/certs/pod-ca.pem

- name: Look, and do not fail
  openipu.pod.redfish_info:
    host: 10.1.1.3
    username: root
    password: "{{ vault_bmc_password }}"
    fail_on_problem: false
  register: bmc
"""

RETURN = r"""
redfish_version:
  description: The version of Redfish.
  type: str
  returned: when it answers
  sample: 1.15.0
systems:
  description: The computers.
  type: list
  elements: dict
  returned: when it answers
  sample: [{id: system, name: ipum03, manufacturer: Graphcore, model: IPU-M2000, serial: 8203921-0103, power: "On", state: Enabled, health: OK}]
managers:
  description: The BMCs.
  type: list
  elements: dict
  returned: when it answers
  sample: [{id: bmc, model: OpenBmc, version: 2.3.1, state: Enabled, health: OK}]
firmware:
  description: Versions of firmware, where there is an inventory of it.
  type: list
  elements: dict
  returned: when it answers
  sample: [{id: bmc_active, version: 2.3.1, state: Enabled, health: OK}]
problems:
  description: A sentence for everything that is powered off or not healthy.
  type: list
  elements: str
  returned: when it answers
  sample: ["System system of the BMC at 10.1.1.3 is powered off."]
"""

from ansible_collections.openipu.pod.plugins.module_utils.redfish import REDFISH_INFO
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(REDFISH_INFO)


if __name__ == "__main__":
    main()
