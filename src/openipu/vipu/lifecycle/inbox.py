# SPDX-License-Identifier: GPL-3.0-or-later
"""Committed changes, from the writer thread to their handler in the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Sequence

import structlog

from openipu.vipu.domain.model import Change, Delete, Kind, Put
from openipu.vipu.storage.interface import Records

FIRST_RETRY = 1.0  # seconds until a change whose handler raised is handled again; doubled with every failure
LONGEST_RETRY = 60.0

Handler = Callable[[Change, float], None]
"""Receiver of a change and of the time of its commit. It must accept the same change again."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger("vipu-server")


class Inbox:
    """Queue of committed changes, which are handled one by one.

    When the handler raises, the error is logged, and the other changes are handled. The object is handled again
    later, with its record of that time.
    """

    def __init__(self, records: Records, loop: asyncio.AbstractEventLoop, handle: Handler) -> None:
        self._records = records
        self._loop = loop
        self._handle = handle
        self._waiting: deque[tuple[float, Sequence[Change]]] = deque()  # with the time of the commit
        self._scheduled = False  # a read is
        self._stopped = False

    def put(self, changes: Sequence[Change]) -> None:
        """Queue the changes of a commit, in any thread."""
        self._waiting.append((time.monotonic(), changes))
        if not self._scheduled and not self._stopped:
            self._scheduled = True
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._read)

    def stop(self) -> None:
        """Handle no more changes."""
        self._stopped = True

    def handle(self, change: Change) -> None:
        """Handle a change at once, in the event loop."""
        self._attempt(change, time.monotonic(), 0)

    def _read(self) -> None:
        self._scheduled = False
        while self._waiting:
            committed, changes = self._waiting.popleft()
            for change in changes:
                self._attempt(change, committed, 0)

    def _attempt(self, change: Change, committed: float, failures: int) -> None:
        try:
            self._handle(change, committed)
        except Exception:  # noqa: BLE001 - one change must not affect the others
            subject = change if isinstance(change, Delete) else change.record
            kind, id = subject.kind, subject.id
            delay = min(FIRST_RETRY * 2**failures, LONGEST_RETRY)
            _log.exception("committed change not handled", kind=str(kind), id=id, retry_seconds=delay)
            self._loop.call_later(delay, self._retry, kind, id, failures + 1)

    def _retry(self, kind: Kind, id: str, failures: int) -> None:
        if not self._stopped:
            record = self._records.state.table(kind).get(id)
            self._attempt(Put(record) if record else Delete(kind, id), time.monotonic(), failures)
