#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell which agents a V-IPU controller has heard."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vipu_agent_discovery_info
short_description: Tell which agents a V-IPU controller has heard
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Lists the agents that tell of themselves by multicast, for a controller that listens for them. Graphcore's own does so when it is
    started with C(--autodiscovery-listen-interfaces).
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes.info
  - openipu.pod.attributes.vipu
options: {}
"""

EXAMPLES = r"""
- name: See who is out there
  openipu.pod.vipu_agent_discovery_info:
    api_host: 10.3.1.101
  register: heard

- name: Register those that are not registered yet
  openipu.pod.vipu_agent:
    api_host: 10.3.1.101
    id: "{{ item.auto_add_id }}"
    host: "{{ item.host }}"
    port: "{{ item.port }}"
  loop: "{{ heard.agents | rejectattr('agent') }}"
  loop_control:
    label: "{{ item.auto_add_id }}"
"""

RETURN = r"""
agents:
  description: The agents that were heard lately.
  type: list
  elements: dict
  returned: success
  contains:
    host:
      description: Where the agent listens.
      type: str
      sample: 10.2.1.1
    port:
      description: The TCP port on which it does.
      type: int
      sample: 8080
    interface:
      description: The network interface of the controller on which it was heard.
      type: str
      sample: eno3
    age:
      description: How many seconds ago it was heard last.
      type: float
      sample: 2.15
    auto_add_id:
      description: The name that automatic registration would give it.
      type: str
      sample: 10.2.1.1-8080
    agent:
      description: The name under which it is registered; null when it is not.
      type: str
      sample: ag01
  sample: [{host: 10.2.1.1, port: 8080, interface: eno3, age: 2.15, auto_add_id: 10.2.1.1-8080, agent: null}]
"""

from ansible_collections.openipu.pod.plugins.module_utils.vipu.infos import VIPU_AGENT_DISCOVERY_INFO
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(VIPU_AGENT_DISCOVERY_INFO)


if __name__ == "__main__":
    main()
