#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manage a cluster of a V-IPU controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vipu_cluster
short_description: Manage a cluster of a V-IPU controller
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Groups agents into a cluster, changes a cluster without partitions, or removes it.
  - Omitted options of an existing cluster stay unchanged. A new cluster gets the defaults of the controller.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes
  - openipu.pod.attributes.vipu_group
options:
  id:
    description: ID of the cluster.
    type: str
    required: true
  agents:
    description: Agents in the order of the rack from the lowest up, IPU-Link domain by IPU-Link domain. Required with O(state=present).
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
  state:
    description:
      - V(present) makes sure that the cluster exists with these options.
      - V(absent) makes sure that it does not exist.
    type: str
    choices: [present, absent]
    default: present
  force:
    description: Also remove the allocations of the cluster and their partitions.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Create a cluster with torus topology
  openipu.pod.vipu_cluster:
    api_host: 10.3.1.101
    id: cl0
    agents: [ag01, ag02, ag03, ag04]
    topology: torus

- name: Remove a cluster with its allocations and partitions
  openipu.pod.vipu_cluster:
    api_host: 10.3.1.101
    id: cl0
    state: absent
    force: true
"""

RETURN = r"""
cluster:
  description: The cluster after the task, in check mode the predicted cluster; null after a removal.
  type: dict
  returned: success
  sample: {id: cl0, agents: [ag01, ag02, ag03, ag04], num_ilds: 1, topology: torus, cluster_topology: looped}
"""

from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module
from ansible_collections.openipu.pod.plugins.module_utils.vipu.tasks.object_task import VIPU_CLUSTER


def main() -> None:
    run_module(VIPU_CLUSTER)


if __name__ == "__main__":
    main()
