#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""List the objects of a V-IPU controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vipu_info
short_description: List the objects of a V-IPU controller
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Lists agents, clusters, allocations, partitions and users of a controller, its version, attributes of its IPUs, and the number of further
    partitions that fit.
  - Only administrators can list agents, clusters and users. A controller that offers only the public user API returns V(version), V(partitions)
    and V(ipu_attributes); the task fails for other values.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes.info
  - openipu.pod.attributes.vipu_group
options:
  gather_subset:
    description:
      - Values to return. Each value needs one call.
      - V(fits) counts the further partitions that fit in each allocation, separately for each size in O(sizes). It is not available with
        O(transport=cli).
    type: list
    elements: str
    choices: [version, agents, clusters, allocations, partitions, users, ipu_attributes, fits]
    default: [version, agents, clusters, allocations, partitions]
  sizes:
    description: Sizes of partitions for V(fits) in O(gather_subset), in IPUs.
    type: list
    elements: int
    default: [1, 2, 4, 8, 16, 32, 64]
"""

EXAMPLES = r"""
- name: List the agents
  openipu.pod.vipu_info:
    api_host: 10.3.1.101
    gather_subset: [agents]
  register: controller

- name: Fail when an agent is down
  ansible.builtin.assert:
    that: controller.agents | selectattr('state', 'ne', 'Up') | length == 0
    fail_msg: "Not up: {{ controller.agents | selectattr('state', 'ne', 'Up') | map(attribute='id') | join(', ') }}"

- name: Count the partitions of sixteen IPUs that fit
  openipu.pod.vipu_info:
    api_host: 10.3.1.101
    gather_subset: [fits]
    sizes: [16]
  register: room

- name: Fail when none fits
  ansible.builtin.assert:
    that: room.fits['team-a']['16'] > 0
    fail_msg: Allocation team-a has no place for a partition of sixteen IPUs.
"""

RETURN = r"""
secure:
  description:
    - Whether the controller was read with TLS and an access key. An open controller accepts neither.
    - Without them, every client on the network of the controller has all rights.
  type: bool
  returned: always
version:
  description: The version of the controller.
  type: str
  returned: when selected by O(gather_subset)
  sample: 0.1.0
agents:
  description:
    - The agents. C(state) is Up, Down, or Unknown before the first reply. C(reason) is the cause of another state than Up.
    - C(versions) are available after the first reply, but not with O(transport=cli).
    - C(in_service) is V(false) for an agent that receives no new partitions. C(service_reason) is not available with O(transport=cli).
    - C(take_over) is V(false) for an agent whose machine another deployment, controller or agent uses, and missing for others and with O(transport=cli).
  type: list
  elements: dict
  returned: when selected by O(gather_subset)
  sample:
    - {id: ag01, host: 10.2.1.1, port: 8080, state: Up, reason: null, cluster: cl0, allocation: team-a, versions: {Virm: 1.18.0}, in_service: true}
clusters:
  description: The clusters.
  type: list
  elements: dict
  returned: when selected by O(gather_subset)
  sample: [{id: cl0, agents: [ag01, ag02], num_ilds: 1, topology: torus, cluster_topology: looped, allocations: [team-a]}]
allocations:
  description:
    - The allocations with their free IPUs and IPU-Machines.
    - C(free_machines) are the lengths of the sequences of free IPU-Machines, longest first.
  type: list
  elements: dict
  returned: when selected by O(gather_subset)
  sample: [{id: team-a, cluster: cl0, size: 2, agents: [ag01, ag02], partitions: [vision], free_ipus: 4, free_machines: [1]}]
partitions:
  description: The partitions. M(openipu.pod.vipu_partition_info) returns more details.
  type: list
  elements: dict
  returned: when selected by O(gather_subset)
  sample: [{id: vision, allocation: team-a, cluster: cl0, size: 4, num_gcds: 1, routing: dnc, reconfigurable: true, state: ACTIVE}]
users:
  description: The users. The allocations of a user that may use all of them are V(['*']).
  type: list
  elements: dict
  returned: when selected by O(gather_subset)
  sample: [{id: alice, role: user, allocations: [team-a]}]
ipu_attributes:
  description: Attributes of IPUs by agent and IPU number, for agents that are Up.
  type: dict
  returned: when selected by O(gather_subset)
  sample: {ag01: {"0": {board type: M2000, clock: 1330MHz, firmware version: 2.4.4}}}
fits:
  description: Number of further partitions that fit, by allocation and size.
  type: dict
  returned: when selected by O(gather_subset)
  sample: {team-a: {"16": 1}}
"""

from ansible_collections.openipu.pod.plugins.module_utils.vipu.tasks.info_task import VIPU_INFO
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(VIPU_INFO)


if __name__ == "__main__":
    main()
