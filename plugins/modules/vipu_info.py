#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell what a V-IPU controller holds."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vipu_info
short_description: Tell what a V-IPU controller holds
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Lists agents, clusters, allocations, partitions and users of a controller, its version, and how many more partitions fit.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes.info
  - openipu.pod.attributes.vipu
options:
  gather_subset:
    description:
      - What to ask for; every entry costs a call.
      - V(fits) counts, for each allocation and each of O(sizes), how many more partitions of that size find a place.
    type: list
    elements: str
    choices: [version, agents, clusters, allocations, partitions, users, fits]
    default: [version, agents, clusters, allocations, partitions]
  sizes:
    description: The sizes of partition, in IPUs, that V(fits) in O(gather_subset) counts.
    type: list
    elements: int
    default: [1, 2, 4, 8, 16, 32, 64]
"""

EXAMPLES = r"""
- name: Which agents are down?
  openipu.pod.vipu_info:
    api_host: 10.3.1.101
    gather_subset: [agents]
  register: controller

- name: Say it
  ansible.builtin.debug:
    msg: "{{ controller.agents | selectattr('state', 'equalto', 'Down') | map(attribute='id') }}"

- name: Is there room for another sixteen IPUs?
  openipu.pod.vipu_info:
    api_host: 10.3.1.101
    gather_subset: [fits]
    sizes: [16]
"""

RETURN = r"""
version:
  description: The version of the controller.
  type: str
  returned: when asked for
  sample: 0.1.0
agents:
  description: The agents.
  type: list
  elements: dict
  returned: when asked for
  sample: [{id: ag01, host: 10.2.1.1, port: 8080, state: Up, cluster: cl0, allocation: team-a}]
clusters:
  description: The clusters.
  type: list
  elements: dict
  returned: when asked for
  sample: [{id: cl0, agents: [ag01, ag02], num_ilds: 1, topology: torus, cluster_topology: looped, allocations: [team-a]}]
allocations:
  description: The allocations, with what is free in them.
  type: list
  elements: dict
  returned: when asked for
  sample: [{id: team-a, cluster: cl0, size: 2, agents: [ag01, ag02], partitions: [vision], free_ipus: 4, free_machines: [1]}]
partitions:
  description: The partitions.
  type: list
  elements: dict
  returned: when asked for
  sample: [{id: vision, allocation: team-a, size: 4, routing: dnc, state: ACTIVE}]
users:
  description: The users.
  type: list
  elements: dict
  returned: when asked for
  sample: [{id: alice, role: user, allocations: [team-a]}]
fits:
  description: How many more partitions of a size find a place, by allocation and size.
  type: dict
  returned: when asked for
  sample: {team-a: {"16": 1}}
"""

from ansible_collections.openipu.pod.plugins.module_utils.vipu.infos import VIPU_INFO
from ansible_collections.openipu.pod.plugins.module_utils.vipu.runner import run_module


def main() -> None:
    run_module(VIPU_INFO)


if __name__ == "__main__":
    main()
