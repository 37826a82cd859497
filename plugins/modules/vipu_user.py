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
  - Creates a user of a controller with user management, changes its role and allocations, or removes it.
  - The controller returns the access key of a new user only once. It is written to O(config_dest) and never appears in results, logs or diffs.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes
  - openipu.pod.attributes.vipu
options:
  id:
    description: ID of the user.
    type: str
    required: true
  role:
    description:
      - V(admin) has full access, V(user) has access to the partitions of its allocations.
      - Omit to use V(user) for a new user.
    type: str
    choices: [user, admin]
  allocations:
    description: Allocations of the user. Omit to leave them unchanged.
    type: list
    elements: str
  state:
    description:
      - V(present) makes sure that the user exists with these options.
      - V(absent) makes sure that it does not exist.
    type: str
    choices: [present, absent]
    default: present
  config_dest:
    description:
      - File for the access key of a new user on the host of the task, readable by its owner only, in the format of
        C(vipu --config).
      - If this is an existing folder, the file is C(<id>.vipu-cli.hcl) in that folder.
      - Required with O(state=present). Not changed when the user exists.
    type: path
"""

EXAMPLES = r"""
- name: Create a user for a team
  openipu.pod.vipu_user:
    api_host: 10.3.1.101
    id: alice
    allocations: [team-a]
    config_dest: ~/alice.vipu-cli.hcl
"""

RETURN = r"""
user:
  description: The user after the task, in check mode the predicted user; null after a removal.
  type: dict
  returned: success
  sample: {id: alice, role: user, allocations: [team-a]}
config_dest:
  description: The file with the access key of a new user.
  type: str
  returned: when O(config_dest) is set
  sample: /home/admin/alice.vipu-cli.hcl
"""

from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module
from ansible_collections.openipu.pod.plugins.module_utils.vipu.tasks.user_task import VIPU_USER


def main() -> None:
    run_module(VIPU_USER)


if __name__ == "__main__":
    main()
