# SPDX-License-Identifier: GPL-3.0-or-later
"""Outlets of one PDU: their state, their commands and the switching."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import structlog

from openipu.twin.devices.pdu.load import LoadState, Thresholds
from openipu.twin.devices.pdu.models import Model, Outlet
from openipu.twin.devices.pdu.outlet_timing import Clock, StepTimers, steps, steps_of_all
from openipu.twin.devices.pdu.settings import Record, Settings

_log: structlog.stdlib.BoundLogger = structlog.get_logger("twin.pdu")


class PduState(Protocol):
    """Members of ``pdu.Pdu`` that its outlets use."""

    name: str
    model: Model

    @property
    def record(self) -> Record:
        """Counters, settings and outlet states."""

    @property
    def settings(self) -> Settings:
        """Current settings."""

    def state(self, place: str, number: int = 1) -> LoadState:
        """Return the load state of the device, a phase or a bank."""

    def sample(self) -> None:
        """Measure the loads."""

    def save(self) -> None:
        """Save the record."""


class Outlets:
    """Outlets of a PDU, which calls ``on_outlet`` after one went on or off."""

    def __init__(self, pdu: PduState, clock: Clock, on_outlet: Callable[[int, bool], None]) -> None:
        self._pdu = pdu
        self._on_outlet = on_outlet
        self._timers = StepTimers(clock, self._switch)

    def is_on(self, outlet: int) -> bool:
        """Return whether an outlet exists and is on."""
        on = self._pdu.record.on
        return 1 <= outlet <= len(on) and on[outlet - 1]

    def pending(self, outlet: int) -> bool:
        """Return whether an outlet has pending steps."""
        return self._timers.pending(outlet)

    @property
    def any_pending(self) -> bool:
        """True while any outlet has pending steps."""
        return self._timers.any_pending

    def command(self, outlet: int, command: str) -> None:
        """Run an outlet command, by its name in rPDU2OutletSwitchedControlCommand."""
        self._timers.start(outlet, steps(command, self._pdu.settings.outlets[outlet - 1]))

    def command_all(self, command: str) -> None:
        """Run a device command, by its name in rPDU2DeviceControlCommand."""
        if command == "cancelAllPendingCommands":
            self.cancel_all()
        elif command != "noCommandAll":
            for outlet, pending in enumerate(steps_of_all(command, self._pdu.settings.outlets), 1):
                self._timers.start(outlet, pending)

    def cancel_all(self) -> None:
        """Drop the pending steps of all outlets."""
        self._timers.cancel_all()

    def may_turn_on(self, outlet: Outlet) -> bool:
        """Return whether the overload restrictions of its phase and bank allow turning it on."""
        settings = self._pdu.settings
        places = [("phase", outlet.phase, settings.phases)]
        if outlet.bank:
            places.append(("bank", outlet.bank, settings.banks))
        return not any(_restricts(rows[number - 1], self._pdu.state(place, number)) for place, number, rows in places)

    def _switch(self, outlet: int, on: bool) -> None:
        if self.is_on(outlet) == on:
            return
        self._pdu.sample()
        if on and not self.may_turn_on(self._pdu.model.outlets[outlet - 1]):
            _log.info("outlet stays off: overload restriction", pdu=self._pdu.name, outlet=outlet)
            return
        self._pdu.record.on[outlet - 1] = on
        self._pdu.save()
        self._on_outlet(outlet, on)
        self._pdu.sample()


def _restricts(thresholds: Thresholds, state: LoadState) -> bool:
    limit = thresholds.restriction or LoadState.LOW
    return limit > LoadState.LOW and state >= limit
