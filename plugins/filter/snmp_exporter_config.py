# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: snmp_exporter_config
short_description: Configuration of the Prometheus SNMP exporter for a POD
version_added: 0.1.0
author:
  - openipu.pod contributors (@openipu)
description:
  - Generates the configuration of the Prometheus SNMP exporter for the PDUs and switches of a POD. It has modules named C(pdu) and C(switch),
    and credentials of the same names.
options:
  _input:
    description:
      - Credentials for V(pdu) and V(switch), with the names of the connection options of M(openipu.pod.pdu). Omitted kinds have no module.
    type: dict
    required: true
  split:
    description: Whether to separate credentials from modules. Required from release 0.23 of the exporter on.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Write the configuration of the SNMP exporter
  ansible.builtin.copy:
    content: "{{ connections | openipu.pod.snmp_exporter_config(split=false) | to_nice_yaml }}"
    dest: /etc/prometheus/snmp.yml
    owner: root
    group: prometheus
    mode: "0640"
  diff: false
  vars:
    connections:
      pdu: {username: openipu, auth_key: "{{ vault_pdu_auth_key }}", priv_key: "{{ vault_pdu_priv_key }}"}
      switch: {version: v2c, community: "{{ vault_switch_community }}"}
"""

RETURN = r"""
_value:
  description: Configuration, to be written as YAML.
  type: dict
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.openipu.pod.plugins.plugin_utils.snmp_exporter import configuration


def snmp_exporter_config(connections: t.Any, split: bool = True) -> dict[str, t.Any]:
    if not isinstance(connections, t.Mapping):
        raise AnsibleFilterError("snmp_exporter_config: the input is not a dictionary. Pass one with pdu and switch.")
    try:
        return configuration(connections, split)
    except ValueError as error:
        raise AnsibleFilterError("snmp_exporter_config: %s" % error) from error


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"snmp_exporter_config": snmp_exporter_config}
