# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration sessions of the twin: candidates, diffs, commits with and without a timer."""

from __future__ import annotations

import pytest

from openipu.twin.devices.eos.config.grammar import CliError
from tests.unit.twin.devices.eos.switch_lines import Console


@pytest.fixture
def console() -> Console:
    return Console()


def states(console: Console) -> dict[str, str]:
    """Return the states of the sessions by name."""
    sessions = console.show_json("show configuration sessions")["sessions"]
    return {name: one["state"] for name, one in sessions.items()}


def test_a_candidate_takes_effect_at_its_commit(console: Console) -> None:
    before = console.lines
    console.type("configure session a", "vlan 30", "interface Ethernet9/1", "mtu 9214")
    assert "vlan 30" in console.type("show session-config")
    assert (console.lines, states(console)) == (before, {"a": "pending"})
    console.type("end", "configure session a", "vlan 31", "commit")
    assert {"vlan 30-31", "   mtu 9214"} <= set(console.lines)
    assert states(console) == {"a": "completed"}


def test_diffs(console: Console) -> None:
    console.configure("vlan 30", "name thirty", "interface Ethernet9/1", "description old", "mtu 9214")
    console.type(
        "configure session a", "interface Ethernet9/1", "description new", "no mtu", "no vlan 30", "hostname x"
    )
    found = console.type("show session-config diffs").splitlines()
    assert found[:2] == ["--- system:/running-config", "+++ session:/a-session-config"]
    assert [line for line in found[2:] if line[0] in "+-"] == [
        *("-hostname tor1", "+hostname x"),
        *("-!", "-vlan 30", "-   name thirty"),
        *("-   description old", "-   mtu 9214", "+   description new"),
    ]
    assert console.type("end", "show session-config named a diffs").splitlines() == found


def test_diffs_without_changes(console: Console) -> None:
    assert console.type("configure session a", "interface Ethernet9/1", "mtu 1500", "show session-config diffs") == ""


def test_diffs_refer_to_the_current_configuration(console: Console) -> None:
    console.type("configure session a", "vlan 30", "end")
    console.configure("vlan 30")
    assert console.type("show session-config named a diffs") == ""


def test_abort(console: Console) -> None:
    before = console.lines
    console.type("configure session a", "vlan 30", "abort", "configure session b", "vlan 31", "end")
    console.type("configure session b abort")
    assert (console.lines, states(console)) == (before, {})


def test_an_expired_timer(console: Console) -> None:
    before = console.lines
    console.type("configure session a", "vlan 30", "commit timer 00:01:30")
    assert "vlan 30" in console.lines
    assert states(console) == {"a": "pendingCommitTimer"}
    console.clock.now += 30
    assert not console.switch.sessions.expire()
    assert "0:01:00" in console.type("show configuration sessions")
    console.clock.now += 60
    assert console.switch.sessions.expire()
    assert (console.lines, states(console)) == (before, {})


def test_a_confirmed_commit(console: Console) -> None:
    console.type("configure session a", "vlan 30", "commit timer 00:01:00", "configure session a commit")
    console.clock.now += 120
    assert not console.switch.sessions.expire()
    assert "vlan 30" in console.lines and states(console) == {"a": "completed"}


def test_a_restarted_timer(console: Console) -> None:
    console.type("configure session a", "vlan 30", "commit timer 00:01:00")
    console.clock.now += 50
    console.type("configure session a commit timer 00:01:00")
    console.clock.now += 50
    assert not console.switch.sessions.expire()
    console.clock.now += 10
    assert console.switch.sessions.expire()
    assert "vlan 30" not in console.lines


def test_abort_while_the_timer_runs(console: Console) -> None:
    before = console.lines
    console.type("configure session a", "vlan 30", "commit timer 00:01:00", "configure session a abort")
    assert (console.lines, states(console)) == (before, {})


def test_one_timer_at_a_time(console: Console) -> None:
    console.type("configure session a", "vlan 30", "commit timer 00:01:00", "configure session b", "vlan 31")
    with pytest.raises(CliError, match="commit timer of session a runs"):
        console.type("commit")
    assert "vlan 30" in console.lines and "vlan 30-31" not in console.lines


@pytest.mark.parametrize("verb", ["", " commit", " abort"])
def test_completed_sessions_are_final(console: Console, verb: str) -> None:
    console.type("configure session a", "vlan 30", "commit")
    console.configure("no vlan 30", "vlan 40")
    with pytest.raises(CliError, match="session already completed"):
        console.type(f"configure session a{verb}")
    assert "vlan 40" in console.lines and "vlan 30" not in console.lines  # later changes remain
    console.type("no configure session a")
    assert states(console) == {}


def test_the_maximum_number_of_sessions(console: Console) -> None:
    for number in range(5):
        console.type(f"configure session s{number}", "end")
    with pytest.raises(CliError, match="Maximum number of pending sessions has been reached"):
        console.type("configure session s5")
    console.type("configure session s0 abort", "configure session s5", "end", "configure session s1", "commit")
    assert list(states(console)) == ["s1", "s2", "s3", "s4", "s5"]


def test_only_the_last_completed_session_is_kept(console: Console) -> None:
    for name in ("a", "b"):
        console.clock.now += 1
        console.type(f"configure session {name}", f"hostname {name}", "commit")
    assert states(console) == {"b": "completed"}


def test_rollback_to_the_factory_configuration(console: Console) -> None:
    console.configure("vlan 30", "interface Ethernet9/1", "mtu 9214")
    console.type("configure session a", "rollback clean-config", "hostname fresh", "commit")
    assert not {"vlan 30", "   mtu 9214"} & set(console.lines)
    assert "hostname fresh" in console.lines


def test_saving(console: Console) -> None:
    console.configure("vlan 30")
    assert "vlan 30" not in console.type("show startup-config")
    assert "+vlan 30" in console.type("show running-config diffs").splitlines()
    assert "Copy completed successfully." in console.type("write memory")
    assert "vlan 30" in console.type("show startup-config")
    assert console.type("show running-config diffs") == ""
