# SPDX-License-Identifier: GPL-3.0-or-later
"""Revisions of the records, and the objects that the latest ones changed.

Every transaction that changes an object gets the next revision. The log is part of the same transaction, so it
survives a restart and never differs from the records. Old revisions are compacted: the log has a bounded number of
changes, in memory and in the database.

A new database starts with the time in milliseconds. A restored one continues with it, or after the revision of the
database that it replaces. No earlier database of the deployment has reached such a revision. So a client never
continues with a revision of another history.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections import deque
from collections.abc import Iterable

from openipu.vipu.domain.history import Changed, Key, Merged, merge
from openipu.vipu.domain.model import Kind

KEPT_CHANGES = 10_000
"""Number of changed objects that the log keeps at least, if there are so many."""

_EXPIRED_ENTRIES = 256  # deleted at once, so that few transactions delete entries


class CompactedError(Exception):
    """Raised when the changes after a revision are not known. ``reason`` is a clause."""

    error_code = "OPU621"

    def __init__(self, revision: int, reason: str = "compacted, its later changes are no longer stored") -> None:
        super().__init__(f"Cannot continue after revision {revision}: {reason}. List again: watch without a revision.")


class DamagedLogError(ValueError):
    """Raised for a log that cannot be read. Its text is a sentence."""


class EventLog:
    """Changed objects of the latest revisions. The caller serialises all access."""

    def __init__(self, compacted: int, history: Iterable[tuple[int, Changed]] = ()) -> None:
        """Start with a history after the revision ``compacted``, oldest first."""
        self.revision = self.compacted = compacted
        self._history: deque[tuple[int, Changed]] = deque()
        self._size = 0
        self._deleted = compacted  # entries before this revision are deleted
        for revision, changed in history:
            self.append(revision, changed)

    def append(self, revision: int, changed: Changed) -> None:
        """Add the next revision, and compact the oldest ones beyond the limit."""
        self.revision = revision
        self._history.append((revision, changed))
        self._size += len(changed)
        while self._size - len(self._history[0][1]) >= KEPT_CHANGES:
            self.compacted, oldest = self._history.popleft()
            self._size -= len(oldest)

    def since(self, revision: int) -> dict[Key, Merged]:
        """Return all changes after a revision. Raises CompactedError, also for a revision of another database."""
        if not self.compacted <= revision <= self.revision:
            raise CompactedError(revision)
        later = []
        for entry in reversed(self._history):
            if entry[0] <= revision:
                break
            later.append(entry)
        return merge(reversed(later))

    def expired(self) -> int:
        """Return a revision before which the store can delete its entries now, 0 for none.

        Its own entry stays: it only marks where the log begins.
        """
        if self.compacted - self._deleted < _EXPIRED_ENTRIES:
            return 0
        self._deleted = self.compacted
        return self._deleted


def write(connection: sqlite3.Connection, events: EventLog, changed: Changed) -> int:
    """Write the next revision in the transaction of its changes, and return it.

    Call ``EventLog.append`` when the transaction is durable.
    """
    revision = events.revision + 1
    connection.execute("INSERT INTO revisions (revision, changes) VALUES (?, ?)", (revision, encode(changed)))
    if expired := events.expired():
        connection.execute("DELETE FROM revisions WHERE revision < ?", (expired,))
    return revision


def load(connection: sqlite3.Connection) -> EventLog:
    """Return the log of a database. Raises DamagedLogError."""
    rows = connection.execute("SELECT revision, changes FROM revisions ORDER BY revision").fetchall()
    if not rows:
        raise DamagedLogError("The log of revisions is empty.")
    (first, _), *later = rows
    events = EventLog(first)
    for revision, changes in later:
        try:
            events.append(revision, decode(changes))
        except ValueError as error:
            raise DamagedLogError(f"Revision {revision} in the log cannot be read: {error}.") from None
    return events


def reset_revisions(connection: sqlite3.Connection, last: int) -> None:
    """Drop the history, because the records are replaced, and continue with a revision that is not yet known.

    ``last``: a revision that was used, 0 if unknown.
    """
    (stored,) = connection.execute("SELECT max(revision) FROM revisions").fetchone()
    set_revision(connection, max((stored or 0) + 1, last + 1, first_revision()))


def set_revision(connection: sqlite3.Connection, revision: int) -> None:
    """Drop the history, and continue with a revision."""
    connection.execute("DELETE FROM revisions")
    connection.execute("INSERT INTO revisions (revision, changes) VALUES (?, '[]')", (revision,))


def first_revision() -> int:
    """Return the first revision of a database that is created now."""
    return time.time_ns() // 1_000_000


def encode(changed: Changed) -> str:
    """Return changed objects as JSON."""
    return json.dumps([(kind, id, scopes) for (kind, id), scopes in changed.items()], separators=(",", ":"))


def decode(text: str | bytes) -> Changed:
    """Return changed objects from JSON. Raises ValueError."""
    try:
        return {(Kind(kind), id): None if scopes is None else tuple(scopes) for kind, id, scopes in json.loads(text)}
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from None
