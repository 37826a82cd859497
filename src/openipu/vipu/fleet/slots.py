# SPDX-License-Identifier: GPL-3.0-or-later
"""Limit of concurrent work with many agents, as when a complete hall returns after a power failure."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator


class Slots:
    """Slots for short work, first in, first out. Use it in one event loop.

    Work that takes longer than ``seconds`` continues without its slot. So agents that do not respond delay the others
    by little: at least ``limit / seconds`` agents have their turn per second.
    """

    def __init__(self, limit: int, seconds: float) -> None:
        self._free = asyncio.Semaphore(limit)
        self._seconds = seconds

    @contextlib.asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a slot, and hold it during the body."""
        await self._free.acquire()
        held = True

        def release() -> None:
            nonlocal held
            if held:
                held = False
                self._free.release()

        timer = asyncio.get_running_loop().call_later(self._seconds, release)
        try:
            yield
        finally:
            timer.cancel()
            release()
