# SPDX-License-Identifier: GPL-3.0-or-later
"""A PDU of the twin with a clock that goes when a test lets it."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from pathlib import Path

from openipu.twin.pdu import Pdu


class Timer:
    """What is to be called, unless it is cancelled."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class Clock:
    """Seconds that pass by ``go`` only."""

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

    def go(self, seconds: float) -> None:
        """Let so many pass, and what is due in them be called."""
        end = self._now + seconds
        while self._timers and self._timers[0][0] <= end:
            self._now, _number, timer = heapq.heappop(self._timers)
            if timer.callback is not None:
                timer.callback()
        self._now = end


class Rack:
    """A PDU, its clock, the watts that its outlets would draw, and what it did to outlets, with the time."""

    def __init__(self, model: str = "AP8886", folder: Path | None = None, **watts: float) -> None:
        self.clock = Clock()
        self.watts: dict[int, float] = {int(name.removeprefix("outlet")): each for name, each in watts.items()}
        self.switched: list[tuple[float, int, bool]] = []
        self.pdu = Pdu(
            "pdu1", model, lambda: dict(self.watts), folder=folder, clock=self.clock, on_outlet=self._on_outlet
        )

    def _on_outlet(self, outlet: int, on: bool) -> None:
        self.switched.append((self.clock.time(), outlet, on))

    def draws(self, watts: dict[int, float]) -> None:
        """From now on."""
        self.watts = watts
        self.pdu.sample()
