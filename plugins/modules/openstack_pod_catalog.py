# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manage images, flavors and volume types for the VMs of a POD."""

from __future__ import annotations

DOCUMENTATION = r"""
module: openstack_pod_catalog
short_description: Manage images, flavors and volume types for the VMs of a POD
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Creates, changes and removes images, flavors and volume types in one task.
  - The content of an image and the size of a flavor are immutable. An object that differs is recreated under the same name; existing servers keep the
    old one.
  - Omitted settings stay unchanged. A recreated object keeps them too, such as the projects that may use a flavor.
extends_documentation_fragment:
  - openipu.pod.openstack
  - openipu.pod.attributes
  - openipu.pod.attributes.openstack_group
attributes:
  check_mode:
    support: full
    details: Reads everything except the files of images, and writes nothing.
options:
  images:
    description: Images of the project of the credentials.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the image.
        type: str
        required: true
      file:
        description: Path of the file with the content, on the host that runs the task. Required for a new image, and read only then.
        type: path
      checksum:
        description:
          - Checksum of the file, such as V(sha256:9f86d0...) or V(sha512:ee26b0...). A file with another checksum is rejected.
          - An image that was created with another checksum is recreated.
        type: str
      disk_format:
        description: Disk format. The default for a new image is V(qcow2) for the suffixes C(.qcow2) and C(.img), and V(raw) for others.
        type: str
        choices: [raw, qcow2, vmdk, vdi, vhd, vhdx, iso, aki, ari, ami]
      container_format:
        description: Container format. The default for a new image is V(bare).
        type: str
        choices: [bare, ovf, ova, aki, ari, ami, docker]
      visibility:
        description: Visibility for other projects.
        type: str
        choices: [public, private, shared, community]
      min_disk:
        description: Minimum disk size in GB.
        type: int
      min_ram:
        description: Minimum memory in MB.
        type: int
      properties:
        description: All properties of the image. Others are removed.
        type: dict
  flavors:
    description: Flavors.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the flavor.
        type: str
        required: true
      vcpus:
        description: Number of virtual CPUs. Required for a new flavor.
        type: int
      ram:
        description: Memory in MB. Required for a new flavor.
        type: int
      disk:
        description: Size of the root disk in GB. The default for a new flavor is 0.
        type: int
      ephemeral:
        description: Size of the second disk in GB, on the local NVMe of a Poplar server. The default for a new flavor is 0.
        type: int
      swap:
        description: Size of the swap disk in MB. The default for a new flavor is 0.
        type: int
      public:
        description: Whether all projects may use it. Omit to use the default of OpenStack for a new one.
        type: bool
      extra_specs:
        description: All extra specs. Others are removed. For example, C(hw:cpu_policy) sets the CPU policy.
        type: dict
      projects:
        description: Names or IDs of the projects with access, when it is not public. Others lose access.
        type: list
        elements: str
  volume_types:
    description: Volume types.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the volume type.
        type: str
        required: true
      description:
        description: Description of the volume type.
        type: str
      public:
        description: Whether all projects may use it. Omit to use the default of OpenStack for a new one.
        type: bool
      extra_specs:
        description: All extra specs. Others are removed. For example, C(volume_backend_name) selects the backend.
        type: dict
      projects:
        description: Names or IDs of the projects with access, when it is not public. Others lose access.
        type: list
        elements: str
  state:
    description:
      - V(present) creates and changes the listed objects.
      - V(absent) removes the listed objects.
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: openipu.pod.openstack_pod_project
  - module: openstack.cloud.image_info
"""

EXAMPLES = r"""
- name: Create an image, and a flavor for half of a Poplar server
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
  description: Names of the created, updated, recreated, removed and unchanged images.
  type: dict
  returned: when O(images) is set
  sample: {created: [poplar-ubuntu20.04], updated: [], recreated: [], removed: [], unchanged: []}
flavors:
  description: Names of the flavors, as for RV(images).
  type: dict
  returned: when O(flavors) is set
volume_types:
  description: Names of the volume types, as for RV(images).
  type: dict
  returned: when O(volume_types) is set
ids:
  description:
    - IDs by kind and name, such as C(ids.images). Check mode has no IDs of new objects. Objects without an ID have no entry.
    - The result has no other fields of the objects. M(openstack.cloud.image_info) and M(openstack.cloud.compute_flavor_info) return them.
  type: dict
  returned: always
  sample: {images: {poplar-ubuntu20.04: 5f0b...}}
errors:
  description: Objects that could not be written, each with C(kind), C(id), C(msg) and C(error_code).
  type: list
  elements: dict
  returned: when an object could not be written
"""

from ansible_collections.openipu.pod.plugins.module_utils.openstack.catalog.task import OPENSTACK_POD_CATALOG
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(OPENSTACK_POD_CATALOG)


if __name__ == "__main__":
    main()
