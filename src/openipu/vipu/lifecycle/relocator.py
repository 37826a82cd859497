# SPDX-License-Identifier: GPL-3.0-or-later
"""Relocation of partitions that wait for free IPUs."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future

import structlog

from openipu.vipu.domain import partition_state
from openipu.vipu.domain.model import Change, Partition, Put
from openipu.vipu.domain.state import State
from openipu.vipu.storage.interface import Records

INTERVAL = 1.0  # seconds between two searches

_log: structlog.stdlib.BoundLogger = structlog.get_logger("vipu-server")


class Relocator:
    """Partitions that wait for other IPUs, in order. Use it in the event loop only.

    One command searches for all of them, at most once in INTERVAL seconds. So the cost does not grow with the number
    of agents that come up or partitions that are removed at the same time.
    """

    def __init__(
        self,
        records: Records,
        loop: asyncio.AbstractEventLoop,
        unavailable: Callable[[], frozenset[str]],
        quarantined: Callable[[], Mapping[str, int]],
    ) -> None:
        """``unavailable`` returns the agents that are Down, ``quarantined`` the IPUs in quarantine, in any thread."""
        self._records = records
        self._loop = loop
        self._unavailable = unavailable
        self._quarantined = quarantined
        self._waiting: dict[str, Partition] = {}
        self._scheduled = False  # or running
        self._again = False  # IPUs may have become free since the running search began
        self._next = 0.0  # time of the event loop

    def add(self, record: Partition) -> None:
        """Move a partition as soon as IPUs are free."""
        self._waiting[record.id] = record
        self.search()

    def discard(self, id: str) -> None:
        """Move this partition no more."""
        self._waiting.pop(id, None)

    def search(self) -> None:
        """Search for free IPUs soon, because some may have become free."""
        self._again = True
        if not self._scheduled and self._waiting:
            self._scheduled = True
            self._loop.call_at(max(self._next, self._loop.time()), self._submit)

    def _submit(self) -> None:
        self._again = False
        self._next = self._loop.time() + INTERVAL
        records = list(self._waiting.values())
        submitted = self._records.submit(lambda state: self._relocations(state, records))
        submitted.add_done_callback(self._committed)

    def _relocations(self, state: State, records: Sequence[Partition]) -> tuple[Sequence[Change], list[str]]:
        unavailable = self._unavailable()
        current = [record for record in records if self._must_move(state, record, unavailable)]
        moved = partition_state.relocations(state, current, unavailable, self._quarantined(), time.time())
        return [Put(record) for record in moved], [record.id for record in moved]

    def _must_move(self, state: State, record: Partition, unavailable: frozenset[str]) -> bool:
        """Return whether a record has not changed, and an agent of it is still Down."""
        return state.partitions.get(record.id) is record and any(
            agent in unavailable for agent, _ in state.machines_of(record)
        )

    def _committed(self, done: Future[list[str]]) -> None:
        """Handle the end of a command, in the writer thread."""
        if error := done.exception():
            _log.error("partitions not relocated", reason=str(error))
        else:
            for id in done.result():
                _log.info("partition relocated", partition=id)
        with contextlib.suppress(RuntimeError):  # the loop is closed: the controller has stopped
            self._loop.call_soon_threadsafe(self._searched, error is not None)

    def _searched(self, failed: bool) -> None:
        self._scheduled = False
        if self._again or failed:
            self.search()
