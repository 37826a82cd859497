# SPDX-License-Identifier: GPL-3.0-or-later
"""Identity of a database: one row, which the migration to version 0004 creates.

Its checksum detects a damaged identity. Agents would reject another deployment, or release shares for other epochs.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import astuple, replace
from hashlib import blake2b

from openipu.vipu.domain.deployment import Deployment, next_epoch


def read_id(connection: sqlite3.Connection) -> str:
    """Return the id of the deployment."""
    (id,) = connection.execute("SELECT id FROM deployment").fetchone()
    return str(id)


def read(connection: sqlite3.Connection) -> Deployment:
    """Return the identity with the last epoch."""
    return Deployment(*connection.execute("SELECT id, epoch, complete_since FROM deployment").fetchone())


def write(connection: sqlite3.Connection, identity: Deployment) -> None:
    """Replace the identity."""
    connection.execute(
        "UPDATE deployment SET id = ?, epoch = ?, complete_since = ?, checksum = ?",
        (identity.id, identity.epoch, identity.complete_since, _checksum(identity)),
    )


def faults(connection: sqlite3.Connection) -> list[str]:
    """Return a message for a missing or damaged identity. Raises sqlite3.Error.

    A new or migrated database has no checksum until its first start.
    """
    rows = connection.execute("SELECT id, epoch, complete_since, checksum FROM deployment").fetchall()
    if len(rows) != 1:
        return ["Its identity is missing."]
    *values, stored = rows[0]
    if stored not in (None, _checksum(Deployment(*values))):
        return ["Its identity does not match its checksum."]
    return []


def _checksum(identity: Deployment) -> int:
    """Return 64 bits with a sign, as SQLite stores integers."""
    return int.from_bytes(blake2b(json.dumps(astuple(identity)).encode(), digest_size=8).digest(), signed=True)


def begin_epoch(connection: sqlite3.Connection, now: float) -> Deployment:
    """Return the identity of a starting controller, with an epoch of its own."""
    last = read(connection)
    identity = replace(last, epoch=next_epoch(last.epoch, now))
    write(connection, identity)
    return identity


def mark_restored(connection: sqlite3.Connection, now: float, last: int) -> None:
    """Record that changes of all epochs until now may be missing. ``last``: an epoch that was used, 0 if unknown."""
    identity = read(connection)
    epoch = next_epoch(max(identity.epoch, last), now)
    write(connection, replace(identity, epoch=epoch, complete_since=epoch))
