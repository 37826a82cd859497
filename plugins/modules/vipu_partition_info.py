#!/usr/bin/python
# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell about partitions of a V-IPU controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vipu_partition_info
short_description: Tell about partitions of a V-IPU controller
version_added: 0.1.0
author: openipu.pod contributors (@openipu)
description:
  - Gives partitions with their state, what the controller is doing to them, and why they are in ERROR.
  - Needs nothing but the public user API, so a tenant can use it, and it works with every controller.
extends_documentation_fragment:
  - openipu.pod.vipu
  - openipu.pod.attributes.info
  - openipu.pod.attributes.vipu
options:
  id:
    description: The name of one partition; all of them when not given.
    type: str
  ipuof:
    description: Whether to add the IPUoF configuration of partitions that are ACTIVE.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: How is it?
  openipu.pod.vipu_partition_info:
    api_host: 10.3.1.101
    id: vision
"""

RETURN = r"""
partitions:
  description: The partitions; none when there is none of that name.
  type: list
  elements: dict
  returned: success
  sample:
    - id: vision
      allocation: team-a
      size: 16
      routing: dnc
      state: ACTIVE
      operation: IDLE
      errors: []
      max_retries: 3
      retries: 0
      last_auto_reset: null
"""

from ansible_collections.openipu.pod.plugins.module_utils.vipu.infos import VIPU_PARTITION_INFO
from ansible_collections.openipu.pod.plugins.module_utils.vipu.runner import run_module


def main() -> None:
    run_module(VIPU_PARTITION_INFO)


if __name__ == "__main__":
    main()
