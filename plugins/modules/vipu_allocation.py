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
  - Hands consecutive IPU-Machines of a cluster to a tenant, lets the allocation grow or shrink around its partitions, or removes it.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes
  - openipu.pod.attributes.vipu
options:
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
  state:
    description:
      - V(present) makes sure that the allocation is there as the options say.
      - V(absent) makes sure that it is not.
    type: str
    choices: [present, absent]
    default: present
  force:
    description: Remove its partitions along with it.
    type: bool
    default: false
  recreate:
    description:
      - What cannot be changed on an allocation that exists is an error, unless this allows to remove it and make it anew.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Four IPU-Machines for one team
  openipu.pod.vipu_allocation:
    api_host: 10.3.1.101
    id: team-a
    cluster: cl0
    size: 4

- name: Exactly these for another
  openipu.pod.vipu_allocation:
    api_host: 10.3.1.101
    id: team-b
    cluster: cl0
    agents: [ag05, ag06]
"""

RETURN = r"""
allocation:
  description: The allocation as it is now, or in check mode as it would be; none when it is gone.
  type: dict
  returned: success
  sample: {id: team-a, cluster: cl0, size: 4, agents: [ag01, ag02, ag03, ag04], free_ipus: 16}
"""

from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module
from ansible_collections.openipu.pod.plugins.module_utils.vipu.tasks import VIPU_ALLOCATION


def main() -> None:
    run_module(VIPU_ALLOCATION)


if __name__ == "__main__":
    main()
