#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell about partitions of a V-IPU controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vipu_partition_info
short_description: Tell about partitions of a V-IPU controller
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Gives partitions with their state, what the controller is doing to them, and why they are in ERROR.
  - Needs nothing but the public user API, so a tenant can use it, and it works with every controller.
  - With O(transport=cli) it tells the state, but not what the controller is doing, nor errors and resets.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes.info
  - openipu.pod.attributes.vipu
options:
  id:
    description: The name of one partition; all of them when not given.
    type: str
  ipuof:
    description: Whether to add the IPUoF configuration of partitions that are ACTIVE.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Ask for one partition
  openipu.pod.vipu_partition_info:
    api_host: 10.3.1.101
    id: vision
  register: vision

- name: Stop when it is in error, and say why
  ansible.builtin.assert:
    that: vision.partitions | selectattr('state', 'eq', 'ERROR') | length == 0
    fail_msg: "{{ vision.partitions | map(attribute='errors') | flatten | join(' ') }}"

- name: Ask for all of them, and for the IPUs as programs reach them
  openipu.pod.vipu_partition_info:
    api_host: 10.3.1.101
    ipuof: true
"""

RETURN = r"""
partitions:
  description: The partitions; none when there is none of that name.
  type: list
  elements: dict
  returned: success
  contains:
    id:
      description: The name of the partition.
      type: str
      sample: vision
    allocation:
      description: The allocation that its IPUs are of.
      type: str
      sample: team-a
    cluster:
      description: The cluster that its IPUs are of.
      type: str
      sample: cl0
    size:
      description: How many IPUs it has.
      type: int
      sample: 16
    num_gcds:
      description: How many graph compilation domains its IPUs are split into.
      type: int
      sample: 1
    routing:
      description: How traffic is routed over the IPU-Links.
      type: str
      sample: dnc
    disable_auto_reset:
      description: Whether it is left alone after a failure instead of being reset.
      type: bool
      returned: with O(id), when the controller offers more than the public user API
      sample: false
    relocatable:
      description: Whether it may move to other free IPUs of its allocation when one of its IPU-Machines fails.
      type: bool
      returned: with O(id), when the controller offers more than the public user API
      sample: true
    state:
      description: What may be expected of it, one of PENDING, ACTIVE, REMOVED and ERROR.
      type: str
      sample: ACTIVE
    operation:
      description: What the controller is doing to it, one of IDLE, CREATING, REMOVING, RESETTING and FAILED.
      type: str
      sample: IDLE
    errors:
      description: Why it is in ERROR.
      type: list
      elements: str
      sample: []
    max_retries:
      description: How often the controller resets it by itself at most.
      type: int
      sample: 3
    retries:
      description: How often the controller has reset it by itself since it was last healthy or reset by somebody.
      type: int
      sample: 0
    last_auto_reset:
      description: When the controller did that last, in UTC.
      type: str
      sample: "2026-03-01T11:59:20.106Z"
    ipuof:
      description: Its IPUoF configuration, one object for each GCD; none unless it is ACTIVE.
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

from ansible_collections.openipu.pod.plugins.module_utils.vipu.infos import VIPU_PARTITION_INFO
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(VIPU_PARTITION_INFO)


if __name__ == "__main__":
    main()
