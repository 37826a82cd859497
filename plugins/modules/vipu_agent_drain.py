#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Move the partitions off an IPU-Machine."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vipu_agent_drain
short_description: Move the partitions off an IPU-Machine
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Takes the agent of an IPU-Machine out of service, so that nothing new is placed on the machine. Moves its partitions to other machines of their
    allocations.
  - A partition moves if it is relocatable, has automatic resets, and its allocation has free IPUs. A move resets the partition, which ends its job.
    So only partitions that have failed move without O(force).
  - Use M(openipu.pod.vipu_agent) with O(openipu.pod.vipu_agent#module:in_service=true) to put the agent into service after the repair.
  - Requires the open controller and O(transport=grpc).
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes.vipu_group
attributes:
  check_mode:
    description: Can run in C(check_mode) and return the partitions that would move. The controller computes them without a change.
    support: full
  diff_mode:
    description: Returns the partitions on the machine, before and after.
    support: full
  idempotent:
    description: When run twice in a row without other changes in between, the second run writes nothing.
    support: full
  platform:
    description: Where the module can run.
    platforms: posix
    support: full
options:
  id:
    description: ID of the agent.
    type: str
    required: true
  service_reason:
    description: Reason for administrators, one line of at most 200 characters. Omit to leave it unchanged.
    type: str
  force:
    description: Also move relocatable partitions that may have a job. The job ends.
    type: bool
    default: false
  wait:
    description: Wait until the moved partitions are ACTIVE, and fail with the cause from the controller otherwise. Check mode does not wait.
    type: bool
    default: true
  wait_timeout:
    description: Timeout for the wait, in seconds.
    type: float
    default: 120
seealso:
  - module: openipu.pod.vipu_agent
  - module: openipu.pod.vipu_partition
"""

EXAMPLES = r"""
- name: Drain an IPU-Machine
  openipu.pod.vipu_agent_drain:
    api_host: 10.3.1.101
    id: ag03
    service_reason: fan 2 fails
  register: drained

- name: Show the users of partitions that stay
  ansible.builtin.debug:
    msg: "{{ drained.remaining | map(attribute='users') | flatten | unique }}"
"""

RETURN = r"""
partitions:
  description: All partitions on the machine before the task, sorted by ID.
  type: list
  elements: dict
  returned: success
  contains:
    id:
      description: ID of the partition.
      type: str
    allocation:
      description: ID of its allocation.
      type: str
    users:
      description: Users that may use the allocation.
      type: list
      elements: str
    moves:
      description: Whether the partition moves.
      type: bool
    agents:
      description: Agents that it moves to; empty for a partition that stays.
      type: list
      elements: str
    reason:
      description: Why the partition stays; null for one that moves.
      type: str
  sample:
    - {id: p1, allocation: team-a, users: [alice], moves: false, agents: [], reason: it is not relocatable}
remaining:
  description: The partitions that stay.
  type: list
  elements: dict
  returned: success
  sample:
    - {id: p1, allocation: team-a, users: [alice], moves: false, agents: [], reason: it is not relocatable}
"""

from ansible_collections.openipu.pod.plugins.module_utils.vipu.tasks.drain_task import VIPU_AGENT_DRAIN
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(VIPU_AGENT_DRAIN)


if __name__ == "__main__":
    main()
