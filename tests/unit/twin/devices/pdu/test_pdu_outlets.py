# SPDX-License-Identifier: GPL-3.0-or-later
"""Switching of the outlets of a switched PDU."""

from __future__ import annotations

from typing import Any

import pytest

from openipu.twin.devices.pdu.load import LoadState
from openipu.twin.devices.pdu.outlet_timing import NEVER
from tests.unit.twin.devices.pdu.pdu_clock import Rack

FIRST = 1


@pytest.fixture
def rack() -> Rack:
    """Return a PDU with delays at outlets 1 and 2."""
    rack = Rack("AP8953")
    first, second = rack.pdu.settings.outlets[:2]
    first.on_delay, first.off_delay, first.reboot_duration = 3, 2, 10
    second.on_delay, second.off_delay, second.reboot_duration = 1, 4, 20
    return rack


def off(rack: Rack) -> None:
    """Turn both outlets off, and clear the log."""
    rack.pdu.outlets.command(1, "immediateOff")
    rack.pdu.outlets.command(2, "immediateOff")
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
def test_the_delays_of_commands(rack: Rack, is_on: bool, command: str, expected: list[Any]) -> None:
    if not is_on:
        off(rack)
    rack.pdu.outlets.command(FIRST, command)
    assert rack.pdu.outlets.pending(FIRST) == any(time > 0 for time, *_rest in expected)
    rack.clock.advance(60)
    assert rack.switched == expected
    assert not rack.pdu.outlets.any_pending


@pytest.mark.parametrize("command", ["delayedOff", "delayedReboot"])
def test_the_delay_never_switches_nothing(rack: Rack, command: str) -> None:
    rack.pdu.settings.outlets[0].off_delay = NEVER
    rack.pdu.outlets.command(FIRST, command)
    assert not rack.pdu.outlets.pending(FIRST)
    rack.clock.advance(600)
    assert rack.switched == []


def test_a_delayed_reboot_with_on_delay_never_leaves_the_outlet_off(rack: Rack) -> None:
    rack.pdu.settings.outlets[0].on_delay = NEVER
    rack.pdu.outlets.command(FIRST, "delayedReboot")
    rack.clock.advance(600)
    assert rack.switched == [(2, FIRST, False)]


def test_a_command_replaces_the_pending_one(rack: Rack) -> None:
    rack.pdu.outlets.command(FIRST, "delayedReboot")
    rack.clock.advance(5)  # off now, and due to turn on at 15
    rack.pdu.outlets.command(FIRST, "cancelPendingCommand")
    rack.clock.advance(60)
    assert rack.switched == [(2, FIRST, False)]
    rack.pdu.outlets.command(FIRST, "delayedOn")
    rack.pdu.outlets.command(FIRST, "immediateOn")
    rack.clock.advance(60)
    assert rack.switched[1:] == [(65, FIRST, True)]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("immediateAllOff", [(0, 1, False), (0, 2, False)]),
        ("delayedAllOff", [(2, 1, False), (4, 2, False)]),
        # All turn on after the last is off for the longest pause: at 4 + 20, each with its own delay.
        ("delayedAllReboot", [(2, 1, False), (4, 2, False), (25, 2, True), (27, 1, True)]),
        ("immediateAllReboot", [(0, 1, False), (0, 2, False), (10, 1, True), (20, 2, True)]),
        ("noCommandAll", []),
    ],
)
def test_device_commands(rack: Rack, command: str, expected: list[Any]) -> None:
    rack.pdu.outlets.command_all(command)
    rack.clock.advance(60)
    assert [each for each in rack.switched if each[1] in (1, 2)] == expected
    assert {outlet for _time, outlet, _on in rack.switched} in (set(), set(range(1, 25)))


def test_pending_steps_of_all_outlets_are_cancelled(rack: Rack) -> None:
    off(rack)
    rack.pdu.outlets.command_all("delayedAllOn")
    rack.clock.advance(2)
    rack.pdu.outlets.command_all("cancelAllPendingCommands")
    rack.clock.advance(60)
    assert rack.switched == [(1, 2, True)]
    rack.pdu.outlets.command_all("immediateAllOn")
    assert rack.switched[1:] == [(62, 1, True)]


def test_an_outlet_that_is_off_has_no_load(rack: Rack) -> None:
    rack.set_loads({1: 1000.0, 2: 500.0, 13: 250.0})
    assert rack.pdu.reading.banks == (1500.0, 250.0)
    rack.pdu.outlets.command(FIRST, "delayedOff")
    assert rack.pdu.reading.device == 1750.0
    rack.clock.advance(2)
    assert rack.pdu.reading.banks == (500.0, 250.0)


def test_an_outlet_stays_off_while_the_load_restricts_it(rack: Rack) -> None:
    off(rack)
    rack.pdu.settings.banks[0].restriction = LoadState.NEAR_OVERLOAD
    rack.set_loads({3: 3300.0})  # 14.6 A of a bank that warns at 13
    first, other = rack.pdu.model.outlets[0], rack.pdu.model.outlets[12]
    assert not rack.pdu.outlets.may_turn_on(first)
    assert rack.pdu.outlets.may_turn_on(other)
    rack.pdu.outlets.command(FIRST, "delayedOn")
    rack.clock.advance(10)
    assert not rack.pdu.outlets.is_on(FIRST)
    rack.set_loads({3: 1000.0})
    rack.pdu.outlets.command(FIRST, "immediateOn")
    assert rack.pdu.outlets.is_on(FIRST)


def test_close_drops_pending_steps(rack: Rack) -> None:
    rack.pdu.outlets.command(FIRST, "delayedOff")
    rack.pdu.close()
    rack.clock.advance(60)
    assert rack.switched == []
