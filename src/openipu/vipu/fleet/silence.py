# SPDX-License-Identifier: GPL-3.0-or-later
"""Timeout for messages that should arrive regularly."""

from __future__ import annotations

import asyncio
from types import TracebackType

LATE = 0.5  # seconds after the timeout from which the event loop, not the sender, is late


class Silence:
    """Async context manager that ends its body with TimeoutError after ``seconds`` without a message.

    A message only stores its time, so that the heartbeats of a thousand agents cost no timers. When the event loop
    itself was late (a paused process or virtual machine), messages may be waiting, and the sender has the time once
    more.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._scope = asyncio.timeout(None)

    async def __aenter__(self) -> Silence:
        """Start the first interval."""
        self._loop = asyncio.get_running_loop()
        await self._scope.__aenter__()
        self.restart()
        self._wait()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the timer. Raises TimeoutError when it has ended the body."""
        self._timer.cancel()
        await self._scope.__aexit__(kind, error, trace)

    def restart(self) -> None:
        """Count a message: the interval starts again."""
        self._last = self._loop.time()

    def _wait(self) -> None:
        self._timer = self._loop.call_at(self._last + self._seconds, self._check)

    def _check(self) -> None:
        now = self._loop.time()
        if now >= self._timer.when() + LATE:
            self._last = now
        if now < self._last + self._seconds:
            self._wait()
        else:
            self._scope.reschedule(now)
