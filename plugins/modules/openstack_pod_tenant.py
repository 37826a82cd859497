# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tag a project with the PODs that it uses, and grant roles there."""

from __future__ import annotations

DOCUMENTATION = r"""
module: openstack_pod_tenant
short_description: Tag a project with the PODs that it uses, and grant roles there
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Tags a project with the PODs and vPODs that it uses, and returns the other PODs in its tags.
  - Grants roles in the project to the user of the credentials, for instance to create servers there. It tags these roles too, and revokes no others.
    A role that the user had before stays, and so does a role that another POD needs.
  - Can also record V-IPU users that were created for a POD, in tags.
extends_documentation_fragment:
  - openipu.pod.openstack
  - openipu.pod.attributes
  - openipu.pod.attributes.openstack_group
attributes:
  check_mode:
    support: full
    details: Reads everything and writes nothing.
options:
  pod:
    description: Name of the POD or vPOD. The project gets the tag C(openipu.pod=NAME).
    type: str
    required: true
  project:
    description: Name or ID of the project. With O(state=absent), a missing project is no error.
    type: str
    required: true
  roles:
    description:
      - Names of all roles to grant to the user for O(pod). Others that were granted for it are revoked.
      - Omit to leave the roles unchanged.
    type: list
    elements: str
  vipu_users:
    description:
      - All V-IPU users that were created for O(pod). The project gets the tag C(openipu.vipu_user=USER:NAME) for each, and loses those of others.
      - Omit to leave these tags unchanged.
    type: list
    elements: str
  state:
    description:
      - V(present) adds the tag.
      - V(absent) removes the tag and those of O(vipu_users), and revokes all roles that were granted for O(pod) to any user.
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: openipu.pod.openstack_pod_project
  - module: openipu.pod.openstack_pod_server
"""

EXAMPLES = r"""
- name: Tag a project with a vPOD
  openipu.pod.openstack_pod_tenant:
    cloud: admin
    pod: vpod1
    project: tenant-a

- name: Grant the role to create servers in the project
  openipu.pod.openstack_pod_tenant:
    cloud: admin
    pod: vpod1
    project: tenant-a
    roles: [admin]

- name: Revoke the role
  openipu.pod.openstack_pod_tenant:
    cloud: admin
    pod: vpod1
    project: tenant-a
    roles: []

- name: Remove the tag and the roles, and read the other PODs of the project
  openipu.pod.openstack_pod_tenant:
    cloud: admin
    pod: vpod1
    project: tenant-a
    state: absent
  register: tenant
"""

RETURN = r"""
tags:
  description: Added, removed and unchanged tags of PODs, without C(openipu.pod=).
  type: dict
  returned: always
  sample: {created: [vpod1], updated: [], recreated: [], removed: [], unchanged: []}
roles:
  description: Granted roles, as for RV(tags). A role that the user had before is unchanged.
  type: dict
  returned: always
vipu_users:
  description: V-IPU users in the tags, as for RV(tags).
  type: dict
  returned: always
other_vipu_users:
  description: V-IPU users that were created for other PODs, in the tags of the project.
  type: list
  elements: str
  returned: always
  sample: []
other_pods:
  description: Other PODs in the tags of the project.
  type: list
  elements: str
  returned: always
  sample: [vpod2]
other_projects:
  description: Names of other projects with the tag of O(pod).
  type: list
  elements: str
  returned: always
  sample: []
ids:
  description:
    - ID of the project as C(ids.projects), by the name in O(project). Empty for a project that does not exist.
    - M(openstack.cloud.project_info) returns the project with its tags.
  type: dict
  returned: always
  sample: {projects: {tenant-a: 5f0b...}}
errors:
  description: Objects that could not be written, each with C(kind), C(id), C(msg) and C(error_code).
  type: list
  elements: dict
  returned: when an object could not be written
"""

from ansible_collections.openipu.pod.plugins.module_utils.openstack.tenant.task import OPENSTACK_POD_TENANT
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(OPENSTACK_POD_TENANT)


if __name__ == "__main__":
    main()
