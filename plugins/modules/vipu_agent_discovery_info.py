#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""List the agents that a V-IPU controller has discovered."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vipu_agent_discovery_info
short_description: List the agents that a V-IPU controller has discovered
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Lists the agents that announce themselves by multicast. The controller must listen for them. Graphcore's controller needs the option
    C(--autodiscovery-listen-interfaces).
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes.info
  - openipu.pod.attributes.vipu_group
options: {}
"""

EXAMPLES = r"""
- name: List discovered agents
  openipu.pod.vipu_agent_discovery_info:
    api_host: 10.3.1.101
  register: discovered

- name: Register new agents
  openipu.pod.vipu_agent:
    api_host: 10.3.1.101
    id: "{{ item.auto_add_id }}"
    host: "{{ item.host }}"
    port: "{{ item.port }}"
  loop: "{{ discovered.agents | rejectattr('agent') }}"
  loop_control:
    label: "{{ item.auto_add_id }}"
"""

RETURN = r"""
agents:
  description: The recently discovered agents.
  type: list
  elements: dict
  returned: success
  contains:
    host:
      description: Address of the agent.
      type: str
      sample: 10.2.1.1
    port:
      description: TCP port of the agent.
      type: int
      sample: 8080
    interface:
      description: Network interface of the controller that received the announcement.
      type: str
      sample: eno3
    age:
      description: Seconds since the last announcement.
      type: float
      sample: 2.15
    auto_add_id:
      description: ID that automatic registration would use.
      type: str
      sample: 10.2.1.1-8080
    agent:
      description: ID of the registered agent; null when it is not registered.
      type: str
      sample: ag01
    conflict:
      description: Reason why automatic registration would reject the agent; null when it would not.
      type: str
      sample: agent '10.2.1.1-8080' is registered at 10.2.1.9:8080
  sample:
    - {host: 10.2.1.1, port: 8080, interface: eno3, age: 2.15, auto_add_id: 10.2.1.1-8080, agent: null, conflict: null}
"""

from ansible_collections.openipu.pod.plugins.module_utils.vipu.tasks.discovery_info_task import (
    VIPU_AGENT_DISCOVERY_INFO,
)
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(VIPU_AGENT_DISCOVERY_INFO)


if __name__ == "__main__":
    main()
