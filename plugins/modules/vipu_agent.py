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
  - Registers the agent of an IPU-Machine with a V-IPU controller, changes its address, or removes it.
  - Omitted options of an existing agent stay unchanged. A new agent gets the defaults of the controller.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes
  - openipu.pod.attributes.vipu_group
options:
  id:
    description: ID of the agent, 1 to 63 letters, digits, C(.), C(_) or C(-).
    type: str
    required: true
  host:
    description: Address or name of the IPU-Machine on the gateway network. Required with O(state=present).
    type: str
  port:
    description: TCP port of the agent. Omit to use 8080 for a new agent.
    type: int
  take_over:
    description:
      - Take the agent over when another deployment owns it. The task fails when the machine holds partitions of another agent of this deployment.
      - When the takeover fails, the agent is registered, and the task fails. The next run takes it over if another deployment still owns it.
      - With O(transport=cli), this applies only when the task registers or changes the agent.
      - Omit to register the agent without a takeover. If another deployment owns it, it is Down until that deployment removes it.
    type: bool
  in_service:
    description:
      - V(false) takes the IPU-Machine out of service. No new partitions are placed on it. Its partitions stay. See
        M(openipu.pod.vipu_agent_drain) to move them.
      - V(true) puts it into service.
      - Omit to leave the state unchanged. New agents are in service.
      - With O(transport=cli), this requires C(vipu-admin) of the open controller, and applies to registered agents only.
    type: bool
  service_reason:
    description:
      - Reason for administrators why the agent is out of service, one line of at most 200 characters.
      - Omit to leave it unchanged. It ends with O(in_service=true).
      - With O(transport=cli), this applies only when the task takes the agent out of service.
    type: str
  state:
    description:
      - V(present) makes sure that the agent exists with these options.
      - V(absent) makes sure that it does not exist.
    type: str
    choices: [present, absent]
    default: present
  force:
    description: Also remove the cluster of the agent with its allocations and partitions.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Register the agent of the lowest IPU-Machine
  openipu.pod.vipu_agent:
    api_host: 10.3.1.101
    id: ag01
    host: 10.2.1.1

- name: Take an IPU-Machine out of service
  openipu.pod.vipu_agent:
    api_host: 10.3.1.101
    id: ag03
    host: 10.2.1.3
    in_service: false
    service_reason: fan 2 fails

- name: Remove an agent
  openipu.pod.vipu_agent:
    api_host: 10.3.1.101
    id: ag16
    state: absent
"""

RETURN = r"""
agent:
  description: The agent after the task, in check mode the predicted agent; null after a removal.
  type: dict
  returned: success
  sample: {id: ag01, host: 10.2.1.1, port: 8080, state: Up, cluster: cl0, allocation: team-a, in_service: true, service_reason: null}
"""

from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module
from ansible_collections.openipu.pod.plugins.module_utils.vipu.tasks.object_task import VIPU_AGENT


def main() -> None:
    run_module(VIPU_AGENT)


if __name__ == "__main__":
    main()
