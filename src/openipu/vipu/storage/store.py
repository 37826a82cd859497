# SPDX-License-Identifier: GPL-3.0-or-later
"""SQLite database of the controller's records: one file, one process, durable transactions.

The embedded implementation of ``interface.RecordStore``.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openipu.vipu.domain import invariants
from openipu.vipu.domain.deployment import Deployment
from openipu.vipu.domain.history import Changed
from openipu.vipu.domain.model import Change, Delete, Kind, Partition, Put
from openipu.vipu.domain.state import State
from openipu.vipu.storage import checksums, deployment, event_log, migrations, rows
from openipu.vipu.storage.database_file import DatabaseFile
from openipu.vipu.storage.event_log import EventLog
from openipu.vipu.storage.interface import StoreError
from openipu.vipu.storage.last_revision import SUFFIX, LastRevision
from openipu.vipu.storage.position import UNKNOWN, Position

__all__ = ["Store", "StoreError", "Transaction"]


class Store:
    """Database of one controller, locked for exclusive writing while open.

    Call ``load`` first. Then use one ``transaction`` at a time, from one thread at a time. ``events`` is the log
    of its revisions, which transactions write and the writer keeps up to date.
    """

    events: EventLog
    group_seconds = 0.0  # a flush of a local database ends sooner than its callers come back

    def __init__(self, path: Path, *, create: bool = False) -> None:
        """Open a database and migrate it to the version of this release; raises StoreError.

        With ``create``, a missing database is created, readable by its owner only.
        """
        self.path = path
        self._stored = Stored()
        self._last = LastRevision(path)
        self._lost = ""  # reason why the file is lost
        try:
            self._file = DatabaseFile(path, create=create)
        except OSError as error:
            raise _open_error(path, error, create=create) from None
        try:
            self._connection = self._open(create)
        except StoreError:
            self._file.close()
            raise

    def _open(self, create: bool) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise StoreError(f"Cannot open database {str(self.path)!r}: {error}.") from None
        try:
            if not create and migrations.version(connection) is None:
                raise StoreError(
                    f"Cannot open database {str(self.path)!r}: it is empty. "
                    f"Create it with 'vipu-server --init --database {self.path}'."
                )
            result = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if result != "ok":
                raise self._damaged([f"The check of SQLite failed: {result}."])
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            migrations.upgrade(connection)
            connection.execute("PRAGMA foreign_keys = ON")
            self._file.pin()
        except migrations.UnknownVersionError as error:
            connection.close()
            raise StoreError(
                f"Cannot open database {str(self.path)!r}: it was written by a newer release (version {error}, "
                f"this release supports {migrations.HEAD}). Start that release, or restore an older backup."
            ) from None
        except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite quotes damaged bytes in its messages
            connection.close()
            raise StoreError(
                f"Cannot use database {str(self.path)!r}: {error}. "
                "Check the disk and the path. If the file is damaged, restore a backup."
            ) from None
        except OSError as error:
            connection.close()
            raise _open_error(self.path, error) from None
        except StoreError:
            connection.close()
            raise
        return connection

    def load(self) -> State:
        """Return the state of all records, each verified; raises StoreError when they are damaged."""
        try:
            records = list(rows.read(self._connection))
            sums = checksums.of_records(records)
            new = checksums.stored_total(self._connection) is None
            wrong = deployment.faults(self._connection) or ([] if new else sums.faults(self._connection))
            self.events = event_log.load(self._connection)
        except event_log.DamagedLogError as error:
            raise self._damaged([str(error)]) from None
        except LookupError as error:
            raise self._damaged([f"A record refers to {error}, which is missing."]) from None
        except (sqlite3.Error, ArithmeticError, TypeError, ValueError, RecursionError) as error:
            raise self._damaged([f"A record cannot be read: {error}."]) from None
        if wrong:
            raise self._damaged(wrong)
        state, wrong = invariants.rebuild(records)
        if wrong:
            raise self._damaged(wrong)
        if new:
            try:
                sums.store(self._connection)
            except sqlite3.Error as error:
                raise StoreError(f"Cannot write to database {str(self.path)!r}: {error}.") from None
        self._begin_revisions()
        self._stored = Stored(dict(state.partitions), sums)
        return state

    def _begin_revisions(self) -> None:
        """Raise StoreError when the last transactions are lost."""
        revision, name = self.events.revision, str(self._last.path)
        try:
            last = self._last.read()
            if last > revision:
                raise StoreError(
                    f"Cannot read database {str(self.path)!r}: it is damaged. Its last changes are lost: it ends with "
                    f"revision {revision}, but revision {last} was committed. Restore a backup, or remove the file "
                    f"with suffix {SUFFIX!r} to accept the loss."
                )
            self._last.begin(revision)
        except OSError as error:
            raise StoreError(f"Cannot use file {name!r}: {str(error.strerror).lower()}. Check the path.") from None

    def reset_revisions(self, after: Position = UNKNOWN) -> None:
        """Drop the revisions of a database that replaces another one, and mark it as restored; raises StoreError.

        ``after``: position of the replaced database. The time alone is not enough, since a clock may be set back.
        """
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            event_log.reset_revisions(self._connection, after.revision)
            deployment.mark_restored(self._connection, time.time(), after.epoch)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise StoreError(f"Cannot write to the database: {error}. Nothing was changed. Check the disk.") from error

    def deployment_id(self) -> str:
        """Return the id of the deployment; raises sqlite3.Error."""
        return deployment.read_id(self._connection)

    def identity(self) -> Deployment:
        """Return the identity with the last epoch; raises StoreError."""
        try:
            return deployment.read(self._connection)
        except sqlite3.Error as error:
            raise self._damaged([f"Its identity cannot be read: {error}."]) from None

    def set_identity(self, identity: Deployment, revision: int) -> None:
        """Set the identity of a new database, and its only revision; raises StoreError."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            deployment.write(self._connection, identity)
            event_log.set_revision(self._connection, revision)
            self._connection.execute("COMMIT")
            self._last.begin(revision)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"Cannot write to database {str(self.path)!r}: {error}.") from None
        self.events = EventLog(revision)

    def begin_epoch(self) -> Deployment:
        """Return the identity of a starting controller, with an epoch of its own; raises StoreError."""
        try:
            return deployment.begin_epoch(self._connection, time.time())
        except sqlite3.Error as error:
            raise StoreError(
                f"Cannot write to database {str(self.path)!r}: {error}. Nothing was changed. Check the disk."
            ) from None

    def _damaged(self, faults: Sequence[str]) -> StoreError:
        more = f" (and {len(faults) - 1} more faults)" if len(faults) > 1 else ""
        return StoreError(
            f"Cannot read database {str(self.path)!r}: it is damaged. {faults[0][:-1]}{more}. Restore a backup."
        )

    def transaction(self) -> Transaction:
        """Return an empty transaction, which uses the database only when it is committed."""
        return Transaction(self._connection, self._stored, self.verify, self._last.write)

    def verify(self) -> None:
        """Raise StoreError when the database was deleted, moved or replaced, and from then on.

        Changes would be written to a file that the next start does not read.
        """
        self._lost = self._lost or self._file.lost()
        if self._lost:
            raise StoreError(
                f"Cannot write to database {str(self.path)!r}: {self._lost}. Changes are rejected. Stop the "
                "controller, put the original file back or restore a backup, and start the controller."
            )

    def flush(self) -> None:
        """Write the last revision to disk, when no transaction is to be committed for a while."""
        self._last.flush()

    @property
    def lost(self) -> bool:
        """True after ``verify`` has failed."""
        return bool(self._lost)

    def close(self) -> None:
        """Write everything into the one file, and unlock it."""
        self._connection.close()
        self._last.close()
        self._file.close()


