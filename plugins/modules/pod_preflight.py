#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""See whether everything is in place for a bring-up."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pod_preflight
short_description: See whether everything is in place for a bring-up
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Checks the versions of Python, ansible-core and the libraries that the collection uses, the description of the POD, whether the
    controller answers, and whether agents do.
  - Makes one readable report. Fails with every problem it has found, each with its remedy.
  - Checks the Python that the module runs with. Run it where the V-IPU tasks will run.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes.info
  - openipu.pod.attributes.vipu
options:
  pod_file:
    description:
      - The description of the POD, C(pod.yml). The inventory plugin gives its path as the variable C(pod_file).
      - It is read where the module runs. Without it, the description is not checked.
    type: path
  machines_file:
    description: The table of IPU-Machines, when it is not the one that O(pod_file) names.
    type: path
  reach:
    description: Whether the controller and O(agents) are asked. Without, nothing is sent, for a rack whose network is yet to be made.
    type: bool
    default: true
  agents:
    description: Agents that are to answer. They do on the IPU-Gateway network only.
    type: list
    elements: dict
    default: []
    suboptions:
      id:
        description: Its name.
        type: str
        required: true
      host:
        description: Its address.
        type: str
        required: true
      port:
        description: Its TCP port.
        type: int
        default: 8080
"""

EXAMPLES = r"""
- name: Look before the leap
  openipu.pod.pod_preflight:
    api_host: "{{ vipu_api_host }}"
    api_port: "{{ vipu_api_port }}"
    pod_file: "{{ pod_file }}"
    agents: "{{ vipu_pod_agents }}"

- name: See whether a controller answers
  openipu.pod.pod_preflight:
    api_host: 10.3.1.101
"""

RETURN = r"""
report:
  description: All checks as lines to read.
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
      description: What was looked at.
      type: str
      sample: grpcio
    found:
      description: What was found.
      type: str
      sample: 1.70.0
    problem:
      description: What is wrong and what to do; null when it is well.
      type: str
      sample: "grpcio 1.70.0 is older than 1.80: pip install 'grpcio>=1.80'"
problems:
  description: Every problem with its remedy.
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
