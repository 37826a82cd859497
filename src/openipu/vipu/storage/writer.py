# SPDX-License-Identifier: GPL-3.0-or-later
"""Single writer of all records: every change is durable before it is visible."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog

from openipu.vipu.domain.history import changed_objects
from openipu.vipu.domain.model import Change, Delete, Partition
from openipu.vipu.domain.state import State
from openipu.vipu.metrics.catalog import CONTROLLER
from openipu.vipu.metrics.meters import Meters
from openipu.vipu.storage.event_log import EventLog
from openipu.vipu.storage.interface import Command, RecordStore, Result, StoppedError, StoreError, Transaction

Item = TypeVar("Item")

_log = structlog.get_logger("openipu.vipu.storage.writer")

_MAX_BATCH = 512  # bounds the time that the first caller of a batch waits for the last one
_MAX_LOGGED = 8  # changes of one transaction in the log
_IDLE_CHECK = 5.0  # seconds without commands until the writer verifies and flushes the store


@dataclass(slots=True)
class _Task:
    command: Command[Any]
    future: Future[Any]


class RecordWriter:
    """Records, and the only thread that changes them.

    Commands that wait at the same time share a transaction, so many callers share one flush of the
    disk. Each command sees the changes of earlier ones. Readers see durable changes only.
    """

    def __init__(self, store: RecordStore) -> None:
        """Read all records and begin an epoch; raises StoreError."""
        self._store = store
        self._committed = store.load()
        self.deployment = store.begin_epoch()
        self._working = self._committed.copy()
        self._events = store.events
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._callbacks: list[Callable[[Sequence[Change]], None]] = []
        self._loss_callbacks: list[Callable[[], None]] = []
        self.meters = Meters(CONTROLLER)
        self._commits = self.meters.histogram("vipu_store_commit_duration_seconds")
        self._failures = self.meters.counter("vipu_store_commit_failures_total")
        self._changes = self.meters.counter("vipu_store_changes_total")
        self._lock = threading.Lock()
        self._submitting = threading.Lock()
        self._stopped = False
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    @property
    def state(self) -> State:
        """Committed records. Single lookups and ``list(table.values())`` need no lock."""
        return self._committed

    @property
    def events(self) -> EventLog:
        """Log of the committed revisions. Use it inside ``reading``, whose records have its last revision."""
        return self._events

    @property
    def waiting(self) -> int:
        """Number of commands that wait for the writer now."""
        return self._tasks.qsize()

    @contextlib.contextmanager
    def reading(self) -> Iterator[State]:
        """Return a context for consistent reads of the committed records, which blocks commits: keep it short."""
        with self._lock:
            yield self._committed

    def start(self) -> None:
        """Start the writer thread."""
        self._thread.start()

    def stop(self) -> None:
        """Finish all submitted commands, end the writer thread and close the store. Repeated calls have no effect."""
        with self._submitting:
            self._stopped = True
            self._tasks.put(None)
        if self._thread.is_alive():
            self._thread.join()
        with self._submitting:
            if not self._closed:
                self._closed = True
                self._store.close()

    def submit(self, command: Command[Result]) -> Future[Result]:
        """Run a command in the writer thread; the future is done when its changes are durable.

        It fails with the exception of the command, which then changes nothing. It fails with StoreError
        when the changes could not be written, and with StoppedError after ``stop``.
        """
        future: Future[Result] = Future()
        with self._submitting:
            if not self._stopped:
                self._tasks.put(_Task(command, future))
                return future
        future.set_exception(StoppedError())
        return future

    def subscribe(self, callback: Callable[[Sequence[Change]], None]) -> None:
        """Register a callback for the changes of each commit, in the writer thread, before its futures are done.

        It must return at once and not raise.
        """
        self._callbacks.append(callback)

    def on_loss(self, callback: Callable[[], None]) -> None:
        """Register a callback for the loss of the database file, in the writer thread. It must not raise."""
        self._loss_callbacks.append(callback)

    def _run(self) -> None:
        count = 0
        stopping = False
        while not stopping:
            try:
                first = self._tasks.get(timeout=_IDLE_CHECK)
            except queue.Empty:
                self._store.flush()
                self._check_file()
                continue
            tasks = take_group(self._tasks, first, count, self._store.group_seconds)
            count = len(tasks)
            stopping = tasks[-1] is None
            self._commit([task for task in tasks if task and task.future.set_running_or_notify_cancel()])

    def _commit(self, tasks: list[_Task]) -> None:
        transaction = self._store.transaction()
        changes: list[Change] = []
        done: list[tuple[_Task, Any]] = []
        failed: list[tuple[_Task, Exception]] = []
        try:
            for task in tasks:
                try:
                    made, result = task.command(self._working)
                except Exception as error:  # noqa: BLE001 - passed on to the caller
                    failed.append((task, error))
                else:
                    self._apply(made, transaction)
                    changes += made
                    done.append((task, result))
            start = time.perf_counter()
            changed = changed_objects(self._committed, self._working, changes)
            transaction.log(self._events, changed)
            revision = transaction.commit()
        except Exception as error:  # noqa: BLE001 - the writer must not end
            self._working = self._committed.copy()
            for task in tasks:
                task.future.set_exception(error)
            self._failures.inc()
            _log.error("transaction failed", error=str(error), commands=len(tasks))
            if self._store.lost:
                self._report_loss()
            return
        committed = time.perf_counter()
        if changes:
            with self._lock:
                self._committed.apply(changes)
                if revision:
                    self._events.append(revision, changed)
            self._notify(changes)
        for task, result in done:
            task.future.set_result(result)
        for task, reason in failed:
            task.future.set_exception(reason)
        if changes:
            self._commits.observe(committed - start)
            self._changes.inc(len(changes))
            # The services log the requests and their users.
            _log.debug("committed", changes=_summary(changes))

    def _check_file(self) -> None:
        """Detect the loss of the database file without a transaction."""
        known = self._store.lost
        try:
            self._store.verify()
        except StoreError as error:
            self._failures.inc()  # each time, so that the alert continues
            if not known:
                _log.error("database lost", error=str(error))
                self._report_loss()

    def _report_loss(self) -> None:
        for callback in self._loss_callbacks:
            callback()

    def _apply(self, changes: Sequence[Change], transaction: Transaction) -> None:
        if changes:
            self._working.apply(changes)
            transaction.add(changes, self._working)

    def _notify(self, changes: Sequence[Change]) -> None:
        for callback in self._callbacks:
            try:
                callback(changes)
            except Exception:  # noqa: BLE001 - the writer must not end
                _log.exception("subscriber failed")


def take_group(
    waiting: queue.SimpleQueue[Item | None], first: Item | None, count: int, seconds: float
) -> list[Item | None]:
    """Return ``first`` and the items that wait, as far as the first None, which is the last one.

    With fewer than ``count`` items, wait up to ``seconds`` for more. ``count`` is the size of the last group, whose
    callers received their results at the same moment, and come back one after the other.
    """
    group = [first]
    end = time.monotonic() + seconds
    while group[-1] is not None and len(group) < _MAX_BATCH:
        left = end - time.monotonic() if len(group) < count else 0.0
        try:
            group.append(waiting.get(timeout=left) if left > 0 else waiting.get_nowait())
        except queue.Empty:
            break
    return group


def _summary(changes: Sequence[Change]) -> list[str]:
    """Return a few words for each of the first changes, and the number of the others."""
    words = []
    for change in changes[:_MAX_LOGGED]:
        if isinstance(change, Delete):
            words.append(f"{change.kind} {change.id} removed")
        elif isinstance(change.record, Partition):
            record = change.record
            words.append(f"partition {record.id} {record.ready.name} {record.operation.name}")
        else:
            words.append(f"{change.record.kind} {change.record.id}")
    if len(changes) > _MAX_LOGGED:
        words.append(f"{len(changes) - _MAX_LOGGED} more")
    return words
