# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the tracker that turns objects of a controller into events."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.vipu.controller_events import Tracker
from hypothesis import given
from hypothesis import strategies as st

LOST, STUCK = 300.0, 120.0


def tracker(saved: Any = None) -> Tracker:
    return Tracker("pod:8090", LOST, STUCK, saved)


def put(id: str, state: str, revision: int = 5) -> dict[str, Any]:
    return {"type": "put", "kind": "partition", "id": id, "revision": revision, "object": {"id": id, "state": state}}


def delete(id: str, revision: int = 5) -> dict[str, Any]:
    return {"type": "delete", "kind": "partition", "id": id, "revision": revision, "object": None}


def agent(id: str, state: str) -> dict[str, Any]:
    return {"id": id, "state": state, "reason": "no response"}


def run(run_id: str | None, state: str = "finished", **more: Any) -> dict[str, Any]:
    base = {"run_id": run_id, "state": state, "cluster": "cl0", "ok": True, "error": None}
    return {**base, "started": 1, "ended": 2, "results": [], **more}


def result(test: str, *reasons: str, skipped: bool = False) -> dict[str, Any]:
    return {"test": test, "ok": not reasons, "skipped": skipped, "failures": [{"reason": each} for each in reasons]}


def types(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["type"], event["id"]) for event in events]


NO_TEST = run(None, "none", started=None)


def test_a_first_snapshot_reports_only_failures() -> None:
    found = tracker().partitions([put("a", "ACTIVE"), put("b", "ERROR"), put("c", "PENDING")], 5, 0.0, snapshot=True)
    assert types(found) == [("partition_error", "b")]
    assert found[0]["object"]["state"] == "ERROR"
    assert found[0]["key"] == "partition_error/b/5"
    assert found[0]["controller"] == "pod:8090"


def test_each_change_is_reported_once() -> None:
    made = tracker()
    assert made.partitions([put("a", "ACTIVE")], 5, 0.0, snapshot=True) == []
    assert types(made.partitions([put("a", "ERROR", 6)], 6, 1.0)) == [("partition_error", "a")]
    assert made.partitions([put("a", "ERROR", 7)], 7, 2.0) == []
    assert made.partitions([put("a", "PENDING", 8)], 8, 3.0) == []
    assert types(made.partitions([put("a", "ACTIVE", 9)], 9, 4.0)) == [("partition_ready", "a")]
    assert types(made.partitions([put("new", "ACTIVE", 10)], 10, 5.0)) == [("partition_ready", "new")]
    assert types(made.partitions([delete("a", 11)], 11, 6.0)) == [("partition_removed", "a")]
    assert made.partitions([delete("a", 11)], 11, 6.0) == []
    assert made.revision == 11


def test_a_new_snapshot_reports_all_changes_in_the_gap() -> None:
    made = tracker()
    made.partitions([put("a", "ACTIVE"), put("b", "ACTIVE"), put("c", "ERROR")], 5, 0.0, snapshot=True)
    found = made.partitions([put("b", "ERROR", 9), put("c", "ERROR", 9), put("d", "ACTIVE", 9)], 9, 1.0, snapshot=True)
    assert types(found) == [("partition_error", "b"), ("partition_ready", "d"), ("partition_removed", "a")]


def test_other_kinds_are_ignored() -> None:
    other = {"type": "put", "kind": "agent", "id": "a", "revision": 5, "object": {"id": "a"}}
    assert tracker().partitions([other], 5, 0.0, snapshot=True) == []


def test_agents() -> None:
    made = tracker()
    assert types(made.agents([agent("a", "Up"), agent("b", "Down"), agent("c", "Unknown")], 0.0)) == [
        ("agent_down", "b")
    ]
    # A controller that starts reports Unknown first, which is no change.
    assert made.agents([agent("a", "Unknown"), agent("b", "Unknown"), agent("c", "Unknown")], 1.0) == []
    found = made.agents([agent("a", "Up"), agent("b", "Up"), agent("c", "Up")], 2.0)
    assert types(found) == [("agent_up", "b"), ("agent_up", "c")]
    assert types(made.agents([agent("b", "Up"), agent("c", "Down")], 3.0)) == [("agent_down", "c")]
    assert types(made.agents([agent("a", "Up"), agent("b", "Up"), agent("c", "Down")], 4.0)) == [("agent_up", "a")]


def test_texts_of_agents_are_no_templates() -> None:
    [event] = tracker().agents([{"id": "a", "state": "Down", "reason": "{{ x }}{% y %}{{{ z"}], 0.0)
    assert event["object"]["reason"] == "{ { x }}{ % y %}{ { { z"


def test_an_agent_is_lost_once_after_the_limit() -> None:
    made = tracker()
    made.agents([agent("a", "Down")], 100.0)
    assert made.next_due() == 100.0 + LOST
    assert made.due(100.0 + LOST - 1) == []
    [event] = made.due(100.0 + LOST)
    assert (event["type"], event["id"], event["object"]["seconds"]) == ("agent_lost", "a", LOST)
    assert made.due(10_000.0) == []
    assert made.next_due() is None
    made.agents([agent("a", "Up")], 11_000.0)
    made.agents([agent("a", "Down")], 12_000.0)
    assert types(made.due(12_000.0 + LOST)) == [("agent_lost", "a")]


