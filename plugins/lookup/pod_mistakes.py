# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: pod_mistakes
short_description: Mistakes in the files of PODs
version_added: 0.1.0
author:
  - openipu.pod contributors (@openipu)
description:
  - Returns the mistakes in C(pod.yml) and C(machines.csv) of PODs. By default, Ansible only warns about a rejected inventory, and a task that
    needs its hosts fails later. This task can repeat the mistakes in its message.
options:
  _terms:
    description:
      - Paths of C(pod.yml), or of folders with such a file, such as the sources of the inventory. Other files are ignored.
    required: true
    type: list
    elements: str
requirements:
  - PyYAML
  - netaddr
"""

EXAMPLES = r"""
- name: Report why the inventory has no hosts
  ansible.builtin.fail:
    msg: "{{ query('openipu.pod.pod_mistakes', *ansible_inventory_sources) | join('\n') }}"
  when: groups['machines'] | default([]) | length == 0
"""

RETURN = r"""
_raw:
  description: One text for each invalid file, with all of its mistakes. Each has its file, line and remedy.
  type: list
  elements: str
"""

import typing as t
from pathlib import Path

from ansible.plugins.lookup import LookupBase

from ansible_collections.openipu.pod.plugins.module_utils.pod.inventory_names import is_pod_file
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError, load


class LookupModule(LookupBase):
    def run(self, terms: list[str], variables: t.Any = None, **kwargs: t.Any) -> list[str]:
        self.set_options(var_options=variables, direct=kwargs)
        mistakes = []
        for path in map(Path, terms):
            for file in sorted(path.iterdir()) if path.is_dir() else [path]:
                if is_pod_file(file.name) and file.is_file():
                    try:
                        load(str(file))
                    except PodError as error:
                        mistakes.append("%s (%s)" % (error, error.error_code))
        return mistakes
