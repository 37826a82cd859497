# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of argument_specs.yml: all defaults of a role are documented with their values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT

ROLES = ROOT / "roles"


def read(file: Path) -> Any:
    return yaml.safe_load(file.read_text()) if file.exists() else {}


def templated(value: object) -> bool:
    return "{{" in str(value) or "{%" in str(value)


@pytest.mark.parametrize("role", sorted(path.name for path in ROLES.iterdir()))
def test_defaults_are_those_of_the_specification(role: str) -> None:
    defaults = read(ROLES / role / "defaults/main.yml") or {}
    specs = read(ROLES / role / "meta/argument_specs.yml").get("argument_specs", {})
    options = {name: option for spec in specs.values() for name, option in (spec.get("options") or {}).items()}
    assert set(defaults) <= set(options), "each default is an option"
    documented = {name: option["default"] for name, option in options.items() if "default" in option}
    actual = {name: value for name, value in defaults.items() if not templated(value)}
    assert {name: value for name, value in documented.items() if not templated(value)} == actual
