#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An md array over the NVMe disks of a Poplar server, with an xfs file system."""

from __future__ import annotations

DOCUMENTATION = r"""
module: poplar_array
short_description: An md array over the NVMe disks of a Poplar server, with an xfs file system
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Makes an md array of empty disks and an xfs file system on it. One that is there and does not run is started.
  - Nothing is ever wiped. A disk that is mounted, or has partitions, a file system, a volume, swap space, the superblock of another array or
    any other data at its beginning or end, is refused with a sentence that names it, before anything is changed. So is an array that holds anything
    but xfs.
  - An array that is there keeps its disks and its level. One that lacks disks, or whose name another has, is told in a warning or an error.
  - The array is known by its name, as C(/dev/md/NAME), whatever number it has and on whatever host it is.
extends_documentation_fragment:
  - openipu.pod.attributes.host
options:
  name:
    description: The name of the array, and the label of its file system; up to 12 characters.
    type: str
    required: true
  level:
    description: Its level.
    type: str
    choices: [raid0, raid1, raid5, raid6, raid10]
    default: raid6
  disks:
    description: Its disks, as paths. All NVMe disks of the host unless given.
    type: list
    elements: path
    default: []
  count:
    description: How many disks it has to have. Refused when there are more or fewer, so that no disk is taken, or forgotten, by accident.
    type: int
  chunk:
    description: The size of a chunk in KiB when it is made; what mdadm thinks best unless given.
    type: int
notes:
  - Needs root, mdadm, xfsprogs and util-linux 2.37 or later.
  - In check mode an array that does not run is not looked into, since its file system is known only when it does.
"""

EXAMPLES = r"""
- name: Make one array of the seven NVMe disks
  openipu.pod.poplar_array:
    name: nvme
    count: 7
  become: true

- name: Name the disks by what is printed on them
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
  description: The array.
  type: str
  returned: success
  sample: /dev/md/nvme
disks:
  description: Its disks.
  type: list
  elements: str
  returned: success
  sample: [/dev/nvme0n1, /dev/nvme1n1, /dev/nvme2n1, /dev/nvme3n1]
arrays:
  description: What was done to the array, as lists of names under C(created), C(updated) (it was started) and C(unchanged).
  type: dict
  returned: success
filesystems:
  description: The same for its file system, by device.
  type: dict
  returned: when the array runs, or is made
"""

from ansible_collections.openipu.pod.plugins.module_utils.host.array_task import POPLAR_ARRAY
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(POPLAR_ARRAY)


if __name__ == "__main__":
    main()
