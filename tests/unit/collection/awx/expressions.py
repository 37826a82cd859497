# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables in Jinja templates, without rendering them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ansible_collections.openipu.pod.plugins.module_utils.openstack.bare_metal import device_nodes
from jinja2 import Environment, meta, nodes

_ENVIRONMENT = Environment(extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"])


class _AnyName(dict[str, Any]):
    """Mapping with every name, because the search for variables requires filters and tests to exist."""

    def get(self, _name: str, _default: Any = None) -> Any:
        return bool


_ENVIRONMENT.filters, _ENVIRONMENT.tests = _AnyName(), _AnyName()
_DEFAULTS = {"default", "d"}
_LOOKUPS = {"lookup", "query", "q"}
_VARIABLES_OF_NODES = {device_nodes.BMC, device_nodes.MACHINE_BMC, device_nodes.SERVER_BMC, device_nodes.SERVER_STATE}
_FUNCTIONS = _LOOKUPS | {"range", "namespace", "undef", "now", "dict", "lipsum", "cycler", "joiner"}


@dataclass
class Names:
    """Variables of templates: all, those that must be defined, those whose definition is tested, and allowed values.

    A variable with a default in one place of a template is not required in another place of it.
    """

    used: set[str] = field(default_factory=set)
    required: set[str] = field(default_factory=set)
    tested: set[str] = field(default_factory=set)
    allowed: dict[str, set[Any]] = field(default_factory=dict)
    environment: set[str] = field(default_factory=set)
    truths: set[str] = field(default_factory=set)  # used as a condition without the filter bool

    def add(self, other: Names) -> None:
        self.used |= other.used
        self.required |= other.required
        self.tested |= other.tested
        self.allowed.update(other.allowed)
        self.environment |= other.environment
        self.truths |= other.truths


@cache
def names(template: str) -> Names:
    """Return the variables of a template."""
    tree = _ENVIRONMENT.parse(template)
    # The search replaces constant expressions in its tree.
    free = meta.find_undeclared_variables(_ENVIRONMENT.parse(template)) - _FUNCTIONS
    tested = {
        test.node.name
        for test in tree.find_all(nodes.Test)
        if test.name in ("defined", "undefined") and isinstance(test.node, nodes.Name)
    }
    tested |= {
        each.node.name
        for each in tree.find_all(nodes.Filter)
        if each.name in _DEFAULTS and isinstance(each.node, nodes.Name)
    }
    found = Names(used=set(free), tested=tested & free)
    found.required = {name for name in _unguarded(tree) if name in free} - tested
    found.used.update(_variables_of_hosts(tree))
    for plugin, name, optional in _lookups(tree):
        if plugin == "env":
            found.environment.add(name)
        elif plugin == "vars":
            found.used.add(name)
            found.required.update(() if optional else (name,))
        elif plugin == "openipu.pod.undefined_variables":
            found.used.add(name)
        elif plugin == "openipu.pod.bare_metal":
            found.used.update(_VARIABLES_OF_NODES)
    found.allowed = dict(_memberships(tree))
    found.truths = set(_truths(tree))
    return found


def _variables_of_hosts(tree: nodes.Template) -> Iterator[str]:
    """Yield ``name`` of ``hostvars[host].name``."""
    for each in tree.find_all(nodes.Getattr):
        host = each.node
        if isinstance(host, nodes.Getitem) and isinstance(host.node, nodes.Name) and host.node.name == "hostvars":
            yield each.attr


def expression_names(expression: Any) -> Names:
    """Return the variables of a condition, which Ansible evaluates without braces."""
    return names(f"{{{{ 1 if ({expression}) else 0 }}}}") if isinstance(expression, str) else Names()


def value_names(value: Any) -> Names:
    """Return the variables of all templates in a value."""
    found = Names()
    for text in _strings(value):
        if "{{" in text or "{%" in text:
            found.add(names(text))
    return found


def only_variable(value: Any) -> str | None:
    """Return the variable of a template that passes one variable on, such as ``{{ size | default(omit) }}``."""
    if not isinstance(value, str) or "{{" not in value:
        return None
    (output, *rest) = _ENVIRONMENT.parse(value.strip()).body
    if rest or not isinstance(output, nodes.Output) or len(output.nodes) != 1:
        return None
    node = output.nodes[0]
    while isinstance(node, nodes.Filter) and node.name in (*_DEFAULTS, "int", "bool", "float", "string", "trim"):
        node = node.node
    return node.name if isinstance(node, nodes.Name) else None


def asserted(expression: str) -> set[str]:
    """Return the variables that an assertion requires: ``x is defined``, alone or joined with ``and``."""
    (output,) = _ENVIRONMENT.parse(f"{{{{ ({expression}) }}}}").body
    assert isinstance(output, nodes.Output)
    return set(_asserted(output.nodes[0]))


def _asserted(node: nodes.Node) -> Iterator[str]:
    if isinstance(node, nodes.And):
        yield from _asserted(node.left)
        yield from _asserted(node.right)
    elif isinstance(node, nodes.Test) and node.name == "defined" and isinstance(node.node, nodes.Name):
        yield node.node.name


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _strings(key)
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)


def _unguarded(node: nodes.Node) -> Iterator[str]:
    """Yield variables outside of ``default`` filters."""
    if isinstance(node, nodes.Name) and node.ctx == "load":
        yield node.name
    elif isinstance(node, nodes.Filter) and node.name in _DEFAULTS and isinstance(node.node, nodes.Name):
        return  # the default may be any expression, and is evaluated only without the variable
    else:
        for child in node.iter_child_nodes():
            yield from _unguarded(child)


def _lookups(tree: nodes.Node) -> Iterator[tuple[str, str, bool]]:
    """Yield the plugin and the terms of lookups with constant terms, and whether they have a default."""
    for call in tree.find_all(nodes.Call):
        if isinstance(call.node, nodes.Name) and call.node.name in _LOOKUPS and len(call.args) > 1:
            plugin, *terms = (each.value if isinstance(each, nodes.Const) else None for each in call.args)
            optional = any(argument.key == "default" for argument in call.kwargs)
            name = str(plugin).removeprefix("ansible.builtin.")
            yield from ((name, term, optional) for term in terms if isinstance(term, str))


def _truths(tree: nodes.Node) -> Iterator[str]:
    """Yield variables whose value is a condition, or an operand of one. The text "false" is true there."""
    for node in tree.find_all((nodes.CondExpr, nodes.If, nodes.And, nodes.Or, nodes.Not)):
        has_test = isinstance(node, nodes.CondExpr | nodes.If)
        for operand in [node.test] if has_test else node.iter_child_nodes():
            while isinstance(operand, nodes.Filter) and operand.name in _DEFAULTS and operand.node is not None:
                operand = operand.node
            if isinstance(operand, nodes.Name):
                yield operand.name


def _memberships(tree: nodes.Node) -> Iterator[tuple[str, set[Any]]]:
    """Yield variables that are compared with constants, ``x in ['a', 'b']``, and these constants."""
    for comparison in tree.find_all(nodes.Compare):
        node: nodes.Node = comparison.expr
        while isinstance(node, nodes.Filter):
            if node.node is None:
                break
            node = node.node
        (operand, *rest) = comparison.ops
        constants = operand.expr.items if isinstance(operand.expr, nodes.List | nodes.Tuple) else []
        values = {each.value for each in constants if isinstance(each, nodes.Const)}
        if isinstance(node, nodes.Name) and operand.op == "in" and not rest and values:
            yield node.name, values
