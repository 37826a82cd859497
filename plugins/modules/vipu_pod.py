#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manage all objects of a V-IPU controller in one task."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vipu_pod
short_description: Manage all objects of a V-IPU controller in one task
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Creates and changes agents, clusters, allocations and partitions as listed, in the order of their dependencies.
  - Reads each managed kind once and writes all differences in one call. The open controller applies them in one transaction, so that either all
    changes are made or none.
  - Omitted lists are not managed. Omitted options of an existing object stay unchanged. A new object gets the defaults of the controller.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes
  - openipu.pod.attributes.vipu_group
attributes:
  check_mode:
    support: full
    details: The controller validates the changes, see O(validate).
options:
  agents:
    description: Desired agents.
    type: list
    elements: dict
    suboptions:
      id:
        description: ID of the agent, 1 to 63 letters, digits, C(.), C(_) or C(-).
        type: str
        required: true
      host:
        description: Address or name of the IPU-Machine on the gateway network.
        type: str
      port:
        description: TCP port of the agent. Omit to use 8080 for a new agent.
        type: int
      take_over:
        description:
          - Take the agent over when another deployment owns it. The task fails when the machine holds partitions of another agent of this deployment.
          - When the takeover fails, all other changes remain, and the task fails. The next run takes the agent over if another deployment still owns it.
          - With O(transport=cli), this applies only when the task registers or changes the agent.
          - Omit to register the agent without a takeover. If another deployment owns it, it is Down until that deployment removes it.
        type: bool
      in_service:
        description:
          - V(false) takes the IPU-Machine out of service. No new partitions are placed on it. Its partitions stay. See
            M(openipu.pod.vipu_agent_drain) to move them.
          - V(true) puts it into service.
          - Omit to leave the state unchanged. New agents are in service.
          - With O(transport=cli), this requires C(vipu-admin) of the open controller, and applies to registered agents only.
        type: bool
      service_reason:
        description:
          - Reason for administrators why the agent is out of service, one line of at most 200 characters.
          - Omit to leave it unchanged. It ends with O(agents[].in_service=true).
          - With O(transport=cli), this applies only when the task takes the agent out of service.
        type: str
  clusters:
    description: Desired clusters.
    type: list
    elements: dict
    suboptions:
      id:
        description: ID of the cluster.
        type: str
        required: true
      agents:
        description: Agents in the order of the rack from the lowest up, IPU-Link domain by IPU-Link domain.
        type: list
        elements: str
      num_ilds:
        description: Number of IPU-Link domains, which must divide the agents evenly. Omit to use 1 for a new cluster.
        type: int
      topology:
        description: Cabling of the IPU-Links in a domain. V(torus) also connects top and bottom. Omit to use V(mesh) for a new cluster.
        type: str
        choices: [mesh, torus]
      cluster_topology:
        description: Cabling of the GW-Links between domains.
        type: str
        choices: [looped]
  allocations:
    description: Desired allocations.
    type: list
    elements: dict
    suboptions:
      id:
        description: ID of the allocation.
        type: str
        required: true
      cluster:
        description: Cluster of the IPU-Machines.
        type: str
      size:
        description: Number of IPU-Machines. The controller chooses consecutive ones.
        type: int
      agents:
        description: Agents of consecutive IPU-Machines in the order of the cluster.
        type: list
        elements: str
  partitions:
    description: Desired partitions.
    type: list
    elements: dict
    suboptions:
      id:
        description: ID of the partition.
        type: str
        required: true
      allocation:
        description:
          - Allocation that provides the IPUs.
          - Omit to let the controller choose the best fit among all allocations that the user may use.
        type: str
      cluster:
        description:
          - Cluster that provides the IPUs, from any of its allocations.
            With O(partitions[].allocation), it must be the cluster of that allocation.
          - Deprecated in favour of O(partitions[].allocation), but required with O(partitions[].ipus).
        type: str
      size:
        description: Number of IPUs, a power of two.
        type: int
      num_gcds:
        description: Number of graph compilation domains, which must divide the IPUs evenly. Omit to use the default of the controller, 1.
        type: int
      num_replicas:
        description: Number of replicas, which must divide the IPUs evenly. Omit to use the default of the controller, O(partitions[].num_gcds).
        type: int
      num_segments:
        description: Number of IPU-Link domains that share the IPUs evenly. Omit to use as few as possible.
        type: int
      routing:
        description: Routing over the IPU-Links. Omit to let the controller choose by size and topology.
        type: str
        choices: [dnc, swnc, btnc, ringswnc]
      gw_routing:
        description: Routing over the GW-Links between IPU-Link domains.
        type: str
        choices: [ring, swring]
      sync_type:
        description: Type of synchronisation. A reconfigurable partition requires V(c2-compatible).
        type: str
        choices: [c2-compatible, independent-rails, pod-native, pod-native-replicated-pipeline]
      reconfigurable:
        description: Whether programs may use parts of the partition, in sizes of their choice.
        type: bool
      ipus:
        description: IPUs of the partition, instead of IPUs that the controller chooses. Requires O(partitions[].cluster).
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
  prune:
    description:
      - Kinds of objects to prune. All unlisted objects of these kinds are removed, even those that other tools created.
      - Each kind requires its list, so that an undefined variable removes nothing. An empty list removes all objects of the kind.
      - Users who are not administrators see and prune only the partitions of their allocations.
    type: list
    elements: str
    choices: [agents, clusters, allocations, partitions]
    default: []
  validate:
    description:
      - In check mode, let the controller validate the changes, and fail with its messages. Nothing is changed.
      - A missing object causes only a warning, because an earlier task may create it. Disable this option when an earlier task frees resources or
        changes objects that this task depends on.
      - Validation is not available with only the public user API, for tenants, and with O(transport=cli). Check mode then only compares.
    type: bool
    default: true
  wait:
    description:
      - Wait until all partitions in O(partitions) are ACTIVE, and fail with the cause from the controller otherwise.
      - Check mode does not wait.
    type: bool
    default: true
  wait_timeout:
    description: Timeout for the wait, in seconds.
    type: float
    default: 120.0
  force:
    description: Also remove the dependents of removed objects, and ignore IPU-Machines that do not respond.
    type: bool
    default: false
  recreate:
    description:
      - Remove objects and create them again when an immutable option differs. Otherwise the task fails.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Configure a POD
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

