#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""List partitions of a V-IPU controller with their status."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vipu_partition_info
short_description: List partitions of a V-IPU controller with their status
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Returns partitions with their state, the current operation of the controller, and the causes of errors.
  - Requires only the public user API, so tenants can use it, and it works with every controller.
  - With O(transport=cli), operation, errors and resets may be unknown.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes.info
  - openipu.pod.attributes.vipu_group
options:
  id:
    description: ID of a partition. Omit to return all partitions.
    type: str
  ipuof:
    description: Whether to return the IPUoF configuration of partitions that are ACTIVE.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Get one partition
  openipu.pod.vipu_partition_info:
    api_host: 10.3.1.101
    id: vision
  register: vision

- name: Fail when it is in error
  ansible.builtin.assert:
    that: vision.partitions | selectattr('state', 'eq', 'ERROR') | length == 0
    fail_msg: "{{ vision.partitions | map(attribute='errors') | flatten | join(' ') }}"

- name: Get all partitions with their IPUoF configuration
  openipu.pod.vipu_partition_info:
    api_host: 10.3.1.101
    ipuof: true
"""

RETURN = r"""
partitions:
  description: The partitions; empty when O(id) does not exist.
  type: list
  elements: dict
  returned: success
  contains:
    id:
      description: ID of the partition.
      type: str
      sample: vision
    allocation:
      description: Allocation of the IPUs.
      type: str
      sample: team-a
    cluster:
      description: Cluster of the IPUs.
      type: str
      sample: cl0
    size:
      description: Number of IPUs.
      type: int
      sample: 16
    num_gcds:
      description: Number of graph compilation domains.
      type: int
      sample: 1
    routing:
      description: Routing over the IPU-Links.
      type: str
      sample: dnc
    disable_auto_reset:
      description: Whether automatic resets of the partition after a failure are disabled.
      type: bool
      returned: with O(id), when the controller offers more than the public user API
      sample: false
    relocatable:
      description: Whether the partition may move to other free IPUs of its allocation when one of its IPU-Machines fails.
      type: bool
      returned: with O(id), when the controller offers more than the public user API
      sample: true
    state:
      description: State, one of PENDING, ACTIVE, REMOVED and ERROR.
      type: str
      sample: ACTIVE
    operation:
      description: Operation of the controller, one of IDLE, CREATING, REMOVING, RESETTING and FAILED.
      type: str
      sample: IDLE
    errors:
      description: Causes of the state ERROR.
      type: list
      elements: str
      sample: []
    max_retries:
      description: Maximum number of automatic resets, 0 when they are disabled.
      type: int
      sample: 3
    retries:
      description: Number of automatic resets since the partition was last healthy or reset by a user.
      type: int
      sample: 0
    last_auto_reset:
      description: Time of the last automatic reset, in UTC.
      type: str
      sample: "2026-03-01T11:59:20.106Z"
    ipuof:
      description: IPUoF configuration, one object per GCD; null unless the partition is ACTIVE.
      type: list
      elements: dict
      returned: with O(ipuof=true)
      sample: [{attributes: {GCD Id: "0"}, devices: [{ip: 10.5.1.1, server_port: 8080, rdma_port: 0, device_id: 0}]}]
  sample:
    - id: vision
      allocation: team-a
      cluster: cl0
      size: 16
      num_gcds: 1
      routing: dnc
      state: ACTIVE
      operation: IDLE
      errors: []
      max_retries: 3
      retries: 0
      last_auto_reset: null
"""

from ansible_collections.openipu.pod.plugins.module_utils.vipu.tasks.partition_info_task import VIPU_PARTITION_INFO
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(VIPU_PARTITION_INFO)


if __name__ == "__main__":
    main()
