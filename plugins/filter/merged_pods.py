# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: merged_pods
short_description: Objects of the V-IPU controllers of several PODs in one view
version_added: 0.1.0
author:
  - openipu.pod contributors (@openipu)
description:
  - Merges the results of M(openipu.pod.vipu_info) of several PODs. Every object has its POD, so equal names in two PODs do not collide.
  - A POD whose controller could not be read does not hide the others. It is in C(failures), with the reason.
options:
  _input:
    description: Results of M(openipu.pod.vipu_info) by name of the POD. Results of failed tasks are valid.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Read the controllers of all PODs
  hosts: controllers
  connection: local
  gather_facts: false
  module_defaults:
    group/openipu.pod.vipu: "{{ vipu_connection }}"
  tasks:
    - name: Read the controller
      openipu.pod.vipu_info:
      register: controller
      ignore_errors: true

    - name: Show the partitions in error, and the controllers that do not respond
      ansible.builtin.debug:
        msg:
          errors: "{{ all_pods.partitions | selectattr('state', 'eq', 'ERROR') | list }}"
          failures: "{{ all_pods.failures }}"
      vars:
        names: "{{ ansible_play_hosts_all | map('extract', hostvars, 'pod_name') }}"
        results: "{{ ansible_play_hosts_all | map('extract', hostvars, 'controller') }}"
        all_pods: "{{ dict(names | zip(results)) | openipu.pod.merged_pods }}"
      run_once: true
"""

RETURN = r"""
_value:
  description:
    - C(agents), C(clusters), C(allocations), C(partitions) and C(users), as M(openipu.pod.vipu_info) returns them, each object also with C(pod).
      Lists that the task did not select are empty.
    - C(versions), C(ipu_attributes) and C(fits), by POD.
    - C(failures), the messages of failed results by POD.
  type: dict
  sample:
    agents: [{pod: north, id: ag01, state: Up}]
    versions: {north: 0.1.0}
    failures: {south: "Cannot get the version: the V-IPU controller at 10.2.3.101:8090 does not respond (connection refused)."}
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.openipu.pod.plugins.module_utils.vipu.merged_pods import merge


def merged_pods(results: t.Any) -> dict[str, t.Any]:
    """Return the objects of all PODs. Raises AnsibleFilterError for other input than results of vipu_info by POD."""
    if not isinstance(results, t.Mapping):
        raise AnsibleFilterError(
            "merged_pods: the input is not a mapping from names of PODs to results of vipu_info. Correct it."
        )
    try:
        return merge(results)
    except ValueError as error:
        raise AnsibleFilterError(f"merged_pods: {error}. Use the result of vipu_info.") from None


class FilterModule:
    """Filters of this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"merged_pods": merged_pods}
