# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes that go wrong: whatever happens on the way, the switch ends up as it was, or as it was to be."""

from __future__ import annotations

import time
from typing import Any

import pytest
from eos_runs import run
from eos_switches import ServedSwitch
from waiting import until

from openipu.twin.eos.cli import Dropped
from openipu.twin.eos.grammar import CliError

CONFIG = {"vlans": [{"id": 40, "name": "forty"}]}


def failed(switch: ServedSwitch, config: dict[str, Any] | None = None, **options: Any) -> str:
    """The sentence of a run that has to fail."""
    result = run(switch, config or CONFIG, **options)
    assert result["failed"] and not result["changed"], result
    assert "Traceback" not in result["msg"] and result["msg"].endswith(".")
    return str(result["msg"])


@pytest.mark.parametrize(
    "config",
    [
        {"interfaces": [{"name": "Management1", "enabled": False}]},
        {"interfaces": [{"name": "Management1", "address": "10.9.9.9/24"}]},
    ],
    ids=["down", "elsewhere"],
)
def test_who_cuts_the_branch_he_sits_on_finds_it_grown_again(switch: ServedSwitch, config: dict[str, Any]) -> None:
    before = switch.config()
    start = time.monotonic()
    said = failed(switch, config, confirm_timeout=2, timeout=0.5)
    assert said == (
        f"127.0.0.1:{switch.port} fell silent when it was changed (no answer within 0.5 seconds), and the change was "
        "taken back: leave out what cuts off its management, or run it again if the network was at fault."
    )
    # By the switch itself, when its timer ran out; the task waited until it knew.
    assert 2 <= time.monotonic() - start < 10
    assert (switch.config(), switch.saved(), switch.sessions()) == (before, before, {})


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("confirm", [60, 0], ids=["timed", "for-good"])
def test_a_connection_that_breaks_in_the_commit(switch: ServedSwitch, moment: str, confirm: int) -> None:
    before = switch.config()
    switch.fault(drop_commit=moment)
    result = run(switch, CONFIG, confirm_timeout=confirm)
    assert result["failed"] and result["msg"].startswith(f"127.0.0.1:{switch.port} fell silent when it was changed (")
    if confirm or moment == "before":
        assert not result["changed"] and "and the change was taken back:" in result["msg"]
        assert (switch.config(), switch.saved(), switch.sessions()) == (before, before, {})
    else:  # nothing can be taken back that was committed for good, and the sentence says so
        assert result["changed"] and "and the change was made all the same:" in result["msg"]
        assert "vlan 40" in switch.config()
    again = run(switch, CONFIG, confirm_timeout=confirm)
    assert "vlan 40" in switch.config() and "failed" not in again


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_connection_that_breaks_in_the_confirmation(switch: ServedSwitch, moment: str) -> None:
    sessions = switch.switch.sessions
    commit = sessions.commit

    def then_break(session: Any, user: str, timer: float | None = None) -> None:
        commit(session, user, timer)
        if timer is not None:
            switch.switch.faults.drop_commit = moment

    sessions.commit = then_break  # type: ignore[method-assign]
    result = run(switch, CONFIG)
    assert result["changed"] and "failed" not in result, result
    assert "vlan 40" in switch.config() and switch.saved() == switch.config()
    assert list(switch.sessions().values()) == ["completed"]
    assert switch.requests == 5 + (moment == "after") * 2  # whether it was confirmed is asked, and it is saved


def test_a_confirmation_that_is_refused(switch: ServedSwitch) -> None:
    before = switch.config()
    sessions = switch.switch.sessions
    commit = sessions.commit

    def then_forget_users(session: Any, user: str, timer: float | None = None) -> None:
        commit(session, user, timer)
        switch.switch.faults.wrong_credentials = True

    sessions.commit = then_forget_users  # type: ignore[method-assign]
    said = failed(switch, confirm_timeout=2)
    assert said.startswith(f"127.0.0.1:{switch.port} was changed and could not be asked to keep that (")
    assert "and takes the change back by itself:" in said
    until(lambda: switch.config() == before, 10)
    assert switch.sessions() == {}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("request_number", [1, 2, 3, 4])
