# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of argument_specs.yml: all defaults of a role are documented with their values."""

from __future__ import annotations

import re
from collections.abc import Iterator
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


SECRET = re.compile(r"password$|access_key$|secret$|token$|community$")


def secrets(options: dict[str, Any] | None) -> Iterator[tuple[str, bool]]:
    """Yield the name of each option with a secret, at any depth, and whether logs omit its value."""
    for name, option in (options or {}).items():
        if SECRET.search(name) and option["type"] in ("str", "raw"):
            yield name, option.get("no_log", False)
        yield from secrets(option.get("options"))


def test_logs_omit_the_values_of_secret_options() -> None:
    specs = [read(path)["argument_specs"] for path in sorted(ROLES.glob("*/meta/argument_specs.yml"))]
    found = [secret for spec in specs for entry in spec.values() for secret in secrets(entry.get("options"))]
    assert len(found) >= 4, "the pattern matches existing options"
    assert [name for name, omitted in found if not omitted] == []
