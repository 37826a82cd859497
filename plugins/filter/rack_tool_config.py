# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: rack_tool_config
short_description: Configuration of rack_tool for selected IPU-Machines
version_added: 0.1.0
author:
  - openipu.pod contributors (@openipu)
description:
  - Reduces a configuration of Graphcore's C(rack_tool) to the entries of selected IPU-Machines, so that a command affects only these.
  - An entry belongs to a machine when one of its values is the name or an address of the machine. Other settings are not changed.
positional: _input, machines
options:
  _input:
    description: Configuration as a dictionary.
    type: dict
    required: true
  machines:
    description: Addresses of the selected machines, by name.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the configuration for one machine
  ansible.builtin.debug:
    msg: "{{ config | openipu.pod.rack_tool_config({'ipum03': ['10.1.1.3', '10.1.2.3']}) }}"
  vars:
    config:
      machines:
        - {name: ipum03, bmc: 10.1.1.3, gw: 10.1.2.3}
        - {name: ipum04, bmc: 10.1.1.4, gw: 10.1.2.4}
"""

RETURN = r"""
_value:
  description: Reduced configuration.
  type: dict
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.openipu.pod.plugins.module_utils import rolling_upgrade


def rack_tool_config(config: t.Any, machines: dict[str, list[str]]) -> dict[str, t.Any]:
    try:
        return rolling_upgrade.filter_machines(config, machines)
    except ValueError as error:
        raise AnsibleFilterError("The configuration of rack_tool %s. Correct its file." % error) from error


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"rack_tool_config": rack_tool_config}
