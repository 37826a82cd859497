# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: grafana_dashboard
short_description: Grafana dashboard from a short definition
version_added: 0.1.0
author:
  - openipu.pod contributors (@openipu)
description:
  - Generates the model of a Grafana dashboard from rows and panels, and lays out the panels.
  - The role P(openipu.pod.monitoring#role) contains the dashboards of a POD.
options:
  _input:
    description:
      - Dashboard definition with C(uid), C(title), C(variables) (names with queries) and C(rows), each with C(title) and C(panels).
      - A panel has C(title) and C(queries) (legends with expressions). Optional keys are C(kind) (C(timeseries), C(stat), C(bargauge), C(table),
        C(state-timeline)), C(unit), C(width) (in 24ths of a row), C(height), C(steps) (thresholds for orange and red), C(lowest) (in place
        of C(steps), the lowest good value; smaller ones are red), C(names) (texts for values), C(max), C(stack) and C(about) (the description).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Write a dashboard
  ansible.builtin.copy:
    content: "{{ definition | openipu.pod.grafana_dashboard | to_nice_json }}"
    dest: /etc/grafana/dashboards/storage.json
    mode: "0644"
  vars:
    definition:
      uid: storage
      title: Storage
      rows:
        - title: Servers
          panels:
            - title: Free
              unit: percentunit
              queries: {"{% raw %}{{host}}{% endraw %}": "node:filesystem_free:ratio"}
"""

RETURN = r"""
_value:
  description: Dashboard model, to be written as JSON.
  type: dict
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.openipu.pod.plugins.plugin_utils.grafana import DefinitionError, dashboard


def grafana_dashboard(definition: t.Any) -> dict[str, t.Any]:
    if not isinstance(definition, t.Mapping):
        raise AnsibleFilterError("grafana_dashboard: the input is not a dictionary. Pass one with uid, title and rows.")
    try:
        return dashboard(definition)
    except DefinitionError as error:
        raise AnsibleFilterError("grafana_dashboard: %s" % error) from error


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"grafana_dashboard": grafana_dashboard}
