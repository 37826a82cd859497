# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls of other threads to coroutines of an event loop. They end with the loop, so that no thread waits forever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from openipu.vipu.storage.interface import StoppedError

_Result = TypeVar("_Result")


class LoopCalls:
    """Coroutines that threads wait for."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run the calls in ``loop``, which must run ``end`` as its last coroutine."""
        self._loop = loop
        self._lock = threading.Lock()
        self._ended = False

    def submit(self, call: Coroutine[Any, Any, _Result]) -> Future[_Result]:
        """Run a coroutine, in any thread. The future fails with StoppedError when the loop ends first."""
        with self._lock:
            if not self._ended:
                return asyncio.run_coroutine_threadsafe(_stoppable(call), self._loop)
        call.close()
        future: Future[_Result] = Future()
        future.set_exception(StoppedError())
        return future

    async def end(self) -> None:
        """Cancel all tasks of the loop, and reject later calls."""
        with self._lock:
            self._ended = True
        for _ in range(2):  # one turn creates the tasks of the last calls, the next one starts them
            await asyncio.sleep(0)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # the threads receive the results


async def _stoppable(call: Coroutine[Any, Any, _Result]) -> _Result:
    try:
        return await call
    except asyncio.CancelledError:
        raise StoppedError from None
