#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manage everything that a V-IPU controller holds in one task."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vipu_pod
short_description: Manage everything that a V-IPU controller holds in one task
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Brings agents, clusters, allocations and partitions to what the lists say, in the order in which they depend on each other.
  - Reads each kind that is concerned once, and writes all that differs in one call. The open controller applies it in one transaction, so
    that either all of it happens or nothing.
  - A list that is not given is not looked at.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes
  - openipu.pod.attributes.vipu
attributes:
  check_mode:
    support: full
    details: The controller is asked whether it would do all this, see O(validate).
options:
  agents:
    description: Agents that are to be there.
    type: list
    elements: dict
    suboptions:
      id:
        description: Its name, 1 to 63 letters, digits, C(.), C(_) or C(-).
        type: str
        required: true
      host:
        description: Address or name of the IPU-Machine on the gateway network.
        type: str
      port:
        description: TCP port of the agent. That of a new one is 8080 unless given.
        type: int
  clusters:
    description: Clusters that are to be there.
    type: list
    elements: dict
    suboptions:
      id:
        description: Its name.
        type: str
        required: true
      agents:
        description: Its agents in the order of the rack, the lowest first, IPU-Link domain by IPU-Link domain.
        type: list
        elements: str
      num_ilds:
        description: The number of IPU-Link domains; the agents divide evenly into them. A new cluster has one unless given.
        type: int
      topology:
        description: How the IPU-Links of a domain are cabled; V(torus) closes the top to the bottom. A new cluster is a mesh unless given.
        type: str
        choices: [mesh, torus]
      cluster_topology:
        description: How the GW-Links between domains are cabled.
        type: str
        choices: [looped]
  allocations:
    description: Allocations that are to be there.
    type: list
    elements: dict
    suboptions:
      id:
        description: Its name.
        type: str
        required: true
      cluster:
        description: The cluster that its IPU-Machines are in.
        type: str
      size:
        description: How many IPU-Machines it has; the controller picks them, consecutive in the rack.
        type: int
      agents:
        description: The agents of its IPU-Machines in the order of the cluster, consecutive in the rack.
        type: list
        elements: str
  partitions:
    description: Partitions that are to be there.
    type: list
    elements: dict
    suboptions:
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
          - The older way to ask, which O(partitions[].allocation) replaces; but needed beside O(partitions[].ipus).
        type: str
      size:
        description: How many IPUs it has, a power of two.
        type: int
      num_gcds:
        description: How many graph compilation domains its IPUs are divided into evenly. The controller's default is 1.
        type: int
      num_replicas:
        description: How many replicas the IPUs are divided into evenly. The controller's default is O(partitions[].num_gcds).
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
        description: Exactly these IPUs, instead of those that the controller picks. Goes with O(partitions[].cluster).
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
  prune:
    description:
      - The kinds of which everything that is not listed is removed, whoever made it.
      - Each needs its list, so that nothing is lost with a variable. An empty one removes all of that kind.
      - A user who is no administrator sees the partitions of its own allocations only, and so prunes only those.
    type: list
    elements: str
    choices: [agents, clusters, allocations, partitions]
    default: []
  validate:
    description:
      - In check mode, ask the controller whether it would do all this, which changes nothing, and fail with its reasons when it would not.
      - What it would refuse only because something does not exist is a warning, since a task before this one may be going to make it.
        Turn this off where a task before this one makes room, or changes what this one builds on.
      - A controller that offers only the public user API cannot be asked, a tenant may not ask, and O(transport=cli) has no command for
        it. Then check mode only compares.
    type: bool
    default: true
  wait:
    description:
      - Wait until all partitions of O(partitions) are ACTIVE, and fail with the controller's reason when that does not come about.
      - Check mode does not wait.
    type: bool
    default: true
  wait_timeout:
    description: How many seconds to wait.
    type: float
    default: 120.0
  force:
    description: Remove what depends on a removed object along with it, and do not mind IPU-Machines that cannot be told.
    type: bool
    default: false
  recreate:
    description:
      - What cannot be changed on an object that exists is an error, unless this allows to remove it and make it anew.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: A whole POD
  openipu.pod.vipu_pod:
    api_host: 10.3.1.101
    agents:
      - {id: ag01, host: 10.2.1.1}
      - {id: ag02, host: 10.2.1.2}
    clusters:
      - {id: cl0, agents: [ag01, ag02]}
    allocations:
      - {id: team-a, cluster: cl0, size: 2}
    partitions:
      - {id: vision, allocation: team-a, size: 8}

- name: Exactly these partitions and no other
  openipu.pod.vipu_pod:
    api_host: 10.3.1.101
    partitions:
      - {id: vision, allocation: team-a, size: 8}
    prune: [partitions]
"""

RETURN = r"""
agents:
  description: What became of the agents, or in check mode would become of them, the names by what was done.
  type: dict
  returned: when O(agents) was given
  contains:
    created:
      description: Were not there.
      type: list
      elements: str
    updated:
      description: Were changed.
      type: list
      elements: str
    recreated:
      description: Were removed and made anew.
      type: list
      elements: str
    removed:
      description: Were pruned.
      type: list
      elements: str
    unchanged:
      description: Were as they are wanted.
      type: list
      elements: str
  sample: {created: [ag01, ag02], updated: [], recreated: [], removed: [], unchanged: []}
clusters:
  description: What became of the clusters, or in check mode would become of them, the names by what was done.
  type: dict
  returned: when O(clusters) was given
  contains:
    created:
      description: Were not there.
      type: list
      elements: str
    updated:
      description: Were changed.
      type: list
      elements: str
    recreated:
      description: Were removed and made anew.
      type: list
      elements: str
    removed:
      description: Were pruned.
      type: list
      elements: str
    unchanged:
      description: Were as they are wanted.
      type: list
      elements: str
  sample: {created: [cl0], updated: [], recreated: [], removed: [], unchanged: []}
allocations:
  description: What became of the allocations, or in check mode would become of them, the names by what was done.
  type: dict
  returned: when O(allocations) was given
  contains:
    created:
      description: Were not there.
      type: list
      elements: str
    updated:
      description: Were changed.
      type: list
      elements: str
    recreated:
      description: Were removed and made anew.
      type: list
      elements: str
    removed:
      description: Were pruned.
      type: list
      elements: str
    unchanged:
      description: Were as they are wanted.
      type: list
      elements: str
  sample: {created: [team-a], updated: [], recreated: [], removed: [], unchanged: []}
partitions:
  description: What became of the partitions, or in check mode would become of them, the names by what was done.
  type: dict
  returned: when O(partitions) was given
  contains:
    created:
      description: Were not there.
      type: list
      elements: str
    updated:
      description: Were changed.
      type: list
      elements: str
    recreated:
      description: Were removed and made anew.
      type: list
      elements: str
    removed:
      description: Were pruned.
      type: list
      elements: str
    unchanged:
      description: Were as they are wanted.
      type: list
      elements: str
  sample: {created: [vision], updated: [], recreated: [], removed: [], unchanged: []}
partition_states:
  description: The state of every partition of O(partitions).
  type: dict
  returned: when they were waited for
  sample: {vision: ACTIVE}
errors:
  description: What could not be written, and why; also what was not tried because of it.
  type: list
  elements: dict
  returned: when something failed
  sample: [{kind: partition, id: vision, msg: "Cannot create partition 'vision': allocation 'team-a' does not exist."}]
"""

from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module
from ansible_collections.openipu.pod.plugins.module_utils.vipu.tasks import VIPU_POD


def main() -> None:
    run_module(VIPU_POD)


if __name__ == "__main__":
    main()
