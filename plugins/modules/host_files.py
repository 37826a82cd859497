#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write files of a host that are looked at together."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_files
short_description: Write files of a host that are looked at together
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Does for a list of files what M(ansible.builtin.copy), M(ansible.builtin.template) and M(ansible.builtin.file) do for each.
  - The host is asked once for all of them. When nothing is left to do, which is what most runs of a playbook find, that one question is all, instead
    of two for each file.
  - What differs is written by M(ansible.builtin.copy) and M(ansible.builtin.file), in the order of the list. After one that cannot be written, the
    task ends; what came before it stays, and no handler is told of it.
extends_documentation_fragment:
  - openipu.pod.attributes.host
options:
  files:
    description: The files, and folders, in the order in which they are made.
    type: list
    elements: dict
    required: true
    suboptions:
      path:
        description: Where it is to be, an absolute path. The folder of a file is to be there, or stands before it in the list.
        type: str
        required: true
      state:
        description: What it is.
        type: str
        choices: [file, directory]
        default: file
      template:
        description: A template on the control node, from which the file is made. A role has its own in C(templates).
        type: str
      template_vars:
        description: What only this template knows, for templates that several files are made from.
        type: dict
        default: {}
      content:
        description: Or what is to be in the file. Data become JSON, as with M(ansible.builtin.copy).
        type: raw
      src:
        description: Or a file on the control node to copy. A role has its own in C(files).
        type: str
      owner:
        description: Whose it is, when not the O(owner) of all.
        type: str
      group:
        description: Of which group, when not the O(group) of all.
        type: str
      mode:
        description: Permissions, when not O(mode) or O(directory_mode). In octal digits and quotes; with letters, what differs is never known beforehand.
        type: raw
      validate:
        description: A command that must agree to a file before it takes its place, with C(%s) for its name.
        type: str
      secret:
        description: Whether differences are not to be shown.
        type: bool
        default: false
  owner:
    description: Whose the files are.
    type: str
    default: root
  group:
    description: Of which group they are.
    type: str
    default: root
  mode:
    description: Permissions of files.
    type: raw
    default: "0644"
  directory_mode:
    description: Permissions of folders.
    type: raw
    default: "0755"
  variable_start_string:
    description: What begins an expression in a template.
    type: str
    default: "{{"
  variable_end_string:
    description: What ends it.
    type: str
    default: "}}"
attributes:
  platform:
    platforms: posix
notes:
  - With a handler, let what may be refused, by its O(files[].validate), stand first in its list, so that the service takes up all that was written.
  - A symbolic link at a O(files[].path) is dealt with as M(ansible.builtin.copy) does, or M(ansible.builtin.file) where a folder is wanted.
seealso:
  - module: openipu.pod.host_files_info
  - module: ansible.builtin.copy
  - module: ansible.builtin.template
  - module: ansible.builtin.file
"""

EXAMPLES = r"""
- name: Write a service and what it reads
  openipu.pod.host_files:
    files:
      - {path: /etc/exporter, state: directory, group: exporter, mode: "0750"}
      - {path: /etc/exporter/password, content: "{{ password }}", group: exporter, mode: "0640", secret: true}
      - {path: /etc/exporter/ca.crt, src: ca.crt}
      - {path: /etc/systemd/system/exporter.service, template: exporter.service.j2}
  become: true
  vars:
    password: "{{ lookup('ansible.builtin.env', 'EXPORTER_PASSWORD') }}"
"""

RETURN = r"""
files:
  description: What was done to files, as lists of paths under C(created), C(updated) and C(unchanged).
  type: dict
  returned: always
  sample: {created: [], updated: [/etc/exporter/password], unchanged: [/etc/exporter, /etc/exporter/ca.crt]}
"""
