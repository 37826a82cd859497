# SPDX-License-Identifier: GPL-3.0-or-later
"""Saved results: those that are one are drawn, whatever else is there is refused in a sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.report.runs import checked
from ansible_collections.openipu.pod.plugins.plugin_utils.rack_report import render
from hypothesis import given
from hypothesis import strategies as st
from report_support import failing, passing


@pytest.mark.parametrize("run", [passing(), failing()])
def test_a_real_run_stays_as_it_is(run: dict[str, Any]) -> None:
    assert checked(json.loads(json.dumps(run))) == run


def test_the_least_that_makes_a_page() -> None:
    run = checked({"ok": False, "results": [{"test": "Cabling", "ok": False, "failures": [{"reason": "why"}]}]})
    assert "Look into what the controller says: why" in render(None, None, run)


@pytest.mark.parametrize(
    ("run", "why"),
    [
        ([], "the run is no mapping"),
        ({"ok": True}, "the run has no 'results'"),
        ({"ok": True, "results": {}}, "'results' of the run makes no sense"),
        ({"ok": 1, "results": []}, "'ok' of the run makes no sense"),
        ({"ok": True, "results": [], "agents": [1]}, "'agents' of the run are no names"),
        ({"ok": True, "results": [], "agents": ["a"], "num_ilds": 2}, "1 agents of the run are not 2 equal domains"),
        ({"ok": True, "results": [3]}, "result 1 is no mapping"),
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
            "failure 1 of result 1 has one end only",
        ),
    ],
)
def test_what_is_no_run_is_refused(run: Any, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{why}$"):
        checked(run)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.data(), JSON)
def test_one_wrong_value_is_refused_or_drawn_but_never_a_crash(data: st.DataObject, value: Any) -> None:
    run: Any = failing()
    place: Any = run
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not (isinstance(place[key], dict | list) and place[key]) or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = value
    try:
        run = checked(run)
    except ValueError:
        return
    render(None, None, run).encode()
