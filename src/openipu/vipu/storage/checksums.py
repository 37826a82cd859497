# SPDX-License-Identifier: GPL-3.0-or-later
"""Checksums of records: a damaged database is rejected, and never read as another state.

Each record has a checksum of all its fields, which names a damaged record. The sum of all checksums detects records
that are missing or outdated, for example after a write that a disk has lost. Both are stored in the transaction of
the change. The checks of SQLite do not notice changed values, and only some of the lost ones.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import fields
from hashlib import blake2b

from openipu.vipu.domain.model import Kind, Record
from openipu.vipu.storage import record_values

ByKind = dict[Kind, dict[str, int]]
"""Checksums by kind and id."""

_values = record_values.values
# SQLite returns real numbers from a column of them, so 1 and 1.0 need one form.
_floats = {sort: [index for index, field in enumerate(fields(sort)) if "float" in str(field.type)] for sort in _values}


_encode = json.JSONEncoder(check_circular=False, default=record_values.part).encode


def checksum(record: Record) -> int:
    """Return the checksum of a record: 64 bits with a sign, as SQLite stores integers."""
    sort = type(record)
    values = [record.kind, *_values[sort](record)]
    for index in _floats[sort]:
        if (value := values[index + 1]) is not None:
            values[index + 1] = float(value)
    return int.from_bytes(blake2b(_encode(values).encode(), digest_size=8).digest(), signed=True)


class Checksums:
    """Checksums of the stored records."""

    def __init__(self, of: ByKind) -> None:
        self._of = {kind: of.get(kind, {}) for kind in Kind}
        self.total = _wrap(sum(sum(sums.values()) for sums in self._of.values()))

    def total_with(self, changes: ByKind) -> int:
        """Return the sum of all checksums after changes, in which 0 removes a record."""
        total = self.total
        for kind, new in changes.items():
            old = self._of[kind]
            total += sum(new.values()) - sum([old.get(id, 0) for id in new])
        return _wrap(total)

    def apply(self, changes: ByKind, total: int) -> None:
        """Apply changes that are stored now, with the result of ``total_with``."""
        self.total = total
        for kind, new in changes.items():
            of = self._of[kind]
            for id, value in new.items():
                if value:
                    of[id] = value
                else:
                    of.pop(id, None)

    def store(self, connection: sqlite3.Connection) -> None:
        """Write the checksums of all records, in one transaction."""
        connection.execute("BEGIN IMMEDIATE")
        for kind in Kind:
            rows = [(new, id) for id, new in self._of[kind].items()]
            connection.executemany(f"UPDATE {kind}s SET checksum = ? WHERE id = ?", rows)  # noqa: S608
        connection.execute("INSERT INTO record_checksum (total) VALUES (?)", (self.total,))
        connection.execute("COMMIT")

    def faults(self, connection: sqlite3.Connection) -> list[str]:
        """Return a message for each stored checksum that differs. Raises sqlite3.Error."""
        wrong = [
            f"The {kind} {id!r} does not match its checksum."
            for kind in Kind
            for id, value in connection.execute(f"SELECT id, checksum FROM {kind}s")  # noqa: S608
            if self._of[kind].get(id) != value
        ]
        if not wrong and stored_total(connection) != self.total:
            wrong = ["Records are missing or outdated."]
        return wrong


def of_records(records: Iterable[Record]) -> Checksums:
    """Return the checksums of records."""
    of: ByKind = {kind: {} for kind in Kind}
    for record in records:
        of[record.kind][record.id] = checksum(record)
    return Checksums(of)


def stored_total(connection: sqlite3.Connection) -> int | None:
    """Return the stored sum of all checksums; None in a new database and after a migration."""
    row = connection.execute("SELECT total FROM record_checksum").fetchone()
    return None if row is None else row[0]


def store_total(connection: sqlite3.Connection, total: int) -> None:
    """Replace the stored sum of all checksums, in the transaction of the changes."""
    connection.execute("UPDATE record_checksum SET total = ?", (total,))


def _wrap(value: int) -> int:
    """Return the value of a 64-bit integer with a sign after an overflow."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
