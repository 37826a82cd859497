# SPDX-License-Identifier: GPL-3.0-or-later
"""The options that the description may use are those of the modules of awx.awx."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openipu.pod.plugins.plugin_utils.awx.kinds import KINDS, Kind

from tests.awx.runs import PEERS

COLLECTION = PEERS / "ansible_collections/awx/awx"
# Options of modules that the role sets itself, or that AWX no longer has.
EXCLUDED = {
    "schema",  # alias of workflow_nodes
    "destroy_current_schema",
}


def _documentation(file: Path) -> dict[str, Any]:
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "DOCUMENTATION":
            return dict(yaml.safe_load(ast.literal_eval(node.value)))
    raise AssertionError(f"{file} has no documentation")


def test_release_of_the_collection() -> None:
    manifest = json.loads((COLLECTION / "MANIFEST.json").read_text())
    assert manifest["collection_info"]["version"] == "24.6.1"


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.module)
def test_options_are_those_of_the_module(kind: Kind) -> None:
    options = _documentation(COLLECTION / f"plugins/modules/{kind.module}.py")["options"]
    assert kind.known - {"state"} == set(options) - {"state"} - EXCLUDED


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.module)
def test_required_options(kind: Kind) -> None:
    options = _documentation(COLLECTION / f"plugins/modules/{kind.module}.py")["options"]
    assert {name for name, option in options.items() if option.get("required")} <= set(kind.required)
