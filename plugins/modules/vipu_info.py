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
  - Lists agents, clusters, allocations, partitions and users of a controller, its version, what its IPUs are, and how many more
    partitions fit.
  - Agents, clusters and users are for administrators. A controller that offers only the public user API tells nothing but V(version),
    V(partitions) and V(ipu_attributes), and the task fails when it is asked for more.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes.info
  - openipu.pod.attributes.vipu
options:
  gather_subset:
    description:
      - What to ask for; every entry costs a call.
      - V(fits) counts, for each allocation and each of O(sizes), how many more partitions of that size find a place, each size by itself.
        O(transport=cli) cannot tell it.
    type: list
    elements: str
    choices: [version, agents, clusters, allocations, partitions, users, ipu_attributes, fits]
    default: [version, agents, clusters, allocations, partitions]
  sizes:
    description: The sizes of partition, in IPUs, that V(fits) in O(gather_subset) counts.
    type: list
    elements: int
    default: [1, 2, 4, 8, 16, 32, 64]
"""

EXAMPLES = r"""
- name: Ask for the agents
  openipu.pod.vipu_info:
    api_host: 10.3.1.101
    gather_subset: [agents]
  register: controller

- name: Stop when one is down
  ansible.builtin.assert:
    that: controller.agents | selectattr('state', 'ne', 'Up') | length == 0
    fail_msg: "Not up: {{ controller.agents | selectattr('state', 'ne', 'Up') | map(attribute='id') | join(', ') }}"

- name: Ask whether there is room for another sixteen IPUs
  openipu.pod.vipu_info:
    api_host: 10.3.1.101
    gather_subset: [fits]
    sizes: [16]
  register: room

- name: Stop when there is none
  ansible.builtin.assert:
    that: room.fits['team-a']['16'] > 0
    fail_msg: Allocation team-a has no place for a partition of sixteen IPUs.
"""

RETURN = r"""
version:
  description: The version of the controller.
  type: str
  returned: when asked for
  sample: 0.1.0
agents:
  description:
    - The agents. C(state) is Up, Down, or Unknown before the first answer; C(reason) says why one is not Up.
    - C(versions) of its components are there once it has answered, and not with O(transport=cli).
  type: list
  elements: dict
  returned: when asked for
  sample: [{id: ag01, host: 10.2.1.1, port: 8080, state: Up, reason: null, cluster: cl0, allocation: team-a, versions: {Virm: 1.18.0}}]
clusters:
  description: The clusters.
  type: list
  elements: dict
  returned: when asked for
  sample: [{id: cl0, agents: [ag01, ag02], num_ilds: 1, topology: torus, cluster_topology: looped, allocations: [team-a]}]
allocations:
  description:
    - The allocations, with what is free in them.
    - C(free_machines) are the lengths of the runs of free IPU-Machines, longest first.
  type: list
  elements: dict
  returned: when asked for
  sample: [{id: team-a, cluster: cl0, size: 2, agents: [ag01, ag02], partitions: [vision], free_ipus: 4, free_machines: [1]}]
partitions:
  description: The partitions; M(openipu.pod.vipu_partition_info) tells more of each.
  type: list
  elements: dict
  returned: when asked for
  sample: [{id: vision, allocation: team-a, cluster: cl0, size: 4, num_gcds: 1, routing: dnc, reconfigurable: true, state: ACTIVE}]
users:
  description: The users.
  type: list
  elements: dict
  returned: when asked for
  sample: [{id: alice, role: user, allocations: [team-a]}]
ipu_attributes:
  description: What the agents that are Up tell of their IPUs, by agent and number of the IPU.
  type: dict
  returned: when asked for
  sample: {ag01: {"0": {board type: M2000, clock: 1330MHz, firmware version: 2.4.4}}}
fits:
  description: How many more partitions of a size find a place, by allocation and size.
  type: dict
  returned: when asked for
  sample: {team-a: {"16": 1}}
"""

from ansible_collections.openipu.pod.plugins.module_utils.vipu.infos import VIPU_INFO
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(VIPU_INFO)


if __name__ == "__main__":
    main()
