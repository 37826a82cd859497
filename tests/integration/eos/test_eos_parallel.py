# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of two plays that configure the same switch at the same time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.eos.client import Switch

from tests.integration.eos.eos_runs import run
from tests.integration.eos_switches import ServedSwitch

Result = dict[str, Any]
FORTY, FIFTY = {"vlans": [{"id": 40, "name": "forty"}]}, {"vlans": [{"id": 50, "name": "fifty"}]}


def together(switch: ServedSwitch, *configs: dict[str, Any], **options: Any) -> list[Result]:
    with ThreadPoolExecutor(len(configs)) as pool:
        futures = [pool.submit(run, switch, config, **options) for config in configs]
        return [future.result(60) for future in futures]


@pytest.fixture
def staged_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make two tasks open their sessions before one of them commits."""
    stage, barrier, local = Switch._stage, threading.Barrier(2), threading.local()

    def stage_and_wait(*arguments: Any) -> str:
        diff = stage(*arguments)
        if not hasattr(local, "waited"):
            local.waited = True
            barrier.wait(30)
        return diff

    monkeypatch.setattr(Switch, "_stage", stage_and_wait)


@pytest.fixture
def in_turn(monkeypatch: pytest.MonkeyPatch, staged_together: None) -> None:
    """Make the first task confirm its commit before the second one commits."""
    commit, confirm, turn, confirmed = Switch._commit, Switch._confirm, threading.Lock(), threading.Event()

    def commit_in_turn(*arguments: Any) -> None:
        first = turn.acquire(blocking=False)
        if not first:
            assert confirmed.wait(30)
        commit(*arguments)

    def confirm_and_report(*arguments: Any) -> None:
        confirm(*arguments)
        confirmed.set()

    monkeypatch.setattr(Switch, "_commit", commit_in_turn)
    monkeypatch.setattr(Switch, "_confirm", confirm_and_report)


@pytest.fixture
def during_the_timer(monkeypatch: pytest.MonkeyPatch, staged_together: None) -> None:
    """Make the second task commit while the timer of the first one runs."""
    confirm, abort, rejected = Switch._confirm, Switch._discard_session, threading.Event()

    def discard_and_report(switch: Switch, *arguments: Any) -> Any:
        cause = abort(switch, *arguments)
        rejected.set()
        return cause

    def confirm_late(*arguments: Any) -> None:
        rejected.wait(30)
        confirm(*arguments)

    monkeypatch.setattr(Switch, "_confirm", confirm_late)
    monkeypatch.setattr(Switch, "_discard_session", discard_and_report)


def check(switch: ServedSwitch, results: list[Result], changed: list[bool], *vlans: str) -> None:
    assert [result.get("msg") for result in results] == [None, None]
    assert sorted(result["changed"] for result in results) == changed
    assert set(vlans) <= set(switch.config())
    assert switch.config() == switch.saved()
    assert list(switch.sessions().values()) == ["completed"]


@pytest.mark.parametrize("moment", ["in_turn", "during_the_timer"])
def test_both_make_the_same_change(switch: ServedSwitch, request: pytest.FixtureRequest, moment: str) -> None:
    request.getfixturevalue(moment)
    results = together(switch, FORTY, FORTY)
    check(switch, results, [False, True], "vlan 40")
    unchanged = next(result for result in results if not result["changed"])
    assert (unchanged["commands"], unchanged["diff"]) == ([], {"prepared": ""})


@pytest.mark.parametrize("moment", ["in_turn", "during_the_timer"])
def test_no_change_is_lost(switch: ServedSwitch, request: pytest.FixtureRequest, moment: str) -> None:
    request.getfixturevalue(moment)
    check(switch, together(switch, FORTY, FIFTY), [True, True], "vlan 40", "vlan 50")


def test_both_only_predict(switch: ServedSwitch) -> None:
    before = switch.config()
    results = together(switch, FORTY, FORTY, check=True)
    assert [result["changed"] for result in results] == [True, True]
    assert (switch.config(), switch.sessions()) == (before, {})


def test_a_session_that_always_conflicts_is_an_error(switch: ServedSwitch, monkeypatch: pytest.MonkeyPatch) -> None:
    stage, number = Switch._stage, iter(range(60, 70))

    def stage_and_interfere(*arguments: Any) -> str:
        diff = stage(*arguments)
        vlan = next(number)
        switch.node().config([f"vlan {vlan}", f"name number{vlan}"])
        return diff

    monkeypatch.setattr(Switch, "_stage", stage_and_interfere)
    result = run(switch, FORTY)
    assert (result["failed"], result["changed"]) == (True, False)
    assert result["msg"] == (
        f"Cannot commit the configuration of 127.0.0.1:{switch.port}: other sessions were committed at the same time. "
        "Nothing was changed. Run the task again."
    )
    assert "vlan 40" not in switch.config() and {"vlan 60", "vlan 61", "vlan 62"} <= set(switch.config())
    assert "pending" not in switch.sessions().values()
