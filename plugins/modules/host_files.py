#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write files and folders of a host, with one request to compare them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_files
short_description: Write files and folders of a host, with one request to compare them
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Manages many files in one task. M(ansible.builtin.copy), M(ansible.builtin.template) and M(ansible.builtin.file) manage one file per task.
  - One request reads the attributes of all files. If no file differs, as in most runs of a playbook, no other request follows. The builtin
    modules need two requests for each file.
  - Files that differ are written by M(ansible.builtin.copy) and M(ansible.builtin.file), in the order of the list. The task fails at the first
    file that cannot be written. Files before it stay changed. Ansible notifies no handler of a failed task.
  - The module therefore marks files before it writes them, and removes the marks when all files are written. The next task that lists a marked
    file reports a change, even if the file needs none. So it notifies the handlers, even if the connection or the run was interrupted inside the task.
extends_documentation_fragment:
  - openipu.pod.attributes.host
options:
  files:
    description: Files and folders, in the order of writing.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Absolute path. The parent folder must exist, or precede the file in the list.
        type: str
        required: true
      state:
        description: V(file) for a file, V(directory) for a folder.
        type: str
        choices: [file, directory]
        default: file
      template:
        description: Template on the control node, rendered to the file. A file needs exactly one of O(files[].template),
          O(files[].content) and O(files[].src). Relative paths are searched in C(templates) of the role.
        type: str
      template_vars:
        description: Additional variables of O(files[].template), for example when several files use the same template.
        type: dict
        default: {}
      content:
        description: Content of the file. Lists and dictionaries are written as JSON, as by M(ansible.builtin.copy).
        type: raw
      src:
        description: File on the control node to copy. Relative paths are searched in C(files) of the role.
        type: str
      owner:
        description: Owner. Omit to use O(owner).
        type: str
      group:
        description: Group. Omit to use O(group).
        type: str
      mode:
        description:
          - Permissions, as octal digits in quotes. Omit to use O(mode) or O(directory_mode).
          - A symbolic mode is possible, but each such file needs a request of its own in every run.
        type: raw
      validate:
        description: Command that validates the new file before it replaces the old one. C(%s) is the path of the new file.
        type: str
      secret:
        description: Whether to omit the file from the diff.
        type: bool
        default: false
  owner:
    description: Owner of files and folders.
    type: str
    default: root
  group:
    description: Group of files and folders.
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
  keep_marks:
    description:
      - Whether the marks of changed files remain after the task. Then each later task that lists such a file reports a change, until a task with
        O(unmark) removes the mark. So a run that ends before the restart of a service does not lose the restart.
    type: bool
    default: false
  mark:
    description:
      - Paths of files to mark, as if they had changed and O(keep_marks) were set. This is no change. Use it before another task changes what the same
        service reads, such as a link.
    type: list
    elements: str
    default: []
  unmark:
    description: Paths whose marks to remove, after the service that reads the files has restarted. This is no change.
    type: list
    elements: str
    default: []
  variable_start_string:
    description: Start of an expression in templates.
    type: str
    default: "{{"
  variable_end_string:
    description: End of an expression in templates.
    type: str
    default: "}}"
attributes:
  platform:
    platforms: posix
notes:
  - Marks are empty files in C(~/.local/state/openipu/host_files) of the user who writes the files.
  - A later task of the play may fail before the handlers run. Set C(force_handlers) in the play to run notified handlers in that case.
  - Without O(keep_marks), the task removes its marks before Ansible runs the handlers. If Ansible is killed or the host becomes unreachable in
    between, the notification is lost, as with all modules, also with C(force_handlers). The next run reports no change.
  - A symbolic link at O(files[].path) is handled as by M(ansible.builtin.copy), or by M(ansible.builtin.file) for a folder.
seealso:
  - module: openipu.pod.host_files_info
  - module: ansible.builtin.copy
  - module: ansible.builtin.template
  - module: ansible.builtin.file
"""

EXAMPLES = r"""
- name: Write a service and its configuration
  openipu.pod.host_files:
    files:
      - {path: /etc/exporter, state: directory, group: exporter, mode: "0750"}
      - {path: /etc/exporter/password, content: "{{ password }}", group: exporter, mode: "0640", secret: true}
      - {path: /etc/exporter/ca.crt, src: ca.crt}
      - {path: /etc/systemd/system/exporter.service, template: exporter.service.j2}
  become: true
  vars:
    password: "{{ lookup('ansible.builtin.env', 'EXPORTER_PASSWORD') }}"

- name: Write settings whose restart must not be lost
  openipu.pod.host_files:
    files:
      - {path: /etc/exporter/settings, content: "interval=5\n"}
    keep_marks: true
  become: true
  register: exporter_settings

- name: Restart the service
  ansible.builtin.systemd_service:
    name: exporter
    state: restarted
  become: true
  when: exporter_settings is changed

- name: Complete the change
  openipu.pod.host_files:
    unmark: [/etc/exporter/settings]
  become: true
  when: exporter_settings is changed
"""

RETURN = r"""
files:
  description: Result of each file, as lists of paths C(created), C(updated) and C(unchanged). A file that a failed task wrote is C(updated).
  type: dict
  returned: always
  sample: {created: [], updated: [/etc/exporter/password], unchanged: [/etc/exporter, /etc/exporter/ca.crt]}
"""
