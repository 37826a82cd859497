# SPDX-License-Identifier: GPL-3.0-or-later
"""Failed changes: after any error the switch has either its old or the desired configuration."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from openipu.twin.devices.eos.cli import ConnectionDropped
from openipu.twin.devices.eos.config.grammar import CliError
from tests.integration.eos.eos_runs import run
from tests.integration.eos_switches import ServedSwitch
from tests.waiting import until

CONFIG = {"vlans": [{"id": 40, "name": "forty"}]}


def message_of(switch: ServedSwitch, config: dict[str, Any] | None = None, **options: Any) -> str:
    """Return the message of a run that must fail."""
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
def test_a_change_that_cuts_off_management_is_rolled_back(switch: ServedSwitch, config: dict[str, Any]) -> None:
    """The switch rolls back when its timer expires, and the task waits for that."""
    before = switch.config()
    sessions, server = switch.switch.sessions, switch.served
    expire, handshake = sessions.expire, server._handshake
    expired: list[int] = []

    def record_expiry() -> bool:
        if rolled_back := expire():
            expired.append(switch.requests)
        return rolled_back

    async def expire_at_reconnect(connection: socket.socket) -> None:
        if (session := sessions.unconfirmed()) is not None:
            session.deadline = switch.switch.clock()
            server.refresh()
        await handshake(connection)

    sessions.expire = record_expiry  # type: ignore[method-assign]
    server._handshake = expire_at_reconnect  # type: ignore[method-assign]
    assert message_of(switch, config, confirm_timeout=60, timeout=2) == (
        f"Cannot commit the configuration of 127.0.0.1:{switch.port}: no response within 2 seconds. The change was "
        "rolled back. Omit settings that cut off its management, or run the task again if the network failed."
    )
    assert expired == [3]  # after the requests to read, stage and commit; the abort comes later
    assert (switch.config(), switch.saved(), switch.sessions()) == (before, before, {})


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("confirm", [60, 0], ids=["timed", "for-good"])
def test_a_connection_that_breaks_in_the_commit(switch: ServedSwitch, moment: str, confirm: int) -> None:
    before = switch.config()
    switch.fault(drop_commit=moment)
    result = run(switch, CONFIG, confirm_timeout=confirm)
    assert result["failed"] and result["msg"].startswith(
        f"Cannot commit the configuration of 127.0.0.1:{switch.port}: "
    )
    if confirm or moment == "before":
        assert not result["changed"] and "The change was rolled back." in result["msg"]
        assert (switch.config(), switch.saved(), switch.sessions()) == (before, before, {})
    else:  # a commit without timer cannot be rolled back
        assert result["changed"] and "The change was committed nevertheless." in result["msg"]
        assert "vlan 40" in switch.config()
    again = run(switch, CONFIG, confirm_timeout=confirm)
    assert "vlan 40" in switch.config() and "failed" not in again


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_connection_that_breaks_in_the_confirmation(switch: ServedSwitch, moment: str) -> None:
    sessions = switch.switch.sessions
    commit = sessions.commit

    def then_drop(session: Any, user: str, timer: float | None = None) -> None:
        commit(session, user, timer)
        if timer is not None:
            switch.switch.faults.drop_commit = moment

    sessions.commit = then_drop  # type: ignore[method-assign]
    result = run(switch, CONFIG)
    assert result["changed"] and "failed" not in result, result
    assert "vlan 40" in switch.config() and switch.saved() == switch.config()
    assert list(switch.sessions().values()) == ["completed"]
    assert switch.requests == 5 + (moment == "after") * 2  # read the state of the session, then save


def test_a_confirmation_that_is_rejected(switch: ServedSwitch) -> None:
    before = switch.config()
    sessions = switch.switch.sessions
    commit = sessions.commit

    def then_reject_users(session: Any, user: str, timer: float | None = None) -> None:
        commit(session, user, timer)
        switch.switch.faults.wrong_credentials = True

    sessions.commit = then_reject_users  # type: ignore[method-assign]
    message = message_of(switch, confirm_timeout=2)
    assert message.startswith(f"Cannot confirm the configuration of 127.0.0.1:{switch.port}: authentication failed. ")
    assert "The switch rolls back the change when its commit timer expires." in message
    until(lambda: switch.config() == before, 10)
    assert switch.sessions() == {}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("request_number", [1, 2, 3, 4])
def test_a_connection_that_breaks_at_any_time(switch: ServedSwitch, request_number: int, after: bool) -> None:
    """A failed run changes nothing, and a successful run changes everything."""
    before, respond = switch.config(), switch.served._respond

    def break_once(request: Any, body: bytes) -> Any:
        at = switch.requests == request_number
        if at and not after:
            raise ConnectionDropped
        response = respond(request, body)
        if at:
            raise ConnectionDropped
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
def test_a_switch_without_space_to_save(switch: ServedSwitch, confirm: int) -> None:
    before = switch.config()

    def full(user: str) -> None:
        raise CliError(1000, "Error copying system:/running-config to flash:/startup-config (No space left on device)")

    switch.switch.save = full  # type: ignore[method-assign]
    result = run(switch, CONFIG, confirm_timeout=confirm)
    assert (result["failed"], result["changed"]) == (True, True)
    assert result["msg"] == (
        f"Cannot save the configuration of 127.0.0.1:{switch.port}: Error copying system:/running-config to "
        "flash:/startup-config (No space left on device). The running configuration was changed, the startup "
        "configuration was not. Run 'write memory' on the switch."
    )
    assert "vlan 40" in switch.config() and switch.saved() == before
    assert list(switch.sessions().values()) == ["completed"]


def test_a_full_session_table(switch: ServedSwitch) -> None:
    switch.fault(full_sessions=True)
    before, others = switch.config(), switch.sessions()
    message = message_of(switch)
    assert message.startswith("Cannot run 'configure session openipu-")
    assert "Maximum number of pending sessions has been reached." in message
    assert (switch.config(), switch.sessions()) == (before, others)


def test_a_command_that_is_rejected_leaves_no_session(switch: ServedSwitch) -> None:
    before = switch.config()
    for check in (True, False):
        message = message_of(switch, {**CONFIG, "interfaces": [{"name": "Ethernet9/1", "mtu": 9999}]}, check=check)
        assert message == (
            f"Cannot run 'mtu 9999' on 127.0.0.1:{switch.port}: Invalid input (at token 1: '9999'). "
            "The switch has no such command or value: change or omit the option that sets it."
        )
        assert (switch.config(), switch.sessions()) == (before, {})


def test_the_running_timer_of_another_session(switch: ServedSwitch) -> None:
    switch.node().run_commands(["configure session theirs", "vlan 50", "commit timer 00:05:00"])
    with_theirs = switch.config()
    message = message_of(switch, confirm_timeout=1)  # the task waits that long
    assert "commit timer of session theirs runs" in message
    assert (switch.config(), switch.sessions()) == (with_theirs, {"theirs": "pendingCommitTimer"})


@pytest.mark.parametrize(("seconds", "timer"), [(0.2, "00:00:01"), (90, "00:01:30"), (90_061, "25:01:01")])
def test_the_duration_of_the_timer(switch: ServedSwitch, seconds: float, timer: str) -> None:
    timers: list[float | None] = []
    commit = switch.switch.sessions.commit

    def record(session: Any, user: str, timer: float | None = None) -> None:
        timers.append(timer)
        commit(session, user, timer)

    switch.switch.sessions.commit = record  # type: ignore[method-assign]
    assert run(switch, CONFIG, confirm_timeout=seconds)["changed"]
    hours, minutes, rest = map(int, timer.split(":"))
    assert timers == [3600 * hours + 60 * minutes + rest, None]


def test_a_negative_confirm_timeout(switch: ServedSwitch) -> None:
    assert message_of(switch, confirm_timeout=-1) == (
        "Cannot use confirm_timeout -1: it is negative. Set it to seconds, or to 0 to commit without confirmation."
    )
