# SPDX-License-Identifier: GPL-3.0-or-later
"""The event source in the process of a test, loaded and called as ansible-rulebook does it."""

from __future__ import annotations

import asyncio
import runpy
from typing import Any

from tests import ROOT
from tests.event_loop import LoopThread
from tests.waiting import until

PLUGIN = ROOT / "extensions/eda/plugins/event_source/vipu_events.py"


class Source:
    """A running event source. ``events`` are those that it reported. ``room``: capacity of the queue of the rules."""

    def __init__(self, *, taken: bool = True, room: int = 1, **args: Any) -> None:
        """``taken``: false leaves the events in the queue, as rules that never end do."""
        self.events: list[dict[str, Any]] = []
        self.module = runpy.run_path(str(PLUGIN))
        self.thread = LoopThread()
        self.queue: asyncio.Queue[Any] = self.thread.call(asyncio.Queue, room)
        self._main: asyncio.Task[None] = self.thread.call(self._start, args)
        self._taker: asyncio.Task[None] | None = None
        if taken:
            self.take()

    def _start(self, args: dict[str, Any]) -> asyncio.Task[None]:
        return self.thread.loop.create_task(self.module["main"](self.queue, args))

    def take(self) -> None:
        """Start to take events from the queue."""

        async def run() -> None:
            while True:
                event = await self.queue.get()
                assert set(event) == {"vipu"}
                self.events.append(event["vipu"])

        self._taker = self.thread.call(self.thread.loop.create_task, run())

    def types(self) -> list[tuple[str, str]]:
        """Return type and id of the events."""
        return [(event["type"], event["id"]) for event in list(self.events)]

    def wait(self, type: str, id: str) -> dict[str, Any]:
        """Wait for an event and return it."""

        def found() -> dict[str, Any] | None:
            assert not self._main.done(), self.error()
            return next((each for each in list(self.events) if (each["type"], each["id"]) == (type, id)), None)

        event: dict[str, Any] = until(found, what=lambda: f"{type} {id} not in {self.types()}")
        return event

    def error(self) -> BaseException | None:
        """Wait until the source ends by itself, and return its error."""
        until(self._main.done)
        return self._main.exception()

    def stop(self) -> None:
        """Cancel the source, as ansible-rulebook does at its end."""

        async def cancel() -> None:
            tasks = [each for each in (self._main, self._taker) if each is not None]
            self._main.cancel()
            await asyncio.gather(self._main, return_exceptions=True)
            while self._taker is not None and not self.queue.empty():
                await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        if self.thread.loop.is_closed():
            return
        self.thread.run(cancel())
        self.thread.stop()
        assert self.thread.unhandled == []
