# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of variables beside a pod.yml that Ansible, or the roles and modules of the collection, would reject.

Templates in quotes are left to Ansible, and so are values in a vault.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from openipu.shared.pod.mapping_schema import is_template
from openipu.shared.pod.mistakes import Mistakes, PodError, unknown
from openipu.shared.pod.source import Block, Items, read_yaml

Option = Mapping[str, Any]
_ROLES = "ansible_collections/openipu/pod/roles"
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TEMPLATE = re.compile(r"\{[{%#]")
_MAX_SHOWN = 40  # characters of a value in a message
# Settings of the playbooks that are true or false, or numbers.
_SWITCHES = (
    *("cabling_strict", "pdu_display", "pdu_redundant"),
    *("pod_check_agents", "pod_check_reach", "pod_report_controller"),
)
_NUMBERS = ("pdu_breaker_share", "pod_cluster_test_timeout", "vipu_wait_timeout")
_EXPECTED = {
    "bool": "true or false",
    "dict": "a mapping",
    "float": "a number",
    "int": "a whole number",
    "list": "a list",
    "path": "a path",
    "str": "a single value",
}


@dataclass(frozen=True)
class _Value:
    """Value of a variable, or of a key in it, with its place."""

    name: str
    value: Any
    error: Callable[..., PodError]  # of its message and, in a list, of its line

    def inner(self, block: Block, key: str) -> _Value:
        """Return the value of a key in this mapping."""
        return _Value(f"{self.name}.{key}", block[key], functools.partial(block.error, key=key))

    def items(self) -> Iterator[_Value]:
        """Yield the items of this list."""
        for item, line in zip(self.value, self.value.lines, strict=True):
            yield _Value(self.name, item, functools.partial(self.error, line=line))


def invalid(files: Iterable[Path]) -> Iterator[PodError]:
    """Yield a mistake for each value with another type than its declaration, or with none of its choices.

    Files that are not YAML are left out.
    """
    declared = _role_options()
    for value in _values(files):
        of_role = value.name in declared
        option = declared[value.name] if of_role else settings().get(value.name)
        if option:
            yield from _check(value, option, of_role, required=of_role)


def without_quotes(files: Iterable[Path]) -> Iterator[PodError]:
    """Yield a mistake for each template without quotes, or without its end. Files that are not YAML are left out."""
    for value in _values(files):
        yield from _incomplete_templates(value)


def _values(files: Iterable[Path]) -> Iterator[_Value]:
    """Yield the variables in files whose values YAML can convert."""
    for path in files:
        try:
            block = read_yaml(str(path), Mistakes())
        except PodError:
            continue
        for name in (each for each in block if each not in block.unusable):
            yield _Value(name, block[name], functools.partial(block.error, key=name))


@functools.cache
def settings() -> Mapping[str, Option]:
    """Return the options of settings of the playbooks. Modules read them, and convert values as Ansible does."""
    # These modules import libraries such as pysnmp.
    from openipu.shared.eos import options as eos
    from openipu.shared.pdu import options as pdu
    from openipu.shared.vipu import options as vipu

    connection = {"type": "dict", "options": vipu.CONNECTION_OPTIONS}
    return {
        **{key: {"type": "bool"} for key in _SWITCHES},
        **{key: {"type": "float"} for key in _NUMBERS},
        "eos_config": {"type": "dict", "options": eos.CONFIG_OPTIONS},
        "eos_connection": {"type": "dict", "options": eos.CONNECTION_OPTIONS},
        "pdu_config": {"type": "dict", "options": pdu.CONFIG_OPTIONS},
        "pdu_connection": {"type": "dict", "options": pdu.CONNECTION_OPTIONS},
        "pdu_device_power": {"type": "dict"},
        "pod_cluster_test": {"type": "str", "choices": ["once", "always", "never"]},
        "pod_cluster_tests": {"type": "list", "elements": "str"},
        "vipu_allocations": {"type": "list", "elements": "str"},
        "vipu_connection": connection,
        "vipu_partition_connection": connection,
    }


def role_variables() -> Collection[str]:
    """Return the names of the variables of all roles; none if the collection is not found."""
    return _role_options().keys()


