# SPDX-License-Identifier: GPL-3.0-or-later
"""Writing what became of partitions, many at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future

import structlog

from openipu.vipu.model import Change, Delete, Kind, Partition, Put, State
from openipu.vipu.ports import Records

MOST_AT_ONCE = 256  # bounds how long the writer is kept from others
RETRY = 1.0  # seconds until a write that failed (a full disk) is tried again

Transition = Callable[[Partition], Partition | None]
"""From the record of that moment to the next one: the same one to change nothing, None to delete it."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger("vipu-server")


class Outbox:
    """Transitions on their way to the writer, in order; belongs to the event loop.

    One command is under way at a time; what comes meanwhile goes with the next one.
    """

    def __init__(self, records: Records, loop: asyncio.AbstractEventLoop) -> None:
        """See the class."""
        self._records = records
        self._loop = loop
        self._waiting: list[tuple[str, Transition]] = []
        self._busy = False
        self._stopped = False

    def put(self, id: str, transition: Transition) -> None:
        """Have a partition changed; nothing happens when it does not exist by then."""
        self._waiting.append((id, transition))
        if not self._busy:
            self._busy = True
            self._loop.call_soon(self._send)

    def stop(self) -> None:
        """Send nothing any more."""
        self._stopped = True

    def _send(self) -> None:
        if self._stopped:
            return
        batch, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
        self._busy = bool(batch)
        if batch:
            future = self._records.submit(lambda state: (_changes(state, batch), None))
            future.add_done_callback(lambda done: self._written(batch, done))

    def _written(self, batch: list[tuple[str, Transition]], done: Future[None]) -> None:
        """Called in the writer thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits for this any more
            self._loop.call_soon_threadsafe(self._sent, batch, done)

    def _sent(self, batch: list[tuple[str, Transition]], done: Future[None]) -> None:
        error = done.exception()
        if error is None:
            self._send()
        else:
            _log.error("progress of partitions not written", partitions=len(batch), reason=str(error))
            self._waiting = batch + self._waiting
            self._loop.call_later(RETRY, self._send)


def _changes(state: State, batch: Sequence[tuple[str, Transition]]) -> list[Change]:
    records: dict[str, Partition | None] = {}
    for id, transition in batch:
        current = records.get(id, state.partitions.get(id))
        if current is not None:
            records[id] = transition(current)
    return [
        Put(record) if record else Delete(Kind.PARTITION, id)
        for id, record in records.items()
        if record is not state.partitions.get(id)
    ]