@dataclass
class Stored:
    """Partitions and checksums that a database stores now."""

    partitions: dict[str, Partition] = field(default_factory=dict)
    checksums: checksums.Checksums = field(default_factory=lambda: checksums.of_records(()))


class Transaction:
    """Changes that are written together, in the order of their addition."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        stored: Stored,
        verify: Callable[[], None],
        committed: Callable[[int], None],
    ) -> None:
        """Use a connection, the content of its database, and a check of its file. ``committed`` gets the revision."""
        self._connection = connection
        self._verify = verify
        self._committed = committed
        self._stored = stored
        self._pending: dict[str, Partition | None] = {}
        # Groups of consecutive changes of the same sort, each object once, so that a group takes few statements.
        self._runs: list[tuple[type[Change], Kind, dict[str, Any]]] = []
        self._events: EventLog | None = None
        self._changed: Changed = {}

    def add(self, changes: Sequence[Change], state: State) -> None:
        """Add changes that have just been applied to ``state``."""
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

    def _partition(self, record: Partition, state: State) -> tuple[Partition, Partition | None, list[rows.Place]]:
        old = self._pending[record.id] if record.id in self._pending else self._stored.partitions.get(record.id)
        self._pending[record.id] = record
        in_place = old is not None and old.ipus is record.ipus and old.devices is record.devices
        # Resolved now: a later change of the transaction may remove its cluster.
        return record, old, [] if in_place else list(state.machines_of(record))

    def log(self, events: EventLog, changed: Changed) -> None:
        """Add the changed objects to the log of revisions."""
        self._events, self._changed = events, changed

    def commit(self) -> int:
        """Write all changes to disk, or none of them. Return the new revision, 0 when no object was changed.

        Raises StoreError, and other exceptions for records that do not fit the database or lack of memory.
        """
        revision = 0
        if not self._runs:
            return revision
        self._verify()
        connection = self._connection
        sums: checksums.ByKind = {}
        try:
            connection.execute("BEGIN IMMEDIATE")
            for sort, kind, items in self._runs:
                if sort is Delete:
                    rows.delete(connection, kind, list(items))
                    sums.setdefault(kind, {}).update(dict.fromkeys(items, 0))
                else:
                    of = _checksums(kind, items)
                    _PUT[kind](connection, list(items.values()), of)
                    sums.setdefault(kind, {}).update(of)
            if self._events is not None and self._changed:
                revision = event_log.write(connection, self._events, self._changed)
            total = self._stored.checksums.total_with(sums)
            checksums.store_total(connection, total)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back(error)
            raise StoreError(f"Cannot write to the database: {error}. Nothing was changed. Check the disk.") from error
        except BaseException as error:
            self._roll_back(error)
            raise
        self._verify()  # again: nothing is acknowledged that is in a lost file
        if revision:
            self._committed(revision)
        for id, partition in self._pending.items():
            if partition is None:
                self._stored.partitions.pop(id, None)
            else:
                self._stored.partitions[id] = partition
        self._stored.checksums.apply(sums, total)
        return revision

    def _roll_back(self, error: BaseException) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error as worse:
            raise StoreError(f"Cannot write to the database: {error}. The rollback failed too: {worse}.") from worse


def _checksums(kind: Kind, items: Mapping[str, Any]) -> dict[str, int]:
    """Return the checksums of the records of a group by id."""
    records = {id: value[0] for id, value in items.items()} if kind is Kind.PARTITION else items
    return {id: checksums.checksum(record) for id, record in records.items()}


_PUT: dict[Kind, Any] = {
    Kind.AGENT: rows.put_agents,
    Kind.CLUSTER: rows.put_clusters,
    Kind.ALLOCATION: rows.put_allocations,
    Kind.PARTITION: rows.put_partitions,
    Kind.USER: rows.put_users,
    Kind.REVOKED_KEY: rows.put_revoked_keys,
}


def _open_error(path: Path, error: OSError, *, create: bool = True) -> StoreError:
    """Return the error for a database file that the operating system cannot open, or cannot ``create``."""
    if isinstance(error, FileNotFoundError) and not create:
        cause, remedy = "it does not exist", f"Create it with 'vipu-server --init --database {path}'"
    elif isinstance(error, FileNotFoundError) and not path.parent.exists():
        cause, remedy = f"folder {str(path.parent)!r} does not exist", "Create the folder, or give another --database"
    else:
        cause, remedy = str(error.strerror), "Check the path and its permissions, or give another --database"
    return StoreError(f"Cannot open database {str(path)!r}: {cause}. {remedy}.")
