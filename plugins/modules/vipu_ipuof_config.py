#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the IPUoF configuration of a partition to a file."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vipu_ipuof_config
short_description: Write the IPUoF configuration of a partition to a file
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Writes the file with which Poplar finds the IPUs of a partition. The file is written atomically and by default readable by its owner only.
  - Runs on the host of the file, which must have access to the controller. Requires only the public user API.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes
  - openipu.pod.attributes.vipu_group
options:
  id:
    description: ID of the partition, which must be ACTIVE.
    type: str
    required: true
  gcd:
    description: Graph compilation domain of the file, from 0. Required when the partition has several.
    type: int
  dest:
    description:
      - Path of the file, or an existing folder. In a folder, the file has the name that Graphcore's command line uses.
      - Poplar reads C(~/.ipuof.conf.d) and, for all users of a host, C(/etc/ipuof.conf.d).
      - A missing folder is created with read permissions like those of the file, and returned as RV(created_folder). The task fails when the
        parent of this folder does not exist either.
    type: path
    required: true
  mode:
    description: Permissions of the file, as octal digits in quotes.
    type: raw
    default: "0600"
  state:
    description:
      - Whether the file exists.
      - V(absent) does not contact the controller, so the partition need not exist.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Write the configuration for the user of this task
  openipu.pod.vipu_ipuof_config:
    api_host: 10.3.1.101
    id: vision
    dest: ~/.ipuof.conf.d/vision_ipuof.conf

- name: Write the configuration of each GCD for all users of the host
  openipu.pod.vipu_ipuof_config:
    api_host: 10.3.1.101
    id: large
    gcd: "{{ item }}"
    dest: /etc/ipuof.conf.d/large_gcd{{ item }}_ipuof.conf
    mode: "0644"
  loop: [0, 1]
  become: true

- name: Remove the configuration
  openipu.pod.vipu_ipuof_config:
    id: vision
    dest: ~/.ipuof.conf.d/vision_ipuof.conf
    state: absent
"""

RETURN = r"""
dest:
  description: The file.
  type: str
  returned: success
  sample: /home/ipuuser/.ipuof.conf.d/vision_ipuof.conf
created_folder:
  description: The folder that the task created, or would create in check mode.
  type: str
  returned: when the folder of the file did not exist
  sample: /home/ipuuser/.ipuof.conf.d
"""

from ansible_collections.openipu.pod.plugins.module_utils.vipu.tasks.ipuof_task import VIPU_IPUOF_CONFIG
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(VIPU_IPUOF_CONFIG)


if __name__ == "__main__":
    main()
