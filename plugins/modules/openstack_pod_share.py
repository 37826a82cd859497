# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Offer shared file systems to the VMs of a POD."""

from __future__ import annotations

DOCUMENTATION = r"""
module: openstack_pod_share
short_description: Offer shared file systems to the VMs of a POD
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Makes types of shares, shares, and who may mount them what is asked for, in one task, and waits until the shares are available, also those
    that an earlier run has begun.
  - What is not asked about stays as it is. A share that could not be made is made anew, and so is a rule that its backend did not take.
  - Shares go to backends without share servers; share networks are not made.
extends_documentation_fragment:
  - openipu.pod.openstack
  - openipu.pod.attributes
  - openipu.pod.attributes.openstack
attributes:
  check_mode:
    support: full
    details: Everything is read, and nothing is written.
options:
  share_types:
    description: Types of shares. That takes an administrator.
    type: list
    elements: dict
    suboptions:
      name:
        description: Its name.
        type: str
        required: true
      share_servers:
        description: Whether the backend makes share servers. A new one says no unless given.
        type: bool
      description:
        description: What it is for.
        type: str
      public:
        description: Whether all projects may use it.
        type: bool
      extra_specs:
        description: Its extra specs, and no others, like C(share_backend_name).
        type: dict
      projects:
        description: The projects that may use one that is not public, and no others, by name or id.
        type: list
        elements: str
  shares:
    description: Shares of the project that is logged in to.
    type: list
    elements: dict
    suboptions:
      name:
        description: Its name.
        type: str
        required: true
      protocol:
        description: How it is mounted. Needed for a new one.
        type: str
        choices: [NFS, CIFS, CEPHFS, GLUSTERFS, HDFS, MAPRFS]
      type:
        description: Its type. The one that the cloud takes by default unless given.
        type: str
      size:
        description: Its size in GB. Needed for a new one. One that has another size grows or shrinks.
        type: int
      description:
        description: What it is for.
        type: str
      access:
        description: Who may mount it, and nobody else.
        type: list
        elements: dict
        suboptions:
          to:
            description: An address or a subnet, or a name as the type has it.
            type: str
            required: true
          type:
            description: What O(shares[].access[].to) is.
            type: str
            choices: [ip, user, cert, cephx]
            default: ip
          level:
            description: Whether to read and write, or to read only.
            type: str
            choices: [rw, ro]
            default: rw
  state:
    description:
      - V(present) makes true what is asked for.
      - V(absent) removes the shares, with all that is in them, and the types that are named.
    type: str
    choices: [present, absent]
    default: present
  recreate:
    description: Whether a share with another protocol or type is made anew, and a type with or without share servers. What is in the share is lost.
    type: bool
    default: false
  without_manila:
    description: Whether the task fails or is skipped on a cloud that has no Manila.
    type: str
    choices: [fail, skip]
    default: fail
  wait_timeout:
    description: How many seconds a share may take to come, to change or to go.
    type: float
    default: 300.0
seealso:
  - module: openipu.pod.openstack_pod_catalog
"""

EXAMPLES = r"""
- name: A type for the storage appliance
  openipu.pod.openstack_pod_share:
    cloud: admin
    share_types:
      - {name: appliance, extra_specs: {share_backend_name: appliance}}

- name: A share that the Poplar VMs of a team mount
  openipu.pod.openstack_pod_share:
    cloud: tenant-a
    shares:
      - name: datasets
        protocol: NFS
        type: appliance
        size: 500
        access:
          - {to: 10.1.6.0/24}
"""

RETURN = r"""
share_types:
  description: The names of the types that were created, updated, made anew, removed and left as they are.
  type: dict
  returned: when there is a Manila
  sample: {created: [appliance], updated: [], recreated: [], removed: [], unchanged: []}
shares:
  description: The same of shares.
  type: dict
  returned: when there is a Manila
access_rules:
  description: The same of who may mount them, as C(share/type/to).
  type: dict
  returned: when there is a Manila
details:
  description: C(id), C(status) and C(exports), what a client mounts, of every share, by name.
  type: dict
  returned: for O(state=present)
  sample: {datasets: {id: 5f0b..., status: available, exports: ["10.1.6.9:/datasets"]}}
skip_reason:
  description: That there is no Manila.
  type: str
  returned: for O(without_manila=skip) on a cloud without
errors:
  description: What could not be written, each with C(kind), C(id) and C(msg).
  type: list
  elements: dict
  returned: when something could not be written
"""

from ansible_collections.openipu.pod.plugins.module_utils.openstack.shares_task import OPENSTACK_POD_SHARE
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(OPENSTACK_POD_SHARE)


if __name__ == "__main__":
    main()
