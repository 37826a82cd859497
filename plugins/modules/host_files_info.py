#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look at files of a host, all at once."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_files_info
short_description: Look at files of a host, all at once
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Tells what stands at each of many paths, with one task where M(ansible.builtin.stat) takes one for each. The module M(openipu.pod.host_files) asks
    with it.
extends_documentation_fragment:
  - openipu.pod.attributes.info
options:
  paths:
    description: Absolute paths. What stands at none of them is left out of the result.
    type: list
    elements: str
    required: true
seealso:
  - module: openipu.pod.host_files
"""

EXAMPLES = r"""
- name: See which certificates are there, and who may read them
  openipu.pod.host_files_info:
    paths: [/etc/virm-agent/tls/ca.crt, /etc/virm-agent/tls/agent.crt, /etc/virm-agent/tls/agent.key]
  become: true
"""

RETURN = r"""
files:
  description: What is there, in the order of the paths.
  type: list
  elements: dict
  returned: success
  contains:
    path:
      description: The path.
      type: str
      sample: /etc/virm-agent/tls/ca.crt
    kind:
      description: V(file), V(directory), V(link) or V(other). A link is not followed.
      type: str
      sample: file
    mode:
      description: Its permissions, in octal digits.
      type: str
      sample: "0600"
    owner:
      description: Whose it is, empty when nobody has that number.
      type: str
      sample: virm-agent
    uid:
      description: The number of the owner.
      type: int
      sample: 998
    group:
      description: Its group, empty when none has that number.
      type: str
      sample: virm-agent
    gid:
      description: The number of the group.
      type: int
      sample: 998
    checksum:
      description: The SHA-1 of what is in it, of files only.
      type: str
      sample: 5c2dd944dde9e08881bef0894fe7b22a5c9c4b06
"""

from ansible_collections.openipu.pod.plugins.module_utils.host.files_info import HOST_FILES_INFO
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(HOST_FILES_INFO)


if __name__ == "__main__":
    main()
