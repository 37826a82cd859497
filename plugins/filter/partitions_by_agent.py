# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: partitions_by_agent
short_description: Partitions on each IPU-Machine
version_added: 0.1.0
author:
  - openipu.pod contributors (@openipu)
description:
  - Returns the partitions that use IPUs of an IPU-Machine, for instance before the machine is switched off.
  - A partition without C(ipus) is on all IPU-Machines of its allocation.
options:
  _input:
    description:
      - Result of M(openipu.pod.vipu_info) with C(agents), C(clusters) and C(allocations).
      - C(partitions) are those of M(openipu.pod.vipu_partition_info), because only these have C(ipus).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Read the objects of the controller
  openipu.pod.vipu_info:
    api_host: 10.3.1.101
    gather_subset: [agents, clusters, allocations]
  register: controller

- name: Read the partitions
  openipu.pod.vipu_partition_info:
    api_host: 10.3.1.101
  register: details

- name: Show the partitions on an IPU-Machine
  ansible.builtin.debug:
    msg: "{{ (controller | combine({'partitions': details.partitions}) | openipu.pod.partitions_by_agent).ag03 }}"
"""

RETURN = r"""
_value:
  description: IDs of the partitions, by agent. An agent without partitions has an empty list.
  type: dict
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.openipu.pod.plugins.module_utils import used_machines


def partitions_by_agent(controller: t.Any) -> dict[str, list[str]]:
    if not isinstance(controller, t.Mapping) or not {"agents", "clusters", "allocations", "partitions"} <= set(
        controller
    ):
        raise AnsibleFilterError(
            "partitions_by_agent: the input is not valid. Pass the result of vipu_info with agents, clusters and "
            "allocations, and the partitions of vipu_partition_info."
        )
    return used_machines.partitions_by_agent(controller)


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"partitions_by_agent": partitions_by_agent}
