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
  - Makes a partition out of IPUs of an allocation and waits until it is usable, resets it, or removes it.
  - Needs nothing but the public user API, so a tenant can use it, and it works with every controller.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes
  - openipu.pod.attributes.vipu
attributes:
  idempotent:
    support: partial
    details: V(present) and V(absent) are. V(reset) is an act and changes something every time.
options:
  id:
    description: Its name.
    type: str
    required: true
  allocation:
    description: The allocation that its IPUs come from.
    type: str
  cluster:
    description:
      - The cluster that its IPUs come from, out of any of its allocations.
      - The older way to ask, which O(allocation) replaces; but needed beside O(ipus).
    type: str
  size:
    description: How many IPUs it has, a power of two.
    type: int
  num_gcds:
    description: How many graph compilation domains its IPUs are divided into evenly. The controller's default is 1.
    type: int
  num_replicas:
    description: How many replicas the IPUs are divided into evenly. The controller's default is O(num_gcds).
    type: int
  num_segments:
    description: Over how many IPU-Link domains it is spread evenly. The controller takes as few as it needs.
    type: int
  routing:
    description: Routing over the IPU-Links. The controller chooses from size and topology.
    type: str
    choices: [dnc, swnc, btnc, ringswnc]
  gw_routing:
    description: Routing over the GW-Links, for more than one IPU-Link domain.
    type: str
    choices: [ring, swring]
  sync_type:
    description: Its synchronisation. A reconfigurable partition needs V(c2-compatible).
    type: str
    choices: [c2-compatible, independent-rails, pod-native, pod-native-replicated-pipeline]
  reconfigurable:
    description: Whether a program may use parts of it, in sizes of its own choice.
    type: bool
  ipus:
    description: Exactly these IPUs, instead of those that the controller picks. Goes with O(cluster).
    type: list
    elements: dict
    suboptions:
      ild:
        description: The IPU-Link domain in the cluster, from 0.
        type: int
        default: 0
      topology_id:
        description: The IPU in that domain, which is four times the position of the machine plus the number of the IPU on it.
        type: int
        required: true
      ild_routing_id:
        description: What the partition calls the domain.
        type: int
        default: 0
      routing_id:
        description: What the partition calls the IPU in that domain. All zero leaves the numbering to the controller.
        type: int
        default: 0
  disable_auto_reset:
    description:
      - Whether it is left alone after a failure instead of being reset.
      - Can be changed at any time, without a reset.
      - The public user API does not tell it of a partition. Against a controller that offers no more than that, it counts when a partition
        is made, and of one that is there a warning says that it was not compared.
    type: bool
  relocatable:
    description:
      - Whether it may move to other free IPUs of its allocation when one of its IPU-Machines fails.
      - Can be changed at any time, without a reset.
      - The public user API does not tell it of a partition. Against a controller that offers no more than that, it counts when a partition
        is made, and of one that is there a warning says that it was not compared.
    type: bool
  state:
    description:
      - V(present) makes sure that the partition is there as the options say.
      - V(absent) makes sure that it is not.
      - V(reset) resets a partition that exists. That is an act, so every run of it changes something.
    type: str
    choices: [present, absent, reset]
    default: present
  wait:
    description: Wait until the partition is ACTIVE, and fail with the controller's reason when that does not come about. Check mode does not wait.
    type: bool
    default: true
  wait_timeout:
    description: How many seconds to wait.
    type: float
    default: 120.0
  force:
    description: Remove it even when one of its IPU-Machines cannot be told.
    type: bool
    default: false
  recreate:
    description:
      - What cannot be changed on a partition that exists is an error, unless this allows to remove it and make it anew.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Sixteen IPUs that a program may divide as it likes
  openipu.pod.vipu_partition:
    api_host: 10.3.1.101
    id: vision
    allocation: team-a
    size: 16
    reconfigurable: true

- name: Reset it
  openipu.pod.vipu_partition:
    api_host: 10.3.1.101
    id: vision
    state: reset

- name: Give the IPUs back
  openipu.pod.vipu_partition:
    api_host: 10.3.1.101
    id: vision
    state: absent
"""

RETURN = r"""
partition:
  description: The partition as it is now, or in check mode as it would be; none when it is gone.
  type: dict
  returned: success
  sample: {id: vision, allocation: team-a, size: 16, routing: dnc, num_gcds: 1, reconfigurable: true, state: ACTIVE}
partitions:
  description: The last state of a partition that did not become ACTIVE, by name, with the controller's reasons.
  type: dict
  returned: when waiting failed
  sample: {vision: {state: ERROR, operation: FAILED, errors: ["Agent 'ag03' is down."]}}
"""

from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module
from ansible_collections.openipu.pod.plugins.module_utils.vipu.tasks import VIPU_PARTITION


def main() -> None:
    run_module(VIPU_PARTITION)


if __name__ == "__main__":
    main()
