# SPDX-License-Identifier: GPL-3.0-or-later
"""Writer of the results of partition operations, many in one command."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future

import structlog

from openipu.vipu.domain.model import Change, Delete, Kind, Partition, Put
from openipu.vipu.domain.state import State
from openipu.vipu.storage.interface import Records, StoppedError
from openipu.vipu.storage.store import StoreError

MAX_BATCH = 256  # transitions in one command; bounds how long other commands wait for the writer
RETRY = 1.0  # seconds until a failed write (a full disk) is retried

Transition = Callable[[Partition], Partition | None]
"""Maps the current record to the next one: the same object for no change, None to delete it."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger("vipu-server")


class ResultWriter:
    """Queue of transitions for the record writer, in order. Use it in the event loop only.

    One command runs at a time. Transitions that arrive during it are part of the next command.
    """

    def __init__(self, records: Records, loop: asyncio.AbstractEventLoop) -> None:
        self._records = records
        self._loop = loop
        self._waiting: list[tuple[str, Transition]] = []
        self._busy = False
        self._stopped = False
        self._singles = 0  # waiting transitions to write one by one, to find the one that cannot be written

    def put(self, id: str, transition: Transition) -> None:
        """Queue a transition of a partition. It is dropped when the partition does not exist by then.

        A transition that raises is logged and dropped. The others are not affected.
        """
        self._waiting.append((id, transition))
        if not self._busy:
            self._busy = True
            self._loop.call_soon(self._send)

    def stop(self) -> None:
        """Send no more commands."""
        self._stopped = True

    def _send(self) -> None:
        if self._stopped:
            return
        limit = 1 if self._singles else MAX_BATCH
        batch, self._waiting = self._waiting[:limit], self._waiting[limit:]
        self._busy = bool(batch)
        if batch:
            future = self._records.submit(lambda state: (_changes(state, batch), None))
            future.add_done_callback(lambda done: self._written(batch, done))

    def _written(self, batch: list[tuple[str, Transition]], done: Future[None]) -> None:
        """Handle the result of a command, in the writer thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: the controller has stopped
            self._loop.call_soon_threadsafe(self._sent, batch, done)

    def _sent(self, batch: list[tuple[str, Transition]], done: Future[None]) -> None:
        error = done.exception()
        if isinstance(error, StoreError | StoppedError):
            _log.error("cannot write the progress of partitions", partitions=len(batch), reason=str(error))
            self._waiting = batch + self._waiting
            self._loop.call_later(RETRY, self._send)
            return
        if self._singles:
            self._singles -= 1
            if error is not None:
                _log.error("progress of a partition dropped", partition=batch[0][0], exc_info=error)
        elif error is not None:  # caused by one of the batch, or by another command in the transaction
            self._waiting = batch + self._waiting
            self._singles = len(batch)
        self._send()


def _changes(state: State, batch: Sequence[tuple[str, Transition]]) -> list[Change]:
    records: dict[str, Partition | None] = {}
    for id, transition in batch:
        current = records.get(id, state.partitions.get(id))
        if current is not None:
            try:
                records[id] = transition(current)
            except Exception:  # noqa: BLE001 - one error must not block the transitions queued behind it
                _log.exception("progress of a partition dropped", partition=id)
    return [
        Put(record) if record else Delete(Kind.PARTITION, id)
        for id, record in records.items()
        if record is not state.partitions.get(id)
    ]
