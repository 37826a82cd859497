# SPDX-License-Identifier: GPL-3.0-or-later
"""Event loop in a thread, for servers that run in the process of a test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")

SECONDS = 30.0  # for one piece of work


class LoopThread:
    """Event loop in a thread. ``unhandled``: contexts of the errors that no task of the loop handled."""

    def __init__(self) -> None:
        """Start the thread."""
        self.unhandled: list[dict[str, Any]] = []
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(self._unhandled)
        self._thread = threading.Thread(target=self.loop.run_forever, name="loop", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the loop and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(SECONDS)

    def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function in the loop and return its result."""

        async def call() -> Result:
            return function(*arguments)

        return self.run(call())

    def stop(self) -> None:
        """Stop the loop and its thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()

    def _unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.unhandled.append(context)
        loop.default_exception_handler(context)