def test_an_agent_that_returns_in_time_is_not_lost() -> None:
    made = tracker()
    made.agents([agent("a", "Down")], 0.0)
    made.agents([agent("a", "Up")], LOST - 1)
    assert made.due(10 * LOST) == []


def test_a_partition_is_stuck_twice() -> None:
    made = tracker()
    made.partitions([put("a", "ACTIVE")], 5, 0.0, snapshot=True)
    made.partitions([put("a", "ERROR", 6)], 6, 10.0)
    made.partitions([put("a", "PENDING", 7)], 7, 50.0)  # a reset does not end the time
    assert made.due(10.0 + STUCK - 1) == []
    [first] = made.due(10.0 + STUCK)
    assert (first["type"], first["object"]["attempt"], first["object"]["state"]) == ("partition_stuck", 1, "PENDING")
    assert made.due(10.0 + STUCK + 1) == []
    [second] = made.due(10.0 + 2 * STUCK)
    assert second["object"]["attempt"] == 2
    assert second["key"] != first["key"]
    assert made.due(10.0 + 10 * STUCK) == []


def test_an_active_partition_is_not_stuck() -> None:
    made = tracker()
    made.partitions([put("a", "ERROR")], 5, 0.0, snapshot=True)
    made.partitions([put("a", "ACTIVE", 6)], 6, 1.0)
    assert made.next_due() is None
    made.partitions([put("b", "PENDING", 7)], 7, 2.0)
    made.partitions([delete("b", 8)], 8, 3.0)
    assert made.next_due() is None


def test_cluster_tests() -> None:
    made = tracker()
    assert made.test(run("r1"), 0.0) == []  # ended before the first start
    assert made.test(run("r2", "running"), 1.0) == []
    failed = [result("Cabling", "no cable", "no cable"), result("Traffic", skipped=True), result("Version")]
    [event] = made.test(run("r2", ok=False, results=failed), 2.0)
    assert (event["type"], event["id"], event["kind"]) == ("cluster_test_done", "cl0", "cluster")
    assert event["object"]["failed_tests"] == ["Cabling"]
    assert event["object"]["failures"] == 2
    assert event["object"]["reasons"] == ["no cable"]
    assert made.test(run("r2", ok=False), 3.0) == []
    assert made.test(NO_TEST, 4.0) == []  # the controller restarted
    assert made.test(run("r2", ok=False), 5.0) == []
    assert types(made.test(run("r2", started=9), 6.0)) == [("cluster_test_done", "cl0")]


def test_a_restart_continues_with_limits_and_without_repetition() -> None:
    made = tracker()
    made.partitions([put("a", "ERROR")], 5, 10.0, snapshot=True)
    made.agents([agent("x", "Down")], 10.0)
    made.test(run("r1"), 10.0)
    saved = json.loads(json.dumps(made.state()))
    again = tracker(saved)
    assert again.state() == saved
    assert again.revision == 5
    assert again.partitions([], 6, 20.0) == []
    assert again.agents([agent("x", "Down")], 20.0) == []
    assert again.test(run("r1"), 20.0) == []
    assert types(again.due(10.0 + LOST)) == [("agent_lost", "x"), ("partition_stuck", "a")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "its version 99 is unknown"),
        ({"controller": "other:1"}, "it belongs to the controller other:1"),
        ({"partitions": {"a": {"colour": "red"}}}, "it has an unknown structure"),
        ({"agents": []}, "it has an unknown structure"),
    ],
)
def test_an_unusable_state_is_rejected(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tracker({**tracker().state(), **change})
    with pytest.raises(ValueError, match="unknown structure"):
        tracker([])


@pytest.mark.parametrize(
    ("before", "after", "valid"),
    [
        ("a:1/admin", "a:1,b:1/admin", True),
        ("a:1,b:1/admin", "b:1,c:1/admin", True),
        ("a:1,b:1/admin/a1", "b:1,a:1/admin/a1", True),
        ("a:1,b:1/admin", "c:1,d:1/admin", False),
        ("a:1,b:1/admin", "a:1,b:1/tenant", False),
        ("a:1,b:1/admin/a1", "a:1,b:1/admin", False),
    ],
)
def test_the_state_of_several_controllers_needs_one_address_in_common(before: str, after: str, valid: bool) -> None:
    saved = Tracker(before, LOST, STUCK).state()
    if valid:
        assert Tracker(after, LOST, STUCK, saved).state() == {**saved, "controller": after}
    else:
        with pytest.raises(ValueError, match="it belongs to the controller"):
            Tracker(after, LOST, STUCK, saved)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["ACTIVE", "ERROR", "PENDING", None])), max_size=20))
def test_restarts_at_any_point_give_the_same_events(steps: list[tuple[str, str | None]]) -> None:
    steady, restarted = tracker(), tracker()
    for number, (id, state) in enumerate(steps, 2):
        changes = [delete(id, number) if state is None else put(id, state, number)]
        expected = steady.partitions(changes, number, float(number))
        assert restarted.partitions(changes, number, float(number)) == expected
        restarted = tracker(json.loads(json.dumps(restarted.state())))
        assert restarted.partitions(changes, number, float(number)) == []  # delivered again after a crash
        restarted = tracker(json.loads(json.dumps(restarted.state())))
    assert restarted.state() == steady.state()
