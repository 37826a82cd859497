# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of hosts for lookup plugins: values, and undefined variables that they refer to."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from ansible.errors import AnsibleError, AnsibleUndefinedVariable
from ansible.template import Templar
from jinja2 import Environment, TemplateError, meta

_EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
# Functions that Ansible adds to its templates.
_FUNCTIONS = ("lookup", "query", "q", "now", "undef")


@dataclass(frozen=True)
class HostVariables:
    """Variables of one host, without their templates evaluated, and the templating engine with them."""

    variables: t.Mapping[str, t.Any]
    templar: t.Any

    def __contains__(self, name: object) -> bool:
        return name in self.variables

    def value(self, name: str, keys: t.Sequence[str] | None = None) -> t.Any:
        """Return the value of a variable, None if it is not set or its template omits it.

        ``keys``: evaluate only these of a dictionary. A dictionary that is the result of a template has all keys.
        Raises AnsibleUndefinedVariable.
        """
        value = self.variables.get(name)
        if keys is not None and isinstance(value, dict):
            value = {key: value[key] for key in keys if key in value}
        values = self.templar.template([value])  # a list, because the template may omit its value
        if "omit" in self.variables:
            values = _without(self.variables["omit"], values)
        return values[0] if values else None

    def undefined(self, name: str, keys: t.Sequence[str] | None = None) -> list[tuple[str, str]]:
        """Return the undefined variables that a variable refers to, each with its use, ``name`` or ``name.key``.

        ``keys``: examine only these of a dictionary. A template is examined as a whole, because all of it is evaluated.
        """
        value = self.variables.get(name)
        uses = {name: value}
        if keys is not None and isinstance(value, dict):
            uses = {f"{name}.{key}": value[key] for key in keys if key in value}
        return [(found, use) for use, part in uses.items() for found in self._undefined(part, frozenset([name]))]

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
            # Without a name, for example when an attribute is missing, expressions describe it. Other text may be
            # secret.
            yield from sorted(names) or _EXPRESSION.findall(value) or ["a template"]

    def _fails(self, text: str) -> bool:
        """Return whether the text cannot be evaluated, because a variable is undefined."""
        try:
            self.templar.template([text])  # a list, because the template may omit its value
        except AnsibleUndefinedVariable:
            return True
        return False


def variables_of(hosts: t.Iterable[str], hostvars: t.Any, loader: t.Any) -> dict[str, HostVariables]:
    """Return the variables of hosts by name. ``hostvars``: the variable of this name. Raises AnsibleError."""
    found = {}
    for host in hosts:
        if host not in hostvars:
            raise AnsibleError(
                f"Cannot read the variables of host '{host}': it is not in the inventory. Correct hosts."
            )
        variables = hostvars.raw_get(host)
        found[host] = HostVariables(variables, Templar(loader=loader, variables=variables))
    return found


def _without(omitted: t.Any, value: t.Any) -> t.Any:
    """Return a value without omitted ones. With ansible-core 2.18, these are a text. Later releases remove them."""
    if isinstance(value, dict):
        return {key: _without(omitted, each) for key, each in value.items() if each != omitted}
    if isinstance(value, list):
        return [_without(omitted, each) for each in value if each != omitted]
    return value


def _names(text: str) -> set[str]:
    """Return the names of the variables in a template, none if its syntax is invalid."""
    environment = Environment(extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"])  # noqa: S701  renders nothing
    environment.globals.update(dict.fromkeys(_FUNCTIONS))
    try:
        return meta.find_undeclared_variables(environment.parse(text))
    except TemplateError:
        return set()
