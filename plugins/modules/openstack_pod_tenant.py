# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Note what a project has of a POD, and lend a role there."""

from __future__ import annotations

DOCUMENTATION = r"""
module: openstack_pod_tenant
short_description: Note what a project has of a POD, and lend a role there
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Notes in tags of a project what it has of a POD, like a vPOD, and tells what else is noted there.
  - Lends roles in that project to the user who asks, as starting servers there takes. What is lent is noted too, so that only that is taken back. A role that
    the user had before stays, and so does one that the user needs there for something else.
extends_documentation_fragment:
  - openipu.pod.openstack
  - openipu.pod.attributes
  - openipu.pod.attributes.openstack
attributes:
  check_mode:
    support: full
    details: Everything is read, and nothing is written.
options:
  pod:
    description: What the project has. It is the tag C(openipu.pod=NAME) of the project.
    type: str
    required: true
  project:
    description: The project, by name or id. With O(state=absent) it need not be there any more.
    type: str
    required: true
  roles:
    description:
      - The roles that the user who asks is to have there for this, by name. Others that were lent for it are taken back.
      - They are left alone unless given.
    type: list
    elements: str
  state:
    description:
      - V(present) notes it.
      - V(absent) takes the note and all roles back that were lent for it, whoever has them.
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: openipu.pod.openstack_pod_project
  - module: openipu.pod.openstack_pod_server
"""

EXAMPLES = r"""
- name: Note that a project has a vPOD
  openipu.pod.openstack_pod_tenant:
    cloud: admin
    pod: vpod1
    project: tenant-a

- name: May start servers there
  openipu.pod.openstack_pod_tenant:
    cloud: admin
    pod: vpod1
    project: tenant-a
    roles: [admin]

- name: May not any more
  openipu.pod.openstack_pod_tenant:
    cloud: admin
    pod: vpod1
    project: tenant-a
    roles: []

- name: Leave nothing of it, and learn what else the project has
  openipu.pod.openstack_pod_tenant:
    cloud: admin
    pod: vpod1
    project: tenant-a
    state: absent
  register: tenant
"""

RETURN = r"""
notes:
  description: What was noted or forgotten, and was noted before.
  type: dict
  returned: always
  sample: {created: [vpod1], updated: [], recreated: [], removed: [], unchanged: []}
roles:
  description: The same of roles. One that the user had before is among the unchanged.
  type: dict
  returned: always
others:
  description: What else the project is noted for.
  type: list
  elements: str
  returned: always
  sample: [vpod2]
errors:
  description: What could not be written, each with C(kind), C(id) and C(msg).
  type: list
  elements: dict
  returned: when something could not be written
"""

from ansible_collections.openipu.pod.plugins.module_utils.openstack.tenant_task import OPENSTACK_POD_TENANT
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(OPENSTACK_POD_TENANT)


if __name__ == "__main__":
    main()
