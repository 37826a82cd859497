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
      - A name with the key of a dictionary, such as V(bmc.address), examines the value of this key only. Missing keys are ignored.
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

import re
import typing as t
from dataclasses import dataclass

from ansible.errors import AnsibleUndefinedVariable
from ansible.plugins.lookup import LookupBase
from ansible.template import Templar
from jinja2 import Environment, TemplateError, meta

_EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
# Functions that Ansible adds to its templates.
_FUNCTIONS = ("lookup", "query", "q", "now", "undef")


class LookupModule(LookupBase):
    def run(self, terms: list[str], variables: t.Any = None, **kwargs: t.Any) -> list[dict[str, str]]:
        self.set_options(var_options=variables, direct=kwargs)
        hosts = self.get_option("hosts")
        if hosts is None:
            sources = [_Host(variables, self._templar)]
        else:
            values = map(variables["hostvars"].raw_get, hosts)
            sources = [_Host(each, Templar(loader=self._loader, variables=each)) for each in values]
        having = self.get_option("having")
        if having is not None:
            sources = [each for each in sources if having in each.variables]
        found = dict.fromkeys(item for source in sources for term in terms for item in source.undefined(term))
        return [{"name": name, "used_in": term} for name, term in found]


@dataclass(frozen=True)
class _Host:
    """Variables of one host, without their templates evaluated, and the templating engine with them."""

    variables: t.Mapping[str, t.Any]
    templar: t.Any

    def undefined(self, term: str) -> list[tuple[str, str]]:
        """Return the undefined variables of this variable, each with the variable itself."""
        variable, *keys = term.split(".", 1)
        value = self.variables.get(variable)
        if keys and isinstance(value, dict):
            value = value.get(keys[0])
        return [(name, term) for name in self._undefined(value, frozenset([variable]))]

    def _undefined(self, value: t.Any, path: frozenset[str]) -> t.Iterator[str]:
        """Yield the names of undefined variables in the texts of a value. ``path``: variables that lead to it."""
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, list):
            for item in value:
                yield from self._undefined(item, path)
        elif isinstance(value, str) and self._fails(value):
            names = []
            for name in _names(value).difference(path):
                known = name in self.variables
                names += self._undefined(self.variables[name], path | {name}) if known else [name]
            # Without a name, for example when an attribute is missing, expressions describe it. Other text may be secret.
            yield from sorted(names) or _EXPRESSION.findall(value) or ["a template"]

    def _fails(self, text: str) -> bool:
        """Return whether the text cannot be evaluated, because a variable is undefined."""
        try:
            self.templar.template(text)
        except AnsibleUndefinedVariable:
            return True
        return False


def _names(text: str) -> set[str]:
    """Return the names of the variables in a template, none if its syntax is invalid."""
    environment = Environment(extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"])  # noqa: S701  renders nothing
    environment.globals.update(dict.fromkeys(_FUNCTIONS))
    try:
        return meta.find_undeclared_variables(environment.parse(text))
    except TemplateError:
        return set()
