# SPDX-License-Identifier: GPL-3.0-or-later
"""Queue of keys. Each key is handled by one task at a time, and again when it was added meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

import structlog

_log = structlog.get_logger("openipu.kubernetes.cluster.work_queue")

_Key = TypeVar("_Key", bound=Hashable)

_FIRST_RETRY, _LAST_RETRY = 0.1, 60.0  # seconds


class RetryLaterError(Exception):
    """Raised by a handler whose key must be handled again after a pause, although nothing has failed.

    ``seconds``: shortest pause, also for a key that is added meanwhile.
    """

    error_code = "OPU900"

    def __init__(self, message: str, seconds: float = 0.0) -> None:
        super().__init__(message)
        self.seconds = seconds


class WorkQueue(Generic[_Key]):
    """Keys to handle. ``handle`` returns seconds after which the key is due again, or None.

    A key whose handler fails is due again, after pauses that grow to a minute.
    """

    def __init__(self, handle: Callable[[_Key], Awaitable[float | None]], workers: int = 16) -> None:
        self._handle = handle
        self._workers = workers
        self._ready: asyncio.Queue[_Key] = asyncio.Queue()
        self._waiting: set[_Key] = set()  # in ``_ready``
        self._active: dict[_Key, float] = {}  # -> when its handler started
        self._again: set[_Key] = set()  # added while active
        self._timers: dict[_Key, asyncio.TimerHandle] = {}
        self._paused: dict[_Key, float] = {}  # -> earliest time of its next turn, by the clock of the loop
        self._failures: dict[_Key, int] = {}
        self._moved = 0.0  # when a handler last started or ended, or the first key was added

    def __len__(self) -> int:
        return len(self._waiting) + len(self._active)

    @property
    def stalled_seconds(self) -> float:
        """Seconds for which keys have waited while no handler started or ended. 0 if no key waits."""
        return time.monotonic() - self._moved if self._waiting else 0.0

    @property
    def longest_seconds(self) -> float:
        """Seconds since the start of the handler that has run longest. 0 if none runs."""
        return time.monotonic() - min(self._active.values()) if self._active else 0.0

    def add(self, key: _Key) -> None:
        """Handle a key soon. Call it in the event loop."""
        if key in self._paused:
            self.add_later(key, 0.0)
            return
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        if key in self._active:
            self._again.add(key)
        elif key not in self._waiting:
            if not self._waiting:
                self._moved = time.monotonic()
            self._waiting.add(key)
            self._ready.put_nowait(key)

    def add_later(self, key: _Key, seconds: float) -> None:
        """Handle a key after some time, unless it is handled earlier."""
        loop = asyncio.get_running_loop()
        when = max(loop.time() + seconds, self._paused.get(key, 0.0))
        known = self._timers.get(key)
        if known is not None:
            if known.when() <= when:
                return
            known.cancel()
        self._timers[key] = loop.call_at(when, self._end_pause, key)

    def _end_pause(self, key: _Key) -> None:
        self._paused.pop(key, None)
        self.add(key)

    async def run(self) -> None:
        """Handle keys until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(self._workers):
                    tasks.create_task(self._work())
        finally:
            for timer in self._timers.values():
                timer.cancel()
            self._timers.clear()

    async def _work(self) -> None:
        while True:
            key = await self._ready.get()
            self._waiting.discard(key)
            self._active[key] = self._moved = time.monotonic()
            try:
                due = await self._handle(key)
                self._failures.pop(key, None)
            except Exception as error:  # noqa: BLE001 - one key must not stop the others
                failures = self._failures[key] = self._failures.get(key, 0) + 1
                due = min(_FIRST_RETRY * 2 ** min(failures - 1, 16), _LAST_RETRY)
                if isinstance(error, RetryLaterError):
                    pause = min(error.seconds, _LAST_RETRY)
                    due = max(due, pause)
                    if pause > 0:
                        self._paused[key] = asyncio.get_running_loop().time() + pause
                else:
                    name = "/".join(key) if isinstance(key, tuple) else str(key)
                    text = str(error) or type(error).__name__
                    _log.warning("handler failed", key=name, error=text, retry_seconds=due)
            finally:
                del self._active[key]
                self._moved = time.monotonic()
            if key in self._again:
                self._again.discard(key)
                self.add(key)
            elif due is not None:
                self.add_later(key, due)
