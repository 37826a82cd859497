# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the validation of saved runs and of controller states."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.report import vipu_info
from ansible_collections.openipu.pod.plugins.module_utils.report.page import render
from ansible_collections.openipu.pod.plugins.module_utils.report.runs import checked
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.collection.report.report_support import domains, failing, info, passing


@pytest.mark.parametrize("run", [passing(), failing()])
def test_complete_run_is_unchanged(run: dict[str, Any]) -> None:
    assert checked(json.loads(json.dumps(run))) == run


def test_minimal_run() -> None:
    run = checked({"ok": False, "results": [{"test": "Cabling", "ok": False, "failures": [{"reason": "why"}]}]})
    assert "Investigate the report of the controller: why" in render(None, None, run)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ([], "the run is not a mapping"),
        ({"ok": True}, "the run has no 'results'"),
        ({"ok": True, "results": {}}, "'results' of the run is invalid"),
        ({"ok": 1, "results": []}, "'ok' of the run is invalid"),
        ({"ok": True, "results": [], "agents": [1]}, "'agents' of the run is invalid"),
        (
            {"ok": True, "results": [], "agents": ["a"], "num_ilds": 2},
            "1 agents of the run cannot be divided into 2 equal domains",
        ),
        ({"ok": True, "results": [], "agents": ["a", "a"]}, "'agents' of the run has duplicates"),
        ({"ok": True, "results": [3]}, "result 1 is not a mapping"),
        ({"ok": True, "results": [{"test": "Cabling"}]}, "result 1 has no 'ok'"),
        (
            {"ok": True, "results": [{"test": "Cabling", "ok": False, "failures": [{"a": {"agent": "x"}}]}]},
            "'a' of failure 1 of result 1 has no 'kind'",
        ),
        (
            {
                "ok": True,
                "results": [
                    {"test": "C", "ok": False, "failures": [{"a": {"agent": "x", "kind": "IPU-Link", "port": 1}}]}
                ],
            },
            "failure 1 of result 1 has only one end",
        ),
    ],
)
def test_invalid_run_is_rejected(run: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        checked(run)


END = {"agent": "x", "kind": "IPU-Link", "port": 1}


@pytest.mark.parametrize(
    "failure",
    [
        {},
        {"kind": "version"},
        {"kind": "version", "component": "Virm", "versions": {}},
        {"kind": "version", "component": "Virm", "versions": {"ag01": "1"}},
        {"kind": "corrected_errors", "a": END, "b": {**END, "agent": "y"}},
        {"kind": "no_cable", "a": END, "b": {**END, "agent": "y"}},
        {"kind": "wrong_port", "a": END, "b": {**END, "agent": "y"}, "found": END},
        {"kind": "wrong_port", "a": END, "b": END, "found": END, "found_b": END},
        {"kind": "agent_unreachable"},
        {"kind": "pfc_classes", "agent": "x"},
    ],
)
def test_failures_with_missing_values(failure: dict[str, Any]) -> None:
    run = checked({"ok": False, "results": [{"test": "Cabling", "ok": False, "failures": [failure]}]})
    assert "What to do" in render(None, None, run)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("ended",), 10**12),
        (("ended",), -1),
        (("ended",), "yesterday"),
        (("num_ilds",), 0.5),
        (("topology",), "ring"),
        (("error",), ["why"]),
        (("agents",), ["ag01", ["ag02"]]),
        (("results", 0, "duration"), 10**400),
        (("results", 0, "duration"), float("nan")),
        (("results", 0, "passed"), [1]),
        (("results", 0, "summary"), ["", {}]),
        (("results", 0, "disturbs"), [None]),
        (("results", 0, "versions"), {"Virm": ["1"]}),
        (("results", 1, "failures", 0, "a", "kind"), "HDMI"),
        (("results", 1, "failures", 0, "found"), [1]),
        (("results", 1, "failures", 0, "empty"), "yes"),
        (("results", 1, "failures", 0, "corrected_errors"), [3]),
        (("results", 1, "failures", 0, "versions"), {"ag01": ["1", "2"]}),
    ],
)
def test_values_of_a_wrong_type_are_rejected(place: tuple[Any, ...], value: Any) -> None:
    run: Any = failing()
    *path, last = place
    inner = run
    for step in path:
        inner = inner[step]
    inner[last] = value
    with pytest.raises(ValueError, match=f"^'{last}' of .* (is invalid|is not a mapping)$"):
        checked(run)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
REMOVED = object()
REPLACEMENTS = st.lists(JSON | st.just(REMOVED), min_size=1, max_size=4)


def corrupted(data: st.DataObject, given: Any, values: list[Any]) -> Any:
    """Return the input with some values replaced or removed."""
    for value in values:
        place: Any = given
        while place:
            key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            if not (isinstance(place[key], dict | list) and place[key]) or data.draw(st.integers(0, 3)) == 0:
                if value is REMOVED:
                    del place[key]
                else:
                    place[key] = value
                break
            place = place[key]
    return json.loads(json.dumps(given))


@settings(deadline=None)
@given(st.data(), REPLACEMENTS, st.sampled_from([failing, domains, passing]))
def test_wrong_and_missing_values_are_rejected_or_drawn(
    data: st.DataObject, values: list[Any], made: Callable[[], Any]
) -> None:
    try:
        run = checked(corrupted(data, made(), values))
    except ValueError as error:
        assert "\n" not in str(error)
        return
    render(None, info(), run).encode()


@settings(deadline=None)
@given(st.data(), REPLACEMENTS)
def test_wrong_controller_states_are_rejected_or_drawn(data: st.DataObject, values: list[Any]) -> None:
    try:
        state = vipu_info.checked(corrupted(data, info(), values))
    except ValueError as error:
        assert "\n" not in str(error)
        return
    render(None, state, None).encode()
    render(None, state, passing()).encode()


def test_controller_state_is_drawn() -> None:
    assert render(None, vipu_info.checked(info()), passing()) == render(None, info(), passing())
    assert "IPUs of cluster" not in render(None, vipu_info.checked({"clusters": info()["clusters"]}), None)
