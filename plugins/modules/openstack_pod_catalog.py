# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Offer images, flavors and volume types for the VMs of a POD."""

from __future__ import annotations

DOCUMENTATION = r"""
module: openstack_pod_catalog
short_description: Offer images, flavors and volume types for the VMs of a POD
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Makes images, flavors and volume types what is asked for, in one task.
  - The bytes of an image and the size of a flavor cannot be changed. One that differs is made anew under the same name, and servers of the old one keep it.
  - What is not asked about stays as it is, and of what is made anew too, like the projects that may use a flavor.
extends_documentation_fragment:
  - openipu.pod.openstack
  - openipu.pod.attributes
  - openipu.pod.attributes.openstack
attributes:
  check_mode:
    support: full
    details: Everything is read but the files of images, and nothing is written.
options:
  images:
    description: Images of the project that is logged in to.
    type: list
    elements: dict
    suboptions:
      name:
        description: Its name.
        type: str
        required: true
      file:
        description: The file with its bytes, where the task runs. It is read only when the image has to be made.
        type: path
      checksum:
        description:
          - What the file must have, like V(sha256:9f86d0...) or V(sha512:ee26b0...). A file that has another one is refused.
          - An image that was made from another checksum is made anew.
        type: str
      disk_format:
        description: The format of the bytes. Unless given, V(qcow2) for a file named so or C(.img), else V(raw).
        type: str
        choices: [raw, qcow2, vmdk, vdi, vhd, vhdx, iso, aki, ari, ami]
      container_format:
        description: What is around them, V(bare) unless given.
        type: str
        choices: [bare, ovf, ova, aki, ari, ami, docker]
      visibility:
        description: Who may use it.
        type: str
        choices: [public, private, shared, community]
      min_disk:
        description: The smallest disk that it fits on, in GB.
        type: int
      min_ram:
        description: The least memory that it starts with, in MB.
        type: int
      properties:
        description: Its properties, and no others.
        type: dict
  flavors:
    description: Flavors.
    type: list
    elements: dict
    suboptions:
      name:
        description: Its name.
        type: str
        required: true
      vcpus:
        description: Processors. Needed for a new one.
        type: int
      ram:
        description: Memory in MB. Needed for a new one.
        type: int
      disk:
        description: The root disk in GB.
        type: int
      ephemeral:
        description: The second disk in GB, from the local NVMe of a Poplar server.
        type: int
      swap:
        description: Swap in MB.
        type: int
      public:
        description: Whether all projects may use it.
        type: bool
      extra_specs:
        description: Its extra specs, and no others, like C(hw:cpu_policy).
        type: dict
      projects:
        description: The projects that may use one that is not public, and no others, by name or id.
        type: list
        elements: str
  volume_types:
    description: Volume types.
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
      public:
        description: Whether all projects may use it.
        type: bool
      extra_specs:
        description: Its extra specs, and no others, like C(volume_backend_name).
        type: dict
      projects:
        description: The projects that may use one that is not public, and no others, by name or id.
        type: list
        elements: str
  state:
    description:
      - V(present) makes true what is asked for.
      - V(absent) removes the images, flavors and volume types that are named.
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: openipu.pod.openstack_pod_project
"""

EXAMPLES = r"""
- name: Offer half a Poplar server
  openipu.pod.openstack_pod_catalog:
    cloud: admin
    images:
      - name: poplar-ubuntu20.04
        file: /srv/images/poplar-ubuntu20.04.qcow2
        checksum: sha256:0000000000000000000000000000000000000000000000000000000000000000
        visibility: public
        properties: {hw_vif_multiqueue_enabled: true}
    flavors:
      - name: poplar.half
        vcpus: 112
        ram: 229376
        disk: 100
        ephemeral: 2000
        public: false
        projects: [research]
        extra_specs:
          hw:cpu_policy: dedicated
          hw:mem_page_size: 1GB
          hw:numa_nodes: 4
    volume_types:
      - {name: fast, extra_specs: {volume_backend_name: nvme}}
"""

RETURN = r"""
images:
  description: The names of the images that were created, updated, made anew, removed and left as they are.
  type: dict
  returned: when images were asked about
  sample: {created: [poplar-ubuntu20.04], updated: [], recreated: [], removed: [], unchanged: []}
flavors:
  description: The same of flavors.
  type: dict
  returned: when flavors were asked about
volume_types:
  description: The same of volume types.
  type: dict
  returned: when volume types were asked about
errors:
  description: What could not be written, each with C(kind), C(id) and C(msg).
  type: list
  elements: dict
  returned: when something could not be written
"""

from ansible_collections.openipu.pod.plugins.module_utils.openstack.catalog_task import OPENSTACK_POD_CATALOG
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(OPENSTACK_POD_CATALOG)


if __name__ == "__main__":
    main()
