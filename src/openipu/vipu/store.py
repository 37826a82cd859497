# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's records in a SQLite database: one file, one process, every transaction on disk."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from openipu.vipu import invariants, migrations, store_rows
from openipu.vipu.model import Change, Delete, Kind, Partition, Put, State


class StoreError(Exception):
    """The database cannot be opened, read or written; one sentence that says why."""


class Store:
    """The database of one controller, which alone may write it while this is open.

    ``load`` first; then one ``transaction`` at a time, from one thread at a time.
    """

    def __init__(self, path: Path, *, create: bool = False) -> None:
        """Open a database, and bring it to the version of this release; raises StoreError.

        With ``create`` a missing one is made, readable by its owner only.
        """
        self.path = path
        self._partitions: dict[str, Partition] = {}  # as they stand in the database
        if not create and not path.exists():
            raise StoreError(
                f"There is no database {str(path)!r}; create it with 'vipu-server --init --database {path}'."
            )
        try:
            self._lock = lock(path)
        except OSError as error:
            raise StoreError(f"Cannot open database {str(path)!r}: {error.strerror}.") from None
        try:
            self._connection = self._open(create)
        except StoreError:
            self._lock.close()
            raise

    def _open(self, create: bool) -> sqlite3.Connection:
        try:
            # Made here and not by SQLite, so that nobody else can read it at any moment.
            os.close(os.open(self.path, os.O_RDWR | (os.O_CREAT if create else 0), 0o600))
            connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        except OSError as error:
            raise StoreError(f"Cannot open database {str(self.path)!r}: {error.strerror}.") from None
        except sqlite3.Error as error:
            raise StoreError(f"Cannot open database {str(self.path)!r}: {error}.") from None
        try:
            if not create and migrations.version(connection) is None:
                raise StoreError(
                    f"Database {str(self.path)!r} is empty; create it with 'vipu-server --init --database {self.path}'."
                )
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            migrations.upgrade(connection)
            connection.execute("PRAGMA foreign_keys = ON")
        except migrations.UnknownVersionError as error:
            connection.close()
            raise StoreError(
                f"Database {str(self.path)!r} was written by a newer release (version {error}, "
                f"this one knows {migrations.HEAD}); start that release, or restore an older backup."
            ) from None
        except sqlite3.Error as error:
            connection.close()
            raise StoreError(f"Cannot use database {str(self.path)!r}: {error}.") from None
        except StoreError:
            connection.close()
            raise
        return connection

    def load(self) -> State:
        """All records; raises StoreError when they do not make sense together."""
        try:
            records = list(store_rows.read(self._connection))
        except (sqlite3.Error, LookupError, ValueError, TypeError, ZeroDivisionError) as error:
            raise StoreError(f"Cannot read database {str(self.path)!r}: {error}; restore a backup.") from None
        state, wrong = invariants.rebuild(records)
        if wrong:
            more = f" (and {len(wrong) - 1} more faults)" if len(wrong) > 1 else ""
            raise StoreError(f"Database {str(self.path)!r} is damaged: {wrong[0][:-1]}{more}; restore a backup.")
        self._partitions = dict(state.partitions)
        return state

    def transaction(self) -> Transaction:
        """An empty transaction, which touches the database when it is committed."""
        return Transaction(self._connection, self._partitions)

    def close(self) -> None:
        """Write everything into the one file and let go of it."""
        self._connection.close()
        self._lock.close()


class Transaction:
    """Changes that are written together, in the order in which they came."""

    def __init__(self, connection: sqlite3.Connection, partitions: dict[str, Partition]) -> None:
        """Write to a connection, whose partitions are at present those."""
        self._connection = connection
        self._stored = partitions
        self._pending: dict[str, Partition | None] = {}
        # Runs of changes of the same sort, each object once in a run, so that a run is a few statements.
        self._runs: list[tuple[type[Change], Kind, dict[str, Any]]] = []

    def add(self, changes: Sequence[Change], state: State) -> None:
        """Take over changes that have just been applied to ``state``."""
        for change in changes:
            if isinstance(change, Delete):
                if change.kind is Kind.PARTITION:
                    self._pending[change.id] = None
                self._append(Delete, change.kind, change.id, None)
            else:
                record = change.record
                value = self._partition(record, state) if isinstance(record, Partition) else record
                self._append(Put, record.kind, record.id, value)

    def _append(self, sort: type[Change], kind: Kind, id: str, value: Any) -> None:
        if not self._runs or self._runs[-1][:2] != (sort, kind) or id in self._runs[-1][2]:
            self._runs.append((sort, kind, {}))
        self._runs[-1][2][id] = value

    def _partition(self, record: Partition, state: State) -> tuple[Partition, Partition | None, list[store_rows.Place]]:
        old = self._pending[record.id] if record.id in self._pending else self._stored.get(record.id)
        self._pending[record.id] = record
        in_place = old is not None and old.ipus is record.ipus and old.devices is record.devices
        # Found out now: its cluster may be gone at the end of the transaction, together with it.
        return record, old, [] if in_place else list(state.machines_of(record))

    def commit(self) -> None:
        """Write everything and have it on disk; raises StoreError, and then nothing is written.

        Nor is it when anything else is raised (a record that the database cannot take, out of memory).
        """
        if not self._runs:
            return
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            for sort, kind, items in self._runs:
                if sort is Delete:
                    store_rows.delete(connection, kind, list(items))
                else:
                    _PUT[kind](connection, list(items.values()))
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back(error)
            raise StoreError(f"Cannot write to the database: {error}; nothing was changed.") from error
        except BaseException as error:
            self._roll_back(error)
            raise
        for id, partition in self._pending.items():
            if partition is None:
                self._stored.pop(id, None)
            else:
                self._stored[id] = partition

    def _roll_back(self, error: BaseException) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error as worse:
            raise StoreError(f"Cannot write to the database: {error}, and then {worse}.") from worse


_PUT: dict[Kind, Any] = {
    Kind.AGENT: store_rows.put_agents,
    Kind.CLUSTER: store_rows.put_clusters,
    Kind.ALLOCATION: store_rows.put_allocations,
    Kind.PARTITION: store_rows.put_partitions,
    Kind.USER: store_rows.put_users,
}


def lock(path: Path) -> BinaryIO:
    """Keep other processes away from a database as long as the file given back is open; raises StoreError, OSError.

    The lock stands beside the database: closing any descriptor of the file itself would drop the
    locks that SQLite holds on it.
    """
    file = os.fdopen(os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600), "rb+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise StoreError(
            f"Database {str(path)!r} is in use by another vipu-server; stop that one, or give another --database."
        ) from None
    return file
