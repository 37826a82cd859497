# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: undefined_variables
short_description: Undefined variables that variables of a host refer to
version_added: 0.1.0
author:
  - openipu.pod contributors (@openipu)
description:
  - Returns the undefined variables in the templates of variables, such as secrets of a vault that was not passed. All of them are returned, also
    those in variables that the templates refer to.
  - A template that does not need the variable, such as one with the filter P(ansible.builtin.default#filter), does not count.
options:
  _terms:
    description:
      - Names of variables. Variables that the host does not have are ignored.
      - A name with the key of a dictionary, such as V(bmc.address), examines the value of this key only. Missing keys are ignored. If the variable is one
        template, all of it is examined.
    required: true
    type: list
    elements: str
  hosts:
    description: Names of the hosts whose variables are examined. The default is the host of the task.
    type: list
    elements: str
  having:
    description: Name of a variable. Hosts that do not have it are not examined.
    type: str
"""

EXAMPLES = r"""
- name: Check that the vault has all secrets
  ansible.builtin.assert:
    that: undefined | length == 0
    fail_msg: "Undefined: {{ undefined | map(attribute='name') | join(', ') }}"
  vars:
    undefined: "{{ query('openipu.pod.undefined_variables', 'eos_connection', 'eos_config') }}"

# One process examines all hosts.
- name: Check that the vault has all secrets of all switches
  ansible.builtin.assert:
    that: undefined | length == 0
    fail_msg: "Undefined: {{ undefined | map(attribute='name') | join(', ') }}"
  vars:
    undefined: "{{ query('openipu.pod.undefined_variables', 'eos_connection', 'eos_config', hosts=ansible_play_hosts, having='eos_connection') }}"
  run_once: true
"""

RETURN = r"""
_raw:
  description:
    - One item for each undefined variable of a term, in the order of the hosts and the terms. Items that several hosts have are returned once.
    - C(name) is its name, and C(used_in) is the term that needs it. When only an attribute is undefined, C(name) is its expression.
  type: list
  elements: dict
"""

import typing as t

from ansible.plugins.lookup import LookupBase

from ansible_collections.openipu.pod.plugins.plugin_utils.host_variables import HostVariables, variables_of


class LookupModule(LookupBase):
    def run(self, terms: list[str], variables: t.Any = None, **kwargs: t.Any) -> list[dict[str, str]]:
        self.set_options(var_options=variables, direct=kwargs)
        hosts = self.get_option("hosts")
        if hosts is None:
            sources = [HostVariables(variables, self._templar)]
        else:
            sources = list(variables_of(hosts, variables["hostvars"], self._loader).values())
        having = self.get_option("having")
        if having is not None:
            sources = [each for each in sources if having in each]
        found = dict.fromkeys((name, term) for each in sources for term in terms for name in _undefined(each, term))
        return [{"name": name, "used_in": term} for name, term in found]


def _undefined(variables: HostVariables, term: str) -> list[str]:
    """Return the undefined variables that a term refers to."""
    variable, *key = term.split(".", 1)
    return [name for name, _use in variables.undefined(variable, key or None)]
