# SPDX-License-Identifier: GPL-3.0-or-later
"""Network in front of a controller, in which a fault begins with one change: its client receives no result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.event_loop import LoopThread
from tests.integration.faults.relay import relay

Fault = Callable[[], object]


class LostReply:
    """Relay to a controller with a fault at the first request of a method."""

    def __init__(self, target: str, method: str, before: Fault | None = None, after: Fault | None = None) -> None:
        """``before`` runs before the request is sent, and ``after`` afterwards, while replies are lost."""
        self._method, self._before, self._after = method.encode(), before, after
        self.happened = False
        self._loop = LoopThread()
        self.address = f"127.0.0.1:{self._loop.run(relay(target, lambda client: self._copy))}"

    def close(self) -> None:
        self._loop.stop()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy bytes of one direction until one side closes the connection, then close the other."""
        try:
            while data := await reader.read(1 << 16):
                begins = not self.happened and self._method in data
                if self.happened and self._after:
                    continue
                self.happened = self.happened or begins
                if begins and self._before:
                    await asyncio.to_thread(self._before)
                writer.write(data)
                await writer.drain()
                if begins and self._after:
                    await asyncio.to_thread(self._after)
        except ConnectionError:
            pass
        finally:
            writer.close()
