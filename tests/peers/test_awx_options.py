# SPDX-License-Identifier: GPL-3.0-or-later
"""The recorded options of the modules of awx.awx, with which unit tests check the AWX content."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest

from tests.peers.peers import PEERS
from tests.unit.collection.awx.checks import OPTIONS

pytestmark = pytest.mark.peers
AWX = PEERS / "ansible_collections/awx/awx"
KEYS = ("type", "elements", "required", "choices")


def argument_spec(module: str) -> dict[str, Any]:
    """Return the options of a module from its source. Choices that are no constant are omitted."""
    tree = ast.parse((AWX / f"plugins/modules/{module}.py").read_text())
    (call,) = (
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == "argument_spec"
    )
    assert isinstance(call, ast.Call)
    spec = {}
    for option in call.keywords:
        assert isinstance(option.value, ast.Call)
        spec[str(option.arg)] = {
            str(each.arg): ast.literal_eval(each.value)
            for each in option.value.keywords
            if each.arg in KEYS and not isinstance(each.value, ast.Call)
        }
    return spec


@pytest.mark.parametrize("kind", OPTIONS)
def test_the_recorded_options_are_those_of_the_module(kind: str) -> None:
    assert AWX.is_dir(), f"No awx.awx in {PEERS}: run 'make test-peers'."
    recorded = OPTIONS[kind]["options"]
    found = argument_spec(OPTIONS[kind]["module"])
    assert set(recorded) == set(found)
    for name, option in found.items():
        if kind == "credential_types" and name == "kind":
            continue  # its choices are in a constant
        assert recorded[name] == {"type": "str", **{key: value for key, value in option.items() if value is not False}}


def test_the_version_of_the_collection() -> None:
    manifest = json.loads((AWX / "MANIFEST.json").read_text())
    assert manifest["collection_info"]["version"] == "24.6.1"
