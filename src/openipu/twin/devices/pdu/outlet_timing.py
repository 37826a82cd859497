# SPDX-License-Identifier: GPL-3.0-or-later
"""Timing of outlet commands: their steps, delays and timers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from openipu.twin.devices.pdu.settings import OutletSettings

NEVER = -1

# A pending step: delay in s, and whether it turns the outlet on.
Step = tuple[float, bool]


class Timer(Protocol):
    """Handle of a scheduled call."""

    def cancel(self) -> None:
        """Cancel the call."""


class Clock(Protocol):
    """Time source and scheduler: an event loop, or a fake one in tests."""

    def time(self) -> float:
        """Return the monotonic time in s."""

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Call ``callback`` after ``delay`` s."""


class LoopClock:
    """Clock of the running event loop."""

    def time(self) -> float:
        """Return the time of the loop; outside a loop, that of the same monotonic clock."""
        try:
            return asyncio.get_running_loop().time()
        except RuntimeError:
            return time.monotonic()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Schedule a call in the running loop. Raises RuntimeError without one."""
        return asyncio.get_running_loop().call_later(delay, callback)


def steps(command: str, settings: OutletSettings) -> list[Step]:
    """Return the steps of an outlet command, by its name in rPDU2OutletSwitchedControlCommand."""
    on, off, pause = settings.on_delay, settings.off_delay, settings.reboot_duration
    match command:
        case "immediateOn":
            return [(0, True)]
        case "immediateOff":
            return [(0, False)]
        case "immediateReboot":
            return [(0, False), (pause, True)]
        case "delayedOn":
            return [] if on == NEVER else [(on, True)]
        case "delayedOff":
            return [] if off == NEVER else [(off, False)]
        case "delayedReboot":
            return _reboot(off, pause, on)
    return []


def steps_of_all(command: str, settings: Sequence[OutletSettings]) -> list[list[Step]]:
    """Return the steps of each outlet for a device command, by its name in rPDU2DeviceControlCommand.

    A reboot of all outlets turns the first one on only after all are off.
    """
    if command != "delayedAllReboot":
        return [steps(command.replace("All", ""), each) for each in settings]
    rebooted = [each for each in settings if each.off_delay != NEVER]
    last = max((each.off_delay for each in rebooted), default=0)
    pause = max((each.reboot_duration for each in rebooted), default=0)
    return [_reboot(each.off_delay, last - each.off_delay + pause, each.on_delay) for each in settings]


def _reboot(off: int, pause: int, on: int) -> list[Step]:
    if off == NEVER:
        return []
    return [(off, False)] if on == NEVER else [(off, False), (pause + on, True)]


class StepTimers:
    """Timers of the pending steps of outlets. Each step calls ``switch`` with an outlet and its new state."""

    def __init__(self, clock: Clock, switch: Callable[[int, bool], None]) -> None:
        self._clock = clock
        self._switch = switch
        self._timers: dict[int, Timer] = {}

    def pending(self, outlet: int) -> bool:
        """Return whether an outlet has pending steps."""
        return outlet in self._timers

    @property
    def any_pending(self) -> bool:
        """True while any outlet has pending steps."""
        return bool(self._timers)

    def start(self, outlet: int, pending: Sequence[Step]) -> None:
        """Replace the pending steps of an outlet by these."""
        self.cancel(outlet)
        self._run(outlet, list(pending))

    def cancel(self, outlet: int) -> None:
        """Drop the pending steps of an outlet."""
        timer = self._timers.pop(outlet, None)
        if timer is not None:
            timer.cancel()

    def cancel_all(self) -> None:
        """Drop the pending steps of all outlets."""
        for outlet in list(self._timers):
            self.cancel(outlet)

    def _run(self, outlet: int, pending: list[Step]) -> None:
        while pending:
            (delay, on), *pending = pending
            if delay > 0:
                due = partial(self._due, outlet, [(0.0, on), *pending])
                self._timers[outlet] = self._clock.call_later(delay, due)
                return
            self._switch(outlet, on)

    def _due(self, outlet: int, pending: list[Step]) -> None:
        del self._timers[outlet]
        self._run(outlet, pending)
