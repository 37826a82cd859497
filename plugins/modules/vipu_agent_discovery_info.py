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
  - Lists the agents that tell of themselves by multicast, for a controller that listens for them.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes.info
  - openipu.pod.attributes.vipu
options: {}
"""

EXAMPLES = r"""
- name: Who is out there?
  openipu.pod.vipu_agent_discovery_info:
    api_host: 10.3.1.101
  register: heard

- name: Register all of them
  openipu.pod.vipu_pod:
    api_host: 10.3.1.101
    agents: "{{ heard.agents | selectattr('agent', 'none') | json_query('[].{id: auto_add_id, host: host, port: port}') }}"
"""

RETURN = r"""
agents:
  description: The agents that were heard lately; C(agent) is the name of one that is registered already.
  type: list
  elements: dict
  returned: success
  sample: [{host: 10.2.1.1, port: 8080, interface: eno3, age: 2.15, auto_add_id: 10.2.1.1-8080, agent: null}]
"""

from ansible_collections.openipu.pod.plugins.module_utils.vipu.infos import VIPU_AGENT_DISCOVERY_INFO
from ansible_collections.openipu.pod.plugins.module_utils.vipu.runner import run_module


def main() -> None:
    run_module(VIPU_AGENT_DISCOVERY_INFO)


if __name__ == "__main__":
    main()
