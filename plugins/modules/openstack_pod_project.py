# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make projects for tenants of a POD, with users, roles, quotas and key pairs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: openstack_pod_project
short_description: Make projects for tenants of a POD, with users, roles, quotas and key pairs
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Makes projects, users, their roles, quotas and key pairs what is asked for, in one task.
  - What is not asked about stays as it is. Roles and key pairs are added to those that a user has; a role is taken back when it says so.
extends_documentation_fragment:
  - openipu.pod.openstack
  - openipu.pod.attributes
  - openipu.pod.attributes.openstack
attributes:
  check_mode:
    support: full
    details: Everything is read, and nothing is written.
options:
  domain:
    description: The domain of all of them, by name; V(default) is also the id of the first one.
    type: str
    default: default
  projects:
    description: Projects.
    type: list
    elements: dict
    suboptions:
      name:
        description: Its name.
        type: str
        required: true
      description:
        description: What it is for.
        type: str
      enabled:
        description: Whether it can be used.
        type: bool
      quotas:
        description: How much it may have. V(-1) is as much as there is.
        type: dict
        suboptions:
          compute:
            description: What Nova counts, like C(cores), C(ram) in MB and C(instances).
            type: dict
          network:
            description: What Neutron counts, like C(port) and C(security_group).
            type: dict
          volume:
            description: What Cinder counts, like C(gigabytes) and C(volumes).
            type: dict
  users:
    description: Users.
    type: list
    elements: dict
    suboptions:
      name:
        description: Its name.
        type: str
        required: true
      password:
        description: The password of a new user. That of one that is there is left alone.
        type: str
      description:
        description: Who that is.
        type: str
      email:
        description: Where mail goes.
        type: str
      default_project:
        description: The project for which the user logs in unless it says which.
        type: str
      enabled:
        description: Whether the user can log in.
        type: bool
      roles:
        description: Its roles in projects.
        type: list
        elements: dict
        suboptions:
          project:
            description: The project.
            type: str
            required: true
          role:
            description: The role.
            type: str
            default: member
          state:
            description: Whether the user has it. The role by which the task asks is not taken back.
            type: str
            choices: [present, absent]
            default: present
      key_pairs:
        description: Keys that servers of the user let in.
        type: list
        elements: dict
        suboptions:
          name:
            description: Its name.
            type: str
            required: true
          public_key:
            description: The public key, as OpenSSH has it. A pair with another key is made anew.
            type: str
            required: true
  state:
    description:
      - V(present) makes true what is asked for.
      - V(absent) removes the projects and users that are named. What a project still has in other services loses its owner, so empty it first.
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: openipu.pod.openstack_pod_network
"""

EXAMPLES = r"""
- name: Let a team in
  openipu.pod.openstack_pod_project:
    cloud: admin
    projects:
      - name: research
        description: Language models
        quotas:
          compute: {cores: 480, ram: 983040, instances: 8}
          network: {port: 50}
          volume: {gigabytes: 20000, volumes: 20}
    users:
      - name: alice
        password: "{{ alice_password }}"
        default_project: research
        roles:
          - {project: research}
        key_pairs:
          - {name: laptop, public_key: "{{ lookup('ansible.builtin.file', 'alice.pub') }}"}
"""

RETURN = r"""
projects:
  description: The names of the projects that were created, updated, removed and left as they are.
  type: dict
  returned: always
  sample: {created: [research], updated: [], recreated: [], removed: [], unchanged: []}
users:
  description: The same of users.
  type: dict
  returned: always
grants:
  description: The same of roles, as C(user/project/role).
  type: dict
  returned: always
quotas:
  description: The same of quotas, as C(project/service/resource).
  type: dict
  returned: always
key_pairs:
  description: The same of key pairs, as C(user/name).
  type: dict
  returned: always
errors:
  description: What could not be written, each with C(kind), C(id) and C(msg).
  type: list
  elements: dict
  returned: when something could not be written
"""

from ansible_collections.openipu.pod.plugins.module_utils.openstack.tenancy_task import OPENSTACK_POD_PROJECT
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(OPENSTACK_POD_PROJECT)


if __name__ == "__main__":
    main()
