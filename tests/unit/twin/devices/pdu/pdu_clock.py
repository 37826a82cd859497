# SPDX-License-Identifier: GPL-3.0-or-later
"""A PDU of the twin with a clock that a test advances."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from pathlib import Path

from openipu.twin.devices.pdu import Pdu


class Timer:
    """A scheduled call, which can be cancelled."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class Clock:
    """A clock that only ``advance`` moves forward."""

    def __init__(self) -> None:
        self._now = 0.0
        self._order = itertools.count()
        self._timers: list[tuple[float, int, Timer]] = []

    def time(self) -> float:
        return self._now

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        timer = Timer(callback)
        heapq.heappush(self._timers, (self._now + delay, next(self._order), timer))
        return timer

    def advance(self, seconds: float) -> None:
        """Move the clock forward, and run the calls that become due."""
        end = self._now + seconds
        while self._timers and self._timers[0][0] <= end:
            self._now, _number, timer = heapq.heappop(self._timers)
            if timer.callback is not None:
                timer.callback()
        self._now = end


class Rack:
    """A PDU, its clock, the loads of its outlets while on, and the log of switched outlets with times."""

    def __init__(self, model: str = "AP8886", folder: Path | None = None, **watts: float) -> None:
        self.clock = Clock()
        self.watts: dict[int, float] = {int(name.removeprefix("outlet")): each for name, each in watts.items()}
        self.switched: list[tuple[float, int, bool]] = []
        self.pdu = Pdu(
            "pdu1", model, lambda: dict(self.watts), folder=folder, clock=self.clock, on_outlet=self._on_outlet
        )

    def _on_outlet(self, outlet: int, on: bool) -> None:
        self.switched.append((self.clock.time(), outlet, on))

    def set_loads(self, watts: dict[int, float]) -> None:
        """Set the loads of the outlets while they are on."""
        self.watts = watts
        self.pdu.sample()
