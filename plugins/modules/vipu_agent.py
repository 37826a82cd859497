#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manage an agent of a V-IPU controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vipu_agent
short_description: Manage an agent of a V-IPU controller
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Registers the agent of an IPU-Machine with a V-IPU controller, changes where it is reached, or removes it.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes
  - openipu.pod.attributes.vipu
options:
  id:
    description: Its name, 1 to 63 letters, digits, C(.), C(_) or C(-).
    type: str
    required: true
  host:
    description: Address or name of the IPU-Machine on the gateway network.
    type: str
  port:
    description: TCP port of the agent. That of a new one is 8080 unless given.
    type: int
  state:
    description:
      - V(present) makes sure that the agent is there as the options say.
      - V(absent) makes sure that it is not.
    type: str
    choices: [present, absent]
    default: present
  force:
    description: Remove the cluster that has the agent, with all in it, along with it.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Register the agent of the lowest IPU-Machine
  openipu.pod.vipu_agent:
    api_host: 10.3.1.101
    id: ag01
    host: 10.2.1.1

- name: Remove an agent
  openipu.pod.vipu_agent:
    api_host: 10.3.1.101
    id: ag16
    state: absent
"""

RETURN = r"""
agent:
  description: The agent as it is now, or in check mode as it would be; none when it is gone.
  type: dict
  returned: success
  sample: {id: ag01, host: 10.2.1.1, port: 8080, state: Up, cluster: cl0, allocation: team-a}
"""

from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module
from ansible_collections.openipu.pod.plugins.module_utils.vipu.tasks import VIPU_AGENT


def main() -> None:
    run_module(VIPU_AGENT)


if __name__ == "__main__":
    main()