def test_a_connection_that_breaks_at_any_time(switch: ServedSwitch, request_number: int, after: bool) -> None:
    """A run that fails leaves everything as it was, and one that does not has done what it was asked."""
    before, respond = switch.config(), switch.served._respond

    def break_once(request: Any, body: bytes) -> Any:
        at = switch.requests == request_number
        if at and not after:
            raise Dropped
        response = respond(request, body)
        if at:
            raise Dropped
        return response

    switch.served._respond = break_once  # type: ignore[method-assign]
    result = run(switch, CONFIG)
    if request_number < 4:
        assert result["failed"] and (switch.config(), switch.saved()) == (before, before), result
        assert switch.sessions() == {}
    else:
        assert result["changed"] and "vlan 40" in switch.config(), result
        assert switch.config() == switch.saved()
        assert list(switch.sessions().values()) == ["completed"]


@pytest.mark.parametrize("confirm", [60, 0], ids=["timed", "for-good"])
def test_a_switch_that_has_no_room_to_save(switch: ServedSwitch, confirm: int) -> None:
    before = switch.config()

    def full(user: str) -> None:
        raise CliError(1000, "Error copying system:/running-config to flash:/startup-config (No space left on device)")

    switch.switch.save = full  # type: ignore[method-assign]
    result = run(switch, CONFIG, confirm_timeout=confirm)
    assert (result["failed"], result["changed"]) == (True, True)
    assert result["msg"] == (
        f"127.0.0.1:{switch.port} was changed and could not save that (Error copying system:/running-config to "
        "flash:/startup-config (No space left on device)): until somebody does with 'write memory', it starts with "
        "its old configuration."
    )
    assert "vlan 40" in switch.config() and switch.saved() == before
    assert list(switch.sessions().values()) == ["completed"]


def test_a_full_session_table(switch: ServedSwitch) -> None:
    switch.fault(full_sessions=True)
    before, theirs = switch.config(), switch.sessions()
    said = failed(switch)
    assert said.startswith(f"127.0.0.1:{switch.port} refused 'configure session openipu-")
    assert "Maximum number of pending sessions has been reached." in said
    assert (switch.config(), switch.sessions()) == (before, theirs)


def test_a_command_that_is_refused_leaves_no_session(switch: ServedSwitch) -> None:
    before = switch.config()
    for check in (True, False):
        said = failed(switch, {**CONFIG, "interfaces": [{"name": "Ethernet9/1", "mtu": 9999}]}, check=check)
        assert said.startswith(f"127.0.0.1:{switch.port} refused 'mtu 9999': Invalid input (at token 1: '9999')")
        assert (switch.config(), switch.sessions()) == (before, {})


def test_somebody_elses_timer_that_runs(switch: ServedSwitch) -> None:
    switch.node().run_commands(["configure session theirs", "vlan 50", "commit timer 00:05:00"])
    with_theirs = switch.config()
    said = failed(switch)
    assert "commit timer of session theirs runs" in said
    assert (switch.config(), switch.sessions()) == (with_theirs, {"theirs": "pendingCommitTimer"})


@pytest.mark.parametrize(("seconds", "timer"), [(0.2, "00:00:01"), (90, "00:01:30"), (90_061, "25:01:01")])
def test_how_long_the_timer_runs(switch: ServedSwitch, seconds: float, timer: str) -> None:
    asked: list[float | None] = []
    commit = switch.switch.sessions.commit

    def note(session: Any, user: str, timer: float | None = None) -> None:
        asked.append(timer)
        commit(session, user, timer)

    switch.switch.sessions.commit = note  # type: ignore[method-assign]
    assert run(switch, CONFIG, confirm_timeout=seconds)["changed"]
    hours, minutes, rest = map(int, timer.split(":"))
    assert asked == [3600 * hours + 60 * minutes + rest, None]


def test_no_time_at_all(switch: ServedSwitch) -> None:
    assert failed(switch, confirm_timeout=-1) == (
        "The confirm_timeout -1 is none: give seconds, or 0 to commit for good."
    )
