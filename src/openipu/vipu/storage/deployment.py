# SPDX-License-Identifier: GPL-3.0-or-later
"""Identity of a database: one row, which the migration to version 0004 creates."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

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
        "UPDATE deployment SET id = ?, epoch = ?, complete_since = ?",
        (identity.id, identity.epoch, identity.complete_since),
    )


def begin_epoch(connection: sqlite3.Connection, now: float) -> Deployment:
    """Return the identity of a starting controller, with an epoch of its own."""
    last = read(connection)
    identity = replace(last, epoch=next_epoch(last.epoch, now))
    write(connection, identity)
    return identity


def mark_restored(connection: sqlite3.Connection, now: float, last: int) -> None:
    """Record that changes of all epochs until now may be missing. ``last``: an epoch that was used, 0 if unknown."""
    connection.execute("UPDATE deployment SET epoch = max(epoch, ?)", (last,))
    epoch = begin_epoch(connection, now).epoch
    connection.execute("UPDATE deployment SET complete_since = ?", (epoch,))
