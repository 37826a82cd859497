# SPDX-License-Identifier: GPL-3.0-or-later
"""Reasons of events: the documentation lists exactly those that the operator writes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from openipu.kubernetes.domain import status
from openipu.kubernetes.domain.status import State
from tests import ROOT

# Method -> number of the argument with the reason.
METHODS = {"add_event": 0, "record": 1, "_note": 2}


def written() -> Iterator[str]:
    """Yield the reasons in calls of the sources."""
    for path in (ROOT / "src/openipu/kubernetes/operator").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
                argument = node.args[METHODS[node.func.attr]]
                if isinstance(argument, ast.Constant):
                    yield str(argument.value)


def test_the_documentation_lists_all_reasons() -> None:
    text = (ROOT / "docs/reference/kubernetes.md").read_text()
    rows = text.partition("## Events")[2].partition("\n## ")[0].splitlines()
    documented = {reason for row in rows for reason in re.findall(r"`(\w+)`", row.partition(" | ")[0])}
    of_states = {f"IPUJob{state.value}" for state in State}
    assert documented == {*written(), *of_states, status.INVALID, status.UNSCHEDULABLE}
