# SPDX-License-Identifier: GPL-3.0-or-later
"""Pauses of the controller: its event loop was late, as in a stopped process or a migrating virtual machine."""

from __future__ import annotations

import asyncio

from openipu.vipu.fleet.silence import LATE

INTERVAL = 1.0  # seconds between two timers; a shorter pause may be between them


class Pauses:
    """Detector of pauses. Use it in the event loop, except the constructor."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start to detect pauses."""
        self._loop = loop
        self._last_end = float("-inf")
        self._wait()

    def last_end(self) -> float:
        """Return when the last pause ended, in the time of the event loop."""
        now = self._loop.time()
        if now >= self._timer.when() + LATE:  # the timer itself may be behind the caller
            self._last_end = now
            self._timer.cancel()
            self._wait()
        return self._last_end

    def _wait(self) -> None:
        self._timer = self._loop.call_later(INTERVAL, self._check)

    def _check(self) -> None:
        late = self._timer
        self.last_end()
        if self._timer is late:
            self._wait()
