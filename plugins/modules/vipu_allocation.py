#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manage an allocation of a V-IPU controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vipu_allocation
short_description: Manage an allocation of a V-IPU controller
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Allocates consecutive IPU-Machines of a cluster to a tenant, resizes the allocation around its partitions, or removes it.
  - Omitted options of an existing allocation stay unchanged. A new allocation gets the defaults of the controller.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes
  - openipu.pod.attributes.vipu_group
options:
  id:
    description: ID of the allocation.
    type: str
    required: true
  cluster:
    description: Cluster of the IPU-Machines. Required with O(state=present).
    type: str
  size:
    description: Number of IPU-Machines. The controller chooses consecutive ones. O(state=present) requires O(size) or O(agents).
    type: int
  agents:
    description: Agents of consecutive IPU-Machines in the order of the cluster.
    type: list
    elements: str
  state:
    description:
      - V(present) makes sure that the allocation exists with these options.
      - V(absent) makes sure that it does not exist.
    type: str
    choices: [present, absent]
    default: present
  force:
    description: Also remove the partitions of the allocation.
    type: bool
    default: false
  recreate:
    description:
      - Remove the allocation and create it again when an immutable option differs. Otherwise the task fails.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Allocate four IPU-Machines to a team
  openipu.pod.vipu_allocation:
    api_host: 10.3.1.101
    id: team-a
    cluster: cl0
    size: 4

- name: Allocate two given IPU-Machines to another team
  openipu.pod.vipu_allocation:
    api_host: 10.3.1.101
    id: team-b
    cluster: cl0
    agents: [ag05, ag06]
"""

RETURN = r"""
allocation:
  description: The allocation after the task, in check mode the predicted allocation; null after a removal.
  type: dict
  returned: success
  sample: {id: team-a, cluster: cl0, size: 4, agents: [ag01, ag02, ag03, ag04], free_ipus: 16}
"""

from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module
from ansible_collections.openipu.pod.plugins.module_utils.vipu.tasks.object_task import VIPU_ALLOCATION


def main() -> None:
    run_module(VIPU_ALLOCATION)


if __name__ == "__main__":
    main()
