# SPDX-License-Identifier: GPL-3.0-or-later
"""Examples in READMEs of roles: plays with existing roles and options, whose values have the documented types."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from tests import ROOT

ROLES = ROOT / "roles"
NAMES = sorted(path.name for path in ROLES.iterdir())
BLOCK = re.compile(r"^( *)```ya?ml\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
# Variables of roles. Examples also have variables of the user, of the inventory, and keys of other files.
OWN = re.compile(f"(?:{'|'.join(NAMES)})_")


def examples(role: str) -> Iterator[Any]:
    """Yield the YAML examples of a README as data."""
    for indent, text in BLOCK.findall((ROLES / role / "README.md").read_text()):
        yield yaml.safe_load(re.sub(f"^{indent}", "", text, flags=re.MULTILINE))


def options(role: str) -> dict[str, Any]:
    """Return the options of all entry points of a role."""
    specs = yaml.safe_load((ROLES / role / "meta/argument_specs.yml").read_text())["argument_specs"]
    return {name: option for spec in specs.values() for name, option in (spec.get("options") or {}).items()}


def variables(example: Any) -> Iterator[dict[str, Any]]:
    """Yield the variables of an example: of its plays and their roles, or the example itself."""
    if isinstance(example, dict):
        yield example
    for play in example if isinstance(example, list) else ():
        yield play.get("vars") or {}
        for role in play.get("roles") or ():
            yield role if isinstance(role, dict) else {}
        for task in play.get("tasks") or ():
            yield task.get("vars") or {}


def roles(example: Any) -> Iterator[str]:
    """Yield the names of the roles in an example."""
    for play in example if isinstance(example, list) else ():
        for role in play.get("roles") or ():
            yield role["role"] if isinstance(role, dict) else role


@pytest.mark.parametrize("role", NAMES)
def test_examples_use_existing_roles_and_options(role: str) -> None:
    known = {name: option for each in NAMES for name, option in options(each).items()}
    for example in examples(role):
        assert {name.removeprefix("openipu.pod.") for name in roles(example)} <= set(NAMES)
        for given in variables(example):
            own = {name: value for name, value in given.items() if OWN.match(name)}
            assert set(own) <= set(known), sorted(set(own) - set(known))
            fixed = {name: value for name, value in own.items() if "{{" not in str(value)}
            spec = {name: {**known[name], "required": False} for name in fixed}
            errors = ArgumentSpecValidator(spec).validate(fixed).error_messages
            assert not errors, errors


def test_every_role_has_an_example() -> None:
    assert [role for role in NAMES if not list(examples(role))] == []


def test_the_pattern_matches_the_variables_of_examples() -> None:
    found = {name for role in NAMES for example in examples(role) for given in variables(example) for name in given}
    assert sum(bool(OWN.match(name)) for name in found) > 40
