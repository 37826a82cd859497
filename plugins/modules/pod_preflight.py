#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run preflight checks of a bring-up."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pod_preflight
short_description: Run preflight checks of a bring-up
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Checks the versions of Python, ansible-core and the libraries of the collection, C(pod.yml), and the connections to controller and agents.
  - Returns one readable report. Fails with all problems and their remedies.
  - Checks the Python that runs the module. Run it on the host of the V-IPU tasks.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes.info
  - openipu.pod.attributes.vipu_group
options:
  pod_file:
    description:
      - Path of C(pod.yml). The inventory plugin sets the variable C(pod_file).
      - The file is read on the host of the module. Omit to skip this check.
    type: path
  machines_file:
    description: Path of the table of IPU-Machines. Omit to use the path in O(pod_file).
    type: path
  reach:
    description: Whether to connect to the controller and O(agents). Disable it while the network of the rack is not configured.
    type: bool
    default: true
  agents:
    description: Agents to connect to. They are reachable only on the IPU-Gateway network.
    type: list
    elements: dict
    default: []
    suboptions:
      id:
        description: ID of the agent.
        type: str
        required: true
      host:
        description: Address of the agent.
        type: str
        required: true
      port:
        description: TCP port of the agent.
        type: int
        default: 8080
"""

EXAMPLES = r"""
- name: Run preflight checks
  openipu.pod.pod_preflight:
    api_host: "{{ vipu_api_host }}"
    api_port: "{{ vipu_api_port }}"
    pod_file: "{{ pod_file }}"
    agents: "{{ vipu_pod_agents }}"

- name: Check that a controller responds
  openipu.pod.pod_preflight:
    api_host: 10.3.1.101
"""

RETURN = r"""
report:
  description: All checks as readable lines.
  type: list
  elements: str
  returned: always
  sample: ["ok   Python  3.11.7", "ok   controller 10.3.1.101:8090  version 1.18.0"]
checks:
  description: All checks.
  type: list
  elements: dict
  returned: always
  contains:
    name:
      description: Name of the check.
      type: str
      sample: grpcio
    found:
      description: Actual value.
      type: str
      sample: 1.70.0
    problem:
      description: Problem and remedy; null without a problem.
      type: str
      sample: "grpcio 1.70.0 is older than 1.80: pip install 'grpcio>=1.80'"
problems:
  description: All problems with their remedies.
  type: list
  elements: str
  returned: always
  sample: []
"""

from ansible_collections.openipu.pod.plugins.module_utils.preflight import POD_PREFLIGHT
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(POD_PREFLIGHT)


if __name__ == "__main__":
    main()