@functools.cache
def _role_options() -> Mapping[str, Option]:
    """Return the options of all roles by variable. Entry points and roles with the same variable declare it alike.

    The result is empty if Ansible cannot read its configuration, or does not find the collection.
    """
    from ansible.errors import AnsibleOptionsError

    try:
        from ansible import constants  # it reads ansible.cfg
    except AnsibleOptionsError:
        return {}  # ansible-playbook reports the mistake in ansible.cfg or in a variable
    places = (Path(place, _ROLES) for place in (*constants.COLLECTIONS_PATHS, *sys.path))
    roles = next((place for place in places if place.is_dir()), None)
    found: dict[str, Option] = {}
    for path in sorted(roles.glob("*/meta/argument_specs.yml")) if roles else ():
        content = yaml.load(path.read_text(encoding="utf-8"), _LOADER)  # noqa: S506  a safe loader
        for entry in content["argument_specs"].values():
            found.update(entry.get("options") or {})
    return found


def _incomplete_templates(value: _Value) -> Iterator[PodError]:
    """Yield a mistake for each template in a value that is a mapping in YAML, or a text without the end of it."""
    given = value.value
    if is_template(given):
        yield value.error(f"variable '{value.name}': the template has no quotes: write \"{{{{ … }}}}\"")
    elif isinstance(given, str) and given.count("{{") > given.count("}}"):
        yield value.error(f"variable '{value.name}': the template is not closed: add '}}}}'")
    elif isinstance(given, Block):
        for key in given:
            yield from _incomplete_templates(value.inner(given, key))
    elif isinstance(given, Items):
        for item in value.items():
            yield from _incomplete_templates(item)


def _check(value: _Value, option: Option, of_role: bool, required: bool = True) -> Iterator[PodError]:
    """Yield the mistakes of a value. Roles do not convert values, so a list must be one.

    ``required`` is whether its mapping must have the required keys.
    """
    kind = option.get("type", "str")
    given = value.value
    if given is None or kind == "raw" or is_template(given) or (isinstance(given, str) and _TEMPLATE.search(given)):
        return
    if isinstance(given, Block) and kind == "dict":
        yield from _check_keys(value, option.get("options"), of_role, required)
    elif isinstance(given, Items) and kind == "list":
        element = {key: option[key] for key in ("choices", "no_log", "options") if key in option}
        element["type"] = option.get("elements", "raw")
        for item in value.items():
            yield from _check(item, element, of_role)
    elif isinstance(given, (Block, Items)) or (kind in ("dict", "list") and (of_role or not isinstance(given, str))):
        yield value.error(f"variable '{value.name}' must be {_EXPECTED.get(kind, kind)}, not {_shown(given, option)}")
    elif _rejected(given, kind, option):
        choices = option.get("choices")
        expected = "one of " + ", ".join(map(str, choices)) if choices else _EXPECTED.get(kind, kind)
        yield value.error(f"variable '{value.name}' must be {expected}, not {_shown(given, option)}")


def _check_keys(
    value: _Value, options: Mapping[str, Option] | None, of_role: bool, required: bool
) -> Iterator[PodError]:
    """Yield the mistakes of a mapping. Without ``options``, it may have any keys."""
    block: Block = value.value
    if options is None:
        return
    for key in block:
        if key not in options:
            yield block.error(f"variable '{value.name}': {unknown('key', key, options)}", key)
        elif key not in block.unusable:
            yield from _check(value.inner(block, key), options[key], of_role)
    missing = [key for key, option in options.items() if required and option.get("required") and key not in block]
    if missing:
        yield value.error(f"variable '{value.name}' has no key '{missing[0]}': add it")


def _rejected(given: Any, kind: str, option: Option) -> bool:
    """Return whether Ansible rejects a single value."""
    rules = {key: option[key] for key in ("choices", "elements", "options") if key in option}
    return bool(ArgumentSpecValidator({"value": {"type": kind, **rules}}).validate({"value": given}).error_messages)


def _shown(given: Any, option: Option) -> str:
    """Return a value for messages, without secrets."""
    if isinstance(given, Block):
        return "a mapping"
    if isinstance(given, Items):
        return "a list"
    if option.get("no_log"):
        return "this value"
    if "dict" in (option.get("type"), option.get("elements")):
        return "a single value"  # a text such as key=value can have secrets
    text = str(given)
    return repr(text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…")