- name: Remove all other partitions
  openipu.pod.vipu_pod:
    api_host: 10.3.1.101
    partitions:
      - {id: vision, allocation: team-a, size: 8}
    prune: [partitions]
"""

RETURN = r"""
agents:
  description: IDs of the agents by change, in check mode by predicted change.
  type: dict
  returned: when O(agents) was given
  contains:
    created:
      description: Created objects.
      type: list
      elements: str
    updated:
      description: Changed objects.
      type: list
      elements: str
    recreated:
      description: Removed and recreated objects.
      type: list
      elements: str
    removed:
      description: Pruned objects.
      type: list
      elements: str
    unchanged:
      description: Objects without changes.
      type: list
      elements: str
  sample: {created: [ag01, ag02], updated: [], recreated: [], removed: [], unchanged: []}
clusters:
  description: IDs of the clusters by change, in check mode by predicted change.
  type: dict
  returned: when O(clusters) was given
  contains:
    created:
      description: Created objects.
      type: list
      elements: str
    updated:
      description: Changed objects.
      type: list
      elements: str
    recreated:
      description: Removed and recreated objects.
      type: list
      elements: str
    removed:
      description: Pruned objects.
      type: list
      elements: str
    unchanged:
      description: Objects without changes.
      type: list
      elements: str
  sample: {created: [cl0], updated: [], recreated: [], removed: [], unchanged: []}
allocations:
  description: IDs of the allocations by change, in check mode by predicted change.
  type: dict
  returned: when O(allocations) was given
  contains:
    created:
      description: Created objects.
      type: list
      elements: str
    updated:
      description: Changed objects.
      type: list
      elements: str
    recreated:
      description: Removed and recreated objects.
      type: list
      elements: str
    removed:
      description: Pruned objects.
      type: list
      elements: str
    unchanged:
      description: Objects without changes.
      type: list
      elements: str
  sample: {created: [team-a], updated: [], recreated: [], removed: [], unchanged: []}
partitions:
  description: IDs of the partitions by change, in check mode by predicted change.
  type: dict
  returned: when O(partitions) was given
  contains:
    created:
      description: Created objects.
      type: list
      elements: str
    updated:
      description: Changed objects.
      type: list
      elements: str
    recreated:
      description: Removed and recreated objects.
      type: list
      elements: str
    removed:
      description: Pruned objects.
      type: list
      elements: str
    unchanged:
      description: Objects without changes.
      type: list
      elements: str
  sample: {created: [vision], updated: [], recreated: [], removed: [], unchanged: []}
partition_states:
  description: State of every partition in O(partitions).
  type: dict
  returned: when the task waited
  sample: {vision: ACTIVE}
errors:
  description: Objects that could not be written, with the cause, and objects that were not tried because of them.
  type: list
  elements: dict
  returned: on failure
  sample:
    - kind: partition
      id: vision
      msg: "Cannot create partition 'vision': allocation 'team-a' does not exist."
      error_code: OPU605
"""

from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module
from ansible_collections.openipu.pod.plugins.module_utils.vipu.tasks.pod_task import VIPU_POD


def main() -> None:
    run_module(VIPU_POD)


if __name__ == "__main__":
    main()
