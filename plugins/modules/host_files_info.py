#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the attributes of files of a host in one task."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_files_info
short_description: Read the attributes of files of a host in one task
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Reads the attributes of many files in one task. M(ansible.builtin.stat) needs one task for each file. The module M(openipu.pod.host_files) uses this module.
extends_documentation_fragment:
  - openipu.pod.attributes.info
options:
  paths:
    description: Absolute paths, or paths in the home folder of the user (C(~/)). Paths that do not exist are omitted from the result.
    type: list
    elements: str
    required: true
seealso:
  - module: openipu.pod.host_files
"""

EXAMPLES = r"""
- name: Read the attributes of certificates
  openipu.pod.host_files_info:
    paths: [/etc/virm-agent/tls/ca.crt, /etc/virm-agent/tls/agent.crt, /etc/virm-agent/tls/agent.key]
  become: true
"""

RETURN = r"""
files:
  description: Existing files, in the order of the paths.
  type: list
  elements: dict
  returned: success
  contains:
    path:
      description: Path of the file.
      type: str
      sample: /etc/virm-agent/tls/ca.crt
    kind:
      description: V(file), V(directory), V(link) or V(other). Links are not followed.
      type: str
      sample: file
    mode:
      description: Permissions, in octal digits.
      type: str
      sample: "0600"
    owner:
      description: Name of the owner. Empty when no user has the UID.
      type: str
      sample: virm-agent
    uid:
      description: UID of the owner.
      type: int
      sample: 998
    group:
      description: Name of the group. Empty when no group has the GID.
      type: str
      sample: virm-agent
    gid:
      description: GID of the group.
      type: int
      sample: 998
    checksum:
      description: SHA-1 of the content. Only for files.
      type: str
      sample: 5c2dd944dde9e08881bef0894fe7b22a5c9c4b06
"""

from ansible_collections.openipu.pod.plugins.module_utils.host.files_info_task import HOST_FILES_INFO
from ansible_collections.openipu.pod.plugins.module_utils.runner import run_module


def main() -> None:
    run_module(HOST_FILES_INFO)


if __name__ == "__main__":
    main()
