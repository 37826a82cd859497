# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: grafana_dashboard
short_description: A Grafana dashboard from a few lines
version_added: 0.1.0
author:
  - openipu.pod contributors (@openipu)
description:
  - Makes the model of a Grafana dashboard of what is to be seen on it, with rows and panels laid out.
  - The role P(openipu.pod.monitoring#role) has those of a POD.
options:
  _input:
    description:
      - The dashboard, with C(uid), C(title), C(variables) (names with queries) and C(rows), each with C(title) and C(panels).
      - A panel has C(title) and C(queries) (legends with expressions), and may have C(kind) (C(timeseries), C(stat), C(bargauge), C(table),
        C(state-timeline)), C(unit), C(width) (of 24), C(height), C(steps) (values from which on it is orange and red), C(names) (texts for values),
        C(max), C(stack) and C(about).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Write a dashboard
  ansible.builtin.copy:
    content: "{{ declared | openipu.pod.grafana_dashboard | to_nice_json }}"
    dest: /etc/grafana/dashboards/storage.json
    mode: "0644"
  vars:
    declared:
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
  description: The model, to be written as JSON.
  type: dict
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.openipu.pod.plugins.plugin_utils.grafana import DeclarationError, dashboard


def grafana_dashboard(declared: t.Any) -> dict[str, t.Any]:
    if not isinstance(declared, t.Mapping):
        raise AnsibleFilterError("grafana_dashboard takes a dictionary with uid, title and rows.")
    try:
        return dashboard(declared)
    except DeclarationError as error:
        raise AnsibleFilterError("grafana_dashboard: %s" % error) from error


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"grafana_dashboard": grafana_dashboard}
