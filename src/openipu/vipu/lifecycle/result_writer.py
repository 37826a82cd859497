# SPDX-License-Identifier: GPL-3.0-or-later
"""Writer of the results of partition operations, many in one command."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import NamedTuple

import structlog

from openipu.vipu.domain.model import Change, Delete, Kind, Partition, Put
from openipu.vipu.domain.partition_state import MAX_ERRORS
from openipu.vipu.domain.state import State
from openipu.vipu.storage.interface import Records, StoppedError, StoreError

MAX_BATCH = 256  # transitions in one command; bounds how long other commands wait for the writer
RETRY = 1.0  # seconds until a failed write (a full disk) is retried

Transition = Callable[[Partition], Partition | None]
"""Maps the current record to the next one: the same object for no change, None to delete it."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger("vipu-server")


class _Item(NamedTuple):
    """A waiting transition of a partition. ``error``: the loss that it records, if it does."""

    id: str
    transition: Transition
    error: str = ""


class ResultWriter:
    """Queue of transitions for the record writer, in order. Use it in the event loop only.

    One command runs at a time. Transitions that arrive during it are part of the next command.
    """

    def __init__(self, records: Records, loop: asyncio.AbstractEventLoop) -> None:
        self._records = records
        self._loop = loop
        self._waiting: list[_Item] = []
        self._losses: dict[str, set[str]] = {}  # partition -> errors that are not written yet
        self._busy = False
        self._stopped = False
        self._singles = 0  # waiting transitions to write one by one, to find the one that cannot be written

    def put(self, id: str, transition: Transition) -> None:
        """Queue a transition of a partition. It is dropped when the partition does not exist by then.

        A transition that raises is logged and dropped. The others are not affected.
        """
        self._put(_Item(id, transition))

    def put_loss(self, id: str, error: str, transition: Transition) -> bool:
        """Queue a transition that adds an error to a partition. Return False if it waits to be written already.

        Agents report a loss again and again, and a full disk can prevent writing for long. So at most ``MAX_ERRORS``
        wait for a partition.
        """
        waiting = self._losses.setdefault(id, set())
        if error in waiting or len(waiting) >= MAX_ERRORS:
            return False
        waiting.add(error)
        self._put(_Item(id, transition, error))
        return True

    def stop(self) -> None:
        """Send no more commands."""
        self._stopped = True

    def _put(self, item: _Item) -> None:
        self._waiting.append(item)
        if not self._busy:
            self._busy = True
            self._loop.call_soon(self._send)

    def _send(self) -> None:
        if self._stopped:
            return
        limit = 1 if self._singles else MAX_BATCH
        batch, self._waiting = self._waiting[:limit], self._waiting[limit:]
        self._busy = bool(batch)
        if batch:
            future = self._records.submit(lambda state: (_changes(state, batch), None))
            future.add_done_callback(lambda done: self._written(batch, done))

    def _written(self, batch: list[_Item], done: Future[None]) -> None:
        """Handle the result of a command, in the writer thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: the controller has stopped
            self._loop.call_soon_threadsafe(self._sent, batch, done)

    def _sent(self, batch: list[_Item], done: Future[None]) -> None:
        error = done.exception()
        if isinstance(error, StoreError | StoppedError):
            _log.error("cannot write the progress of partitions", partitions=len(batch), reason=str(error))
            self._waiting = batch + self._waiting
            self._loop.call_later(RETRY, self._send)
            return
        if self._singles:
            self._singles -= 1
            if error is not None:
                _log.error("progress of a partition dropped", partition=batch[0].id, exc_info=error)
        elif error is not None:  # caused by one of the batch, or by another command in the transaction
            self._waiting = batch + self._waiting
            self._singles = len(batch)
            self._send()
            return
        for item in batch:
            self._drop_loss(item)
        self._send()

    def _drop_loss(self, item: _Item) -> None:
        waiting = self._losses.get(item.id)
        if waiting is not None and item.error:
            waiting.discard(item.error)
            if not waiting:
                del self._losses[item.id]


def _changes(state: State, batch: Sequence[_Item]) -> list[Change]:
    records: dict[str, Partition | None] = {}
    for id, transition, _ in batch:
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
