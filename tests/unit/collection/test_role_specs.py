# SPDX-License-Identifier: GPL-3.0-or-later
"""What the argument specs of roles say of defaults is what the roles have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

ROLES = sorted(path.parents[1] for path in (Path(__file__).parents[3] / "roles").glob("*/meta/argument_specs.yml"))


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text()) if path.exists() else {}


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_every_default_is_in_the_spec_and_the_same_there(role: Path) -> None:
    specs = load(role / "meta" / "argument_specs.yml")["argument_specs"].values()
    options: dict[str, Any] = {name: option for spec in specs for name, option in (spec.get("options") or {}).items()}
    defaults: dict[str, Any] = load(role / "defaults" / "main.yml")
    assert set(defaults) <= set(options), "a default is in no spec"
    # A spec that says more is not of a default that is computed: what that gives is told in words.
    told = {name: option["default"] for name, option in options.items() if "default" in option}
    plain = {name: value for name, value in defaults.items() if not (isinstance(value, str) and "{{" in value)}
    assert {name: value for name, value in told.items() if name not in defaults or name in plain} == plain
