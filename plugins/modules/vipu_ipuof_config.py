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
  - Writes the file by which Poplar finds the IPUs of a partition, whole or not at all, readable by its owner only unless told otherwise.
  - Runs on the host where the file is to be, which has to reach the controller. Needs nothing but the public user API.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes
  - openipu.pod.attributes.vipu
options:
  id:
    description: The name of the partition, which has to be ACTIVE.
    type: str
    required: true
  gcd:
    description: The graph compilation domain that the file is for, from 0; needed when the partition has several.
    type: int
  dest:
    description:
      - The file, or a folder that exists, in which it gets the name that Graphcore's command line would give it.
      - Poplar looks in C(~/.ipuof.conf.d) and, for all users of a host, in C(/etc/ipuof.conf.d).
      - A folder that is missing is made, readable by those who may read the file.
    type: path
    required: true
  mode:
    description: The permissions of the file in octal, in quotes.
    type: raw
    default: "0600"
  state:
    description:
      - Whether the file is to be there.
      - With V(absent) the controller is not asked, so the partition may be gone.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Let the user of this task run Poplar programs on the partition
  openipu.pod.vipu_ipuof_config:
    api_host: 10.3.1.101
    id: vision
    dest: ~/.ipuof.conf.d/vision_ipuof.conf

- name: Let all users of the host do so, each GCD with its own file
  openipu.pod.vipu_ipuof_config:
    api_host: 10.3.1.101
    id: large
    gcd: "{{ item }}"
    dest: /etc/ipuof.conf.d/large_gcd{{ item }}_ipuof.conf
    mode: "0644"
  loop: [0, 1]
  become: true

- name: Take it away again
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
"""

from ansible_collections.openipu.pod.plugins.module_utils.vipu.infos import VIPU_IPUOF_CONFIG
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(VIPU_IPUOF_CONFIG)


if __name__ == "__main__":
    main()
