# SPDX-License-Identifier: GPL-3.0-or-later
"""How the outlets of a switched PDU go on and off."""

from __future__ import annotations

from typing import Any

import pytest
from pdu_clock import Rack

from openipu.twin.pdu.load import LoadState
from openipu.twin.pdu.outlets import NEVER

FIRST = 1


@pytest.fixture
def rack() -> Rack:
    """One whose outlets 1 and 2 have delays."""
    rack = Rack("AP8953")
    first, second = rack.pdu.settings.outlets[:2]
    first.on_delay, first.off_delay, first.reboot_duration = 3, 2, 10
    second.on_delay, second.off_delay, second.reboot_duration = 1, 4, 20
    return rack


def off(rack: Rack) -> None:
    """Begin with both turned off."""
    rack.pdu.command(1, "immediateOff")
    rack.pdu.command(2, "immediateOff")
    rack.switched.clear()


@pytest.mark.parametrize(
    ("is_on", "command", "expected"),
    [
        (True, "immediateOff", [(0, FIRST, False)]),
        (True, "immediateOn", []),
        (True, "immediateReboot", [(0, FIRST, False), (10, FIRST, True)]),
        (True, "delayedOff", [(2, FIRST, False)]),
        (True, "delayedReboot", [(2, FIRST, False), (15, FIRST, True)]),
        (True, "cancelPendingCommand", []),
        (False, "immediateOn", [(0, FIRST, True)]),
        (False, "delayedOn", [(3, FIRST, True)]),
        (False, "immediateReboot", [(10, FIRST, True)]),
    ],
)
def test_a_command_is_done_in_its_time(rack: Rack, is_on: bool, command: str, expected: list[Any]) -> None:
    if not is_on:
        off(rack)
    rack.pdu.command(FIRST, command)
    assert rack.pdu.switching.pending(FIRST) == any(time > 0 for time, *_rest in expected)
    rack.clock.go(60)
    assert rack.switched == expected
    assert not rack.pdu.switching.any_pending


@pytest.mark.parametrize("command", ["delayedOff", "delayedReboot"])
def test_never_is_never(rack: Rack, command: str) -> None:
    rack.pdu.settings.outlets[0].off_delay = NEVER
    rack.pdu.command(FIRST, command)
    assert not rack.pdu.switching.pending(FIRST)
    rack.clock.go(600)
    assert rack.switched == []


def test_never_on_again_after_a_delayed_reboot(rack: Rack) -> None:
    rack.pdu.settings.outlets[0].on_delay = NEVER
    rack.pdu.command(FIRST, "delayedReboot")
    rack.clock.go(600)
    assert rack.switched == [(2, FIRST, False)]


def test_a_command_takes_the_place_of_the_one_before(rack: Rack) -> None:
    rack.pdu.command(FIRST, "delayedReboot")
    rack.clock.go(5)  # it is off now, and to go on at 15
    rack.pdu.command(FIRST, "cancelPendingCommand")
    rack.clock.go(60)
    assert rack.switched == [(2, FIRST, False)]
    rack.pdu.command(FIRST, "delayedOn")
    rack.pdu.command(FIRST, "immediateOn")
    rack.clock.go(60)
    assert rack.switched[1:] == [(65, FIRST, True)]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("immediateAllOff", [(0, 1, False), (0, 2, False)]),
        ("delayedAllOff", [(2, 1, False), (4, 2, False)]),
        # All go on when the last one has been off for the longest pause: at 4 + 20, each with its own delay.
        ("delayedAllReboot", [(2, 1, False), (4, 2, False), (25, 2, True), (27, 1, True)]),
        ("immediateAllReboot", [(0, 1, False), (0, 2, False), (10, 1, True), (20, 2, True)]),
        ("noCommandAll", []),
    ],
)
def test_all_at_once(rack: Rack, command: str, expected: list[Any]) -> None:
    rack.pdu.command_all(command)
    rack.clock.go(60)
    assert [each for each in rack.switched if each[1] in (1, 2)] == expected
    assert {outlet for _time, outlet, _on in rack.switched} in (set(), set(range(1, 25)))


def test_all_on_and_what_is_cancelled(rack: Rack) -> None:
    off(rack)
    rack.pdu.command_all("delayedAllOn")
    rack.clock.go(2)
    rack.pdu.command_all("cancelAllPendingCommands")
    rack.clock.go(60)
    assert rack.switched == [(1, 2, True)]
    rack.pdu.command_all("immediateAllOn")
    assert rack.switched[1:] == [(62, 1, True)]


def test_an_outlet_that_is_off_draws_nothing(rack: Rack) -> None:
    rack.draws({1: 1000.0, 2: 500.0, 13: 250.0})
    assert rack.pdu.reading.banks == (1500.0, 250.0)
    rack.pdu.command(FIRST, "delayedOff")
    assert rack.pdu.reading.device == 1750.0
    rack.clock.go(2)
    assert rack.pdu.reading.banks == (500.0, 250.0)


def test_no_outlet_goes_on_where_the_load_restricts_it(rack: Rack) -> None:
    off(rack)
    rack.pdu.settings.banks[0].restriction = LoadState.NEAR_OVERLOAD
    rack.draws({3: 3300.0})  # 14.6 A of a bank that warns at 13
    first, other = rack.pdu.model.outlets[0], rack.pdu.model.outlets[12]
    assert not rack.pdu.may_turn_on(first)
    assert rack.pdu.may_turn_on(other)
    rack.pdu.command(FIRST, "delayedOn")
    rack.clock.go(10)
    assert not rack.pdu.is_on(FIRST)
    rack.draws({3: 1000.0})
    rack.pdu.command(FIRST, "immediateOn")
    assert rack.pdu.is_on(FIRST)


def test_what_was_to_come_ends_with_the_pdu(rack: Rack) -> None:
    rack.pdu.command(FIRST, "delayedOff")
    rack.pdu.close()
    rack.clock.go(60)
    assert rack.switched == []
