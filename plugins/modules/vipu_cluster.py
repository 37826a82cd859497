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
  - Groups agents into a cluster, changes it while no partition is in it, or removes it.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes
  - openipu.pod.attributes.vipu
options:
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
  state:
    description:
      - V(present) makes sure that the cluster is there as the options say.
      - V(absent) makes sure that it is not.
    type: str
    choices: [present, absent]
    default: present
  force:
    description: Remove its allocations and their partitions along with it.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: One rack as a torus
  openipu.pod.vipu_cluster:
    api_host: 10.3.1.101
    id: cl0
    agents: [ag01, ag02, ag03, ag04]
    topology: torus

- name: Take it apart, with all that is in it
  openipu.pod.vipu_cluster:
    api_host: 10.3.1.101
    id: cl0
    state: absent
    force: true
"""

RETURN = r"""
cluster:
  description: The cluster as it is now, or in check mode as it would be; none when it is gone.
  type: dict
  returned: success
  sample: {id: cl0, agents: [ag01, ag02, ag03, ag04], num_ilds: 1, topology: torus, cluster_topology: looped}
"""

from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module
from ansible_collections.openipu.pod.plugins.module_utils.vipu.tasks import VIPU_CLUSTER


def main() -> None:
    run_module(VIPU_CLUSTER)


if __name__ == "__main__":
    main()
