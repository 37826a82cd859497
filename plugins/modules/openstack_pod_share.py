# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manage shared file systems for the VMs of a POD."""

from __future__ import annotations

DOCUMENTATION = r"""
module: openstack_pod_share
short_description: Manage shared file systems for the VMs of a POD
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Creates, changes and removes share types, shares and their access rules in one task, and waits until the shares are available. It also waits for
    shares of an earlier run. A task that only removes access rules, with an empty O(shares[].access) and no other setting, does not wait.
  - Omitted settings stay unchanged. A share whose creation failed is recreated, and so is an access rule that its backend rejected. A share that
    failed later, and so can contain data, is an error, unless O(recreate) is set.
  - Quotas are checked before anything is created or extended. The quotas of a share type are checked for shares with O(shares[].type), and for
    existing shares.
  - Only backends without share servers are supported for shares, since the module creates no share networks.
extends_documentation_fragment:
  - openipu.pod.openstack
  - openipu.pod.attributes
  - openipu.pod.attributes.openstack_group
attributes:
  check_mode:
    support: full
    details: Reads everything and writes nothing.
options:
  share_types:
    description: Share types. They require the credentials of an administrator.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the share type.
        type: str
        required: true
      share_servers:
        description: Whether the backend creates share servers. The default for a new type is V(false).
        type: bool
      description:
        description: Description of the share type.
        type: str
      public:
        description: Whether all projects may use it. Omit to use the default of OpenStack for a new one.
        type: bool
      extra_specs:
        description: All extra specs. Others are removed. For example, C(share_backend_name) selects the backend.
        type: dict
      projects:
        description: Names or IDs of the projects with access, when the type is not public. Others lose access.
        type: list
        elements: str
  project:
    description:
      - Name or ID of the project of the shares. The default is the project of the credentials.
      - In another project, an administrator can remove shares and access rules, and check both in check mode.
      - To create them, log in to their project.
      - Other credentials are rejected for another project.
    type: str
  shares:
    description: Shares of the project.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the share.
        type: str
        required: true
      protocol:
        description: Protocol. Required for a new share.
        type: str
        choices: [NFS, CIFS, CEPHFS, GLUSTERFS, HDFS, MAPRFS]
      type:
        description: Name of the share type. Omit to use the default type of the cloud for a new share.
        type: str
      size:
        description: Size in GB. Required for a new share. An existing share is extended or shrunk.
        type: int
      description:
        description: Description of the share.
        type: str
      access:
        description: All access rules. Others are removed.
        type: list
        elements: dict
        suboptions:
          to:
            description: Client of the share, as an address or subnet for V(ip), and a name for the other types.
            type: str
            required: true
          type:
            description: Type of O(shares[].access[].to).
            type: str
            choices: [ip, user, cert, cephx]
            default: ip
          level:
            description: Access level, read and write or read only.
            type: str
            choices: [rw, ro]
            default: rw
  state:
    description:
      - V(present) creates and changes the listed objects.
      - V(absent) removes the listed shares, with their data, and the listed types.
    type: str
    choices: [present, absent]
    default: present
  recreate:
    description:
      - Whether to recreate a share with another protocol or type, or in state C(error), and a type with another
        O(share_types[].share_servers).
      - The data in a recreated share is lost.
    type: bool
    default: false
  without_manila:
    description: Whether the task fails or is skipped on a cloud without Manila.
    type: str
    choices: [fail, skip]
    default: fail
  wait_timeout:
    description: Timeout in seconds for the creation, change or removal of a share.
    type: float
    default: 300.0
seealso:
  - module: openipu.pod.openstack_pod_catalog
"""

EXAMPLES = r"""
- name: Create a share type for the storage appliance
  openipu.pod.openstack_pod_share:
    cloud: admin
    share_types:
      - {name: appliance, extra_specs: {share_backend_name: appliance}}

- name: Create a share for the Poplar VMs of a team
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
  description: Names of the created, updated, recreated, removed and unchanged share types.
  type: dict
  returned: when the cloud has Manila
  sample: {created: [appliance], updated: [], recreated: [], removed: [], unchanged: []}
shares:
  description: Names of the shares, as for RV(share_types).
  type: dict
  returned: when the cloud has Manila
access_rules:
  description: Access rules as C(share/type/to), as for RV(share_types).
  type: dict
  returned: when the cloud has Manila
details:
  description: Shares by name, each with C(id), C(status) and C(exports), the paths that clients mount.
  type: dict
  returned: for O(state=present)
  sample: {datasets: {id: 5f0b..., status: available, exports: ["10.1.6.9:/datasets"]}}
skip_reason:
  description: Reason of the skip.
  type: str
  returned: for O(without_manila=skip) on a cloud without Manila
ids:
  description: IDs by kind and name, such as C(ids.shares). Check mode has no IDs of new objects. Objects without an ID have no entry.
  type: dict
  returned: when the cloud has Manila
  sample: {shares: {datasets: 5f0b...}}
errors:
  description: Objects that could not be written, each with C(kind), C(id), C(msg) and C(error_code).
  type: list
  elements: dict
  returned: when an object could not be written
"""

from ansible_collections.openipu.pod.plugins.module_utils.openstack.share.task import OPENSTACK_POD_SHARE
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(OPENSTACK_POD_SHARE)


if __name__ == "__main__":
    main()
