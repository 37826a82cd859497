# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manage the projects of tenants, with users, roles, quotas and key pairs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: openstack_pod_project
short_description: Manage the projects of tenants, with users, roles, quotas and key pairs
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Creates, changes and removes projects and users, with their roles, quotas and key pairs, in one task.
  - Omitted settings stay unchanged. Other roles and key pairs of a user stay. Set O(users[].roles[].state=absent) to revoke a role.
extends_documentation_fragment:
  - openipu.pod.openstack
  - openipu.pod.attributes
  - openipu.pod.attributes.openstack_group
attributes:
  check_mode:
    support: full
    details: Reads everything and writes nothing.
options:
  domain:
    description: Name of the domain of all projects and users. V(default) is also the ID of the default domain.
    type: str
    default: default
  projects:
    description: Projects.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the project.
        type: str
        required: true
      description:
        description: Description of the project.
        type: str
      enabled:
        description: Whether the project is enabled.
        type: bool
      quotas:
        description: Quotas by service. V(-1) means no limit. Omitted quotas are not managed.
        type: dict
        suboptions:
          compute:
            description: Quotas of Nova, such as C(cores), C(ram) in MB and C(instances).
            type: dict
          network:
            description: Quotas of Neutron, such as C(port) and C(security_group).
            type: dict
          volume:
            description: Quotas of Cinder, such as C(gigabytes) and C(volumes).
            type: dict
  users:
    description: Users.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the user.
        type: str
        required: true
      password:
        description: Password of a new user. The password of an existing user stays unchanged.
        type: str
      description:
        description: Description of the user.
        type: str
      email:
        description: Email address.
        type: str
      default_project:
        description: Project that the user logs in to by default.
        type: str
      enabled:
        description: Whether the user is enabled.
        type: bool
      roles:
        description: Roles of the user in projects.
        type: list
        elements: dict
        suboptions:
          project:
            description: Name of the project.
            type: str
            required: true
          role:
            description: Name of the role.
            type: str
            default: member
          state:
            description: Whether the user has the role. The task does not revoke a role that its own credentials use.
            type: str
            choices: [present, absent]
            default: present
      key_pairs:
        description: SSH keys of the user for servers.
        type: list
        elements: dict
        suboptions:
          name:
            description: Name of the key pair.
            type: str
            required: true
          public_key:
            description: Public key in OpenSSH format. A key pair with another key is recreated.
            type: str
            required: true
  state:
    description:
      - V(present) creates and changes the listed objects.
      - V(absent) removes the listed projects and users. Remove the objects of a project in other services first, since they lose their owner.
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: openipu.pod.openstack_pod_network
  - module: openstack.cloud.project_info
"""

EXAMPLES = r"""
- name: Create a project and a user for a team
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
  description: Names of the created, updated, recreated, removed and unchanged projects.
  type: dict
  returned: always
  sample: {created: [research], updated: [], recreated: [], removed: [], unchanged: []}
users:
  description: Names of the users, as for RV(projects).
  type: dict
  returned: always
grants:
  description: Roles as C(user/project/role), as for RV(projects).
  type: dict
  returned: always
quotas:
  description: Quotas as C(project/service/resource), as for RV(projects).
  type: dict
  returned: always
key_pairs:
  description: Key pairs as C(user/name), as for RV(projects).
  type: dict
  returned: always
ids:
  description:
    - IDs by kind and name, such as C(ids.projects). Check mode has no IDs of new objects. Objects without an ID have no entry.
    - The result has no other fields of the objects. M(openstack.cloud.project_info) and M(openstack.cloud.identity_user_info) return them by ID.
  type: dict
  returned: always
  sample: {projects: {research: 5f0b...}}
errors:
  description: Objects that could not be written, each with C(kind), C(id), C(msg) and C(error_code).
  type: list
  elements: dict
  returned: when an object could not be written
"""

from ansible_collections.openipu.pod.plugins.module_utils.openstack.project.task import OPENSTACK_POD_PROJECT
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(OPENSTACK_POD_PROJECT)


if __name__ == "__main__":
    main()
