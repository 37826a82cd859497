#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manage a partition of a V-IPU controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vipu_partition
short_description: Manage a partition of a V-IPU controller
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Creates a partition with IPUs of an allocation and waits until it is usable, resets it, or removes it.
  - Requires only the public user API, so tenants can use it, and it works with every controller.
  - Omitted options of an existing partition stay unchanged. A new partition gets the defaults of the controller.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes
  - openipu.pod.attributes.vipu_group
attributes:
  idempotent:
    support: partial
    details: V(present) and V(absent) are idempotent. V(reset) makes a change in every run.
options:
  id:
    description: ID of the partition.
    type: str
    required: true
  allocation:
    description:
      - Allocation that provides the IPUs.
      - Omit to let the controller choose the best fit among all allocations that the user may use. The result contains its choice.
    type: str
  cluster:
    description:
      - Cluster that provides the IPUs, from any of its allocations. With O(allocation), it must be the cluster of that allocation.
      - Deprecated in favour of O(allocation), but required with O(ipus).
    type: str
  size:
    description: Number of IPUs, a power of two. O(state=present) requires O(size) or O(ipus).
    type: int
  num_gcds:
    description: Number of graph compilation domains, which must divide the IPUs evenly. Omit to use the default of the controller, 1.
    type: int
  num_replicas:
    description: Number of replicas, which must divide the IPUs evenly. Omit to use the default of the controller, O(num_gcds).
    type: int
  num_segments:
    description: Number of IPU-Link domains that share the IPUs evenly. Omit to use as few as possible.
    type: int
  routing:
    description: Routing over the IPU-Links. Omit to let the controller choose by size and topology.
    type: str
    choices: [dnc, swnc, btnc, ringswnc]
  gw_routing:
    description: Routing over the GW-Links between IPU-Link domains. Omit to use the default of the controller.
    type: str
    choices: [ring, swring]
  sync_type:
    description: Type of synchronisation. A reconfigurable partition requires V(c2-compatible). Omit to use the default of the controller.
    type: str
    choices: [c2-compatible, independent-rails, pod-native, pod-native-replicated-pipeline]
  reconfigurable:
    description: Whether programs may use parts of the partition, in sizes of their choice. Omit to use the default of the controller.
    type: bool
  ipus:
    description: IPUs of the partition, instead of IPUs that the controller chooses. Requires O(cluster).
    type: list
    elements: dict
    suboptions:
      ild:
        description: IPU-Link domain in the cluster, from 0.
        type: int
        default: 0
      topology_id:
        description: "Number of the IPU in that domain: four times the position of its machine, plus its number in the machine."
        type: int
        required: true
      ild_routing_id:
        description: Number of the domain in the partition.
        type: int
        default: 0
      routing_id:
        description: Number of the IPU in the partition. With all numbers 0, the controller assigns them.
        type: int
        default: 0
  disable_auto_reset:
    description:
      - Whether automatic resets of the partition after a failure are disabled.
      - Can be changed at any time, without a reset.
      - The public user API does not report this value. With a controller that offers only this API, it applies to new partitions only. The task
        does not compare it with an existing partition, and prints a warning.
    type: bool
  relocatable:
    description:
      - Whether the partition may move to other free IPUs of its allocation when one of its IPU-Machines fails.
      - Can be changed at any time, without a reset.
      - The public user API does not report this value. With a controller that offers only this API, it applies to new partitions only. The task
        does not compare it with an existing partition, and prints a warning.
    type: bool
  state:
    description:
      - V(present) makes sure that the partition exists with these options.
      - V(absent) makes sure that it does not exist.
      - V(reset) resets an existing partition. Every run makes a change.
    type: str
    choices: [present, absent, reset]
    default: present
  wait:
    description: Wait until the partition is ACTIVE, and fail with the cause from the controller otherwise. Check mode does not wait.
    type: bool
    default: true
  wait_timeout:
    description: Timeout for the wait, in seconds.
    type: float
    default: 120.0
  force:
    description: Remove the partition even when one of its IPU-Machines does not respond.
    type: bool
    default: false
  recreate:
    description:
      - Remove the partition and create it again when an immutable option differs. Otherwise the task fails.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Create a reconfigurable partition with sixteen IPUs
  openipu.pod.vipu_partition:
    api_host: 10.3.1.101
    id: vision
    allocation: team-a
    size: 16
    reconfigurable: true

- name: Create a partition in any allocation that the user may use
  openipu.pod.vipu_partition:
    api_host: 10.3.1.101
    id: notebook
    size: 4
  register: notebook

- name: Print the allocation that the controller chose
  ansible.builtin.debug:
    var: notebook.partition.allocation

- name: Reset the partition
  openipu.pod.vipu_partition:
    api_host: 10.3.1.101
    id: vision
    state: reset

- name: Remove the partition
  openipu.pod.vipu_partition:
    api_host: 10.3.1.101
    id: vision
    state: absent
"""

RETURN = r"""
partition:
  description: The partition after the task, in check mode the predicted partition; null after a removal.
  type: dict
  returned: success
  sample: {id: vision, allocation: team-a, size: 16, routing: dnc, num_gcds: 1, reconfigurable: true, state: ACTIVE}
partitions:
  description: Last state of partitions that did not become ACTIVE, by ID, with causes from the controller.
  type: dict
  returned: when the wait failed
  sample: {vision: {state: ERROR, operation: FAILED, errors: ["Agent 'ag03' is down."]}}
"""

from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module
from ansible_collections.openipu.pod.plugins.module_utils.vipu.tasks.partition_task import VIPU_PARTITION


def main() -> None:
    run_module(VIPU_PARTITION)


if __name__ == "__main__":
    main()
