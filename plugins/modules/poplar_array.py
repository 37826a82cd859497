#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Create an md array of the NVMe disks of a Poplar server, with an xfs file system."""

from __future__ import annotations

DOCUMENTATION = r"""
module: poplar_array
short_description: Create an md array of the NVMe disks of a Poplar server, with an xfs file system
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Creates an md array of empty disks, and an xfs file system on it. An existing array that does not run is started.
  - No data is ever wiped. The task fails without changes when a disk is mounted, or has partitions, a file system, a volume, swap space, the
    superblock of another array, or any other data at its beginning or end. The message names the disk.
  - The task also fails when the array has other content than xfs.
  - An existing array keeps its disks and its level. The task warns about missing disks of a running array, and about disks outside of the array.
  - The task fails when O(level) differs, when disks of a stopped array are missing, and when other disks have an array of this name.
  - The array is identified by its name, as C(/dev/md/NAME), independent of its number and of the host.
extends_documentation_fragment:
  - openipu.pod.attributes.host
options:
  name:
    description: Name of the array, and label of its file system. Up to 12 letters, digits, C(-) and C(_).
    type: str
    required: true
  level:
    description: RAID level.
    type: str
    choices: [raid0, raid1, raid5, raid6, raid10]
    default: raid6
  disks:
    description: Paths of the disks. Omit to use all NVMe disks of the host.
    type: list
    elements: path
    default: []
  count:
    description: Expected number of disks. The task fails for another number, so that no disk is used or omitted by accident. Omit to accept any number.
    type: int
  chunk:
    description: Chunk size of a new array, in KiB. Omit to use the default of mdadm.
    type: int
notes:
  - Requires root, mdadm, xfsprogs and util-linux 2.37 or later.
  - Check mode does not check the file system of an array that does not run, because it cannot be read.
"""

EXAMPLES = r"""
- name: Create one array of the seven NVMe disks
  openipu.pod.poplar_array:
    name: nvme
    count: 7
  become: true

- name: Select disks by their serial numbers
  openipu.pod.poplar_array:
    name: nvme
    level: raid10
    disks:
      - /dev/disk/by-id/nvme-Example_SSD_0001
      - /dev/disk/by-id/nvme-Example_SSD_0002
      - /dev/disk/by-id/nvme-Example_SSD_0003
      - /dev/disk/by-id/nvme-Example_SSD_0004
  become: true
"""

RETURN = r"""
device:
  description: Path of the array.
  type: str
  returned: success
  sample: /dev/md/nvme
disks:
  description: Paths of its disks.
  type: list
  elements: str
  returned: success
  sample: [/dev/nvme0n1, /dev/nvme1n1, /dev/nvme2n1, /dev/nvme3n1]
arrays:
  description: Result of the array, as lists of names C(created), C(updated) (it was started) and C(unchanged).
  type: dict
  returned: success
filesystems:
  description: Result of the file system, as lists of devices C(created) and C(unchanged).
  type: dict
  returned: when the array runs or is created
"""

from ansible_collections.openipu.pod.plugins.module_utils.host.array_task import POPLAR_ARRAY
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(POPLAR_ARRAY)


if __name__ == "__main__":
    main()
