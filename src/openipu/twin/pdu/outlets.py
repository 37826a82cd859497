# SPDX-License-Identifier: GPL-3.0-or-later
"""How outlets are switched: commands, their delays, and what of them is still to come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from openipu.twin.pdu.settings import OutletSettings

NEVER = -1

# What is still to be done: after so many s, on or off.
Step = tuple[float, bool]


class Timer(Protocol):
    """What is called later."""

    def cancel(self) -> None:
        """Do not call it."""


class Clock(Protocol):
    """An event loop, or what stands for one."""

    def time(self) -> float:
        """Seconds that only go forward."""

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Call it in so many seconds."""


class LoopClock:
    """The clock of the event loop that runs."""

    def time(self) -> float:
        """Also known outside of a loop, whose clock is the same."""
        try:
            return asyncio.get_running_loop().time()
        except RuntimeError:
            return time.monotonic()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """In the running loop. Raises RuntimeError when there is none."""
        return asyncio.get_running_loop().call_later(delay, callback)


def steps(command: str, settings: OutletSettings) -> list[Step]:
    """What a command to one outlet does. ``command`` is a name of rPDU2OutletSwitchedControlCommand."""
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
    """What a command to the device does to each outlet. ``command`` is a name of rPDU2DeviceControlCommand.

    A reboot of all begins to turn on when all are off.
    """
    if command != "delayedAllReboot":
        return [steps(command.replace("All", ""), each) for each in settings]
    going = [each for each in settings if each.off_delay != NEVER]
    last = max((each.off_delay for each in going), default=0)
    pause = max((each.reboot_duration for each in going), default=0)
    return [_reboot(each.off_delay, last - each.off_delay + pause, each.on_delay) for each in settings]


def _reboot(off: int, pause: int, on: int) -> list[Step]:
    if off == NEVER:
        return []
    return [(off, False)] if on == NEVER else [(off, False), (pause + on, True)]


class Switching:
    """The commands that are under way. ``switch`` is called with an outlet and what is to become of it."""

    def __init__(self, clock: Clock, switch: Callable[[int, bool], None]) -> None:
        """See the class."""
        self._clock = clock
        self._switch = switch
        self._timers: dict[int, Timer] = {}

    def pending(self, outlet: int) -> bool:
        """Whether something is still to come."""
        return outlet in self._timers

    @property
    def any_pending(self) -> bool:
        """Whether something is still to come of any outlet."""
        return bool(self._timers)

    def start(self, outlet: int, todo: Sequence[Step]) -> None:
        """Do this instead of what was to come."""
        self.cancel(outlet)
        self._go_on(outlet, list(todo))

    def cancel(self, outlet: int) -> None:
        """Forget what was to come."""
        timer = self._timers.pop(outlet, None)
        if timer is not None:
            timer.cancel()

    def cancel_all(self) -> None:
        """Forget what was to come of all outlets."""
        for outlet in list(self._timers):
            self.cancel(outlet)

    def _go_on(self, outlet: int, todo: list[Step]) -> None:
        while todo:
            (delay, on), *todo = todo
            if delay > 0:
                due = partial(self._due, outlet, [(0.0, on), *todo])
                self._timers[outlet] = self._clock.call_later(delay, due)
                return
            self._switch(outlet, on)

    def _due(self, outlet: int, todo: list[Step]) -> None:
        del self._timers[outlet]
        self._go_on(outlet, todo)
