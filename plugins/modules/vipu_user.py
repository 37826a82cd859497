#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manage a user of a V-IPU controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vipu_user
short_description: Manage a user of a V-IPU controller
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Makes a user of a controller that runs with users, changes its role and its allocations, or removes it.
  - The controller tells the access key of a new user once. It is written to O(config_dest) and stands in no result, log or diff.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes
  - openipu.pod.attributes.vipu
options:
  id:
    description: The name.
    type: str
    required: true
  role:
    description:
      - V(admin) may do everything, V(user) only what concerns the partitions of its allocations.
      - A new user is V(user) unless given.
    type: str
    choices: [user, admin]
  allocations:
    description: The allocations of a user.
    type: list
    elements: str
  state:
    description:
      - V(present) makes sure that the user is there as the options say.
      - V(absent) makes sure that it is not.
    type: str
    choices: [present, absent]
    default: present
  config_dest:
    description:
      - The file that a new user's access key is written to on the host of the task, readable by its owner only, in the form that
        C(vipu --config) reads.
      - In an existing folder, C(<id>.vipu-cli.hcl).
      - Required with O(state=present); left alone when the user exists already.
    type: path
"""

EXAMPLES = r"""
- name: A user for one team
  openipu.pod.vipu_user:
    api_host: 10.3.1.101
    id: alice
    allocations: [team-a]
    config_dest: ~/alice.vipu-cli.hcl
"""

RETURN = r"""
user:
  description: The user as it is now, or in check mode as it would be; none when it is gone.
  type: dict
  returned: success
  sample: {id: alice, role: user, allocations: [team-a]}
config_dest:
  description: The file with the access key of a new user.
  type: str
  returned: when O(config_dest) was given
  sample: /home/admin/alice.vipu-cli.hcl
"""

from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module
from ansible_collections.openipu.pod.plugins.module_utils.vipu.tasks import VIPU_USER


def main() -> None:
    run_module(VIPU_USER)


if __name__ == "__main__":
    main()
