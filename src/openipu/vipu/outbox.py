# SPDX-License-Identifier: GPL-3.0-or-later
"""Writing what became of partitions, many at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future

import structlog

from openipu.vipu.model import Change, Delete, Kind, Partition, Put, State
from openipu.vipu.ports import Records, StoppedError
from openipu.vipu.store import StoreError

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
        self._alone = 0  # so many of those that wait go one by one, to find out which of them cannot be written

    def put(self, id: str, transition: Transition) -> None:
        """Have a partition changed; nothing happens when it does not exist by then.

        A transition that raises is dropped alone, and told in the log.
        """
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
        most = 1 if self._alone else MOST_AT_ONCE
        batch, self._waiting = self._waiting[:most], self._waiting[most:]
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
        if isinstance(error, StoreError | StoppedError):
            _log.error("progress of partitions not written", partitions=len(batch), reason=str(error))
            self._waiting = batch + self._waiting
            self._loop.call_later(RETRY, self._send)
            return
        if self._alone:
            self._alone -= 1
            if error is not None:
                _log.error("progress of a partition dropped", partition=batch[0][0], exc_info=error)
        elif error is not None:  # of one among them, or of somebody else in the same transaction
            self._waiting = batch + self._waiting
            self._alone = len(batch)
        self._send()


def _changes(state: State, batch: Sequence[tuple[str, Transition]]) -> list[Change]:
    records: dict[str, Partition | None] = {}
    for id, transition in batch:
        current = records.get(id, state.partitions.get(id))
        if current is not None:
            try:
                records[id] = transition(current)
            except Exception:  # noqa: BLE001 - it must not keep back those behind it, now and at every retry
                _log.exception("progress of a partition dropped", partition=id)
    return [
        Put(record) if record else Delete(Kind.PARTITION, id)
        for id, record in records.items()
        if record is not state.partitions.get(id)
    ]
