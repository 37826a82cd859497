# SPDX-License-Identifier: GPL-3.0-or-later
"""Last epoch and revision of a database that a restore replaces."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from openipu.vipu.storage.last_revision import LastRevision

_MAX = 2**44  # higher values are damaged: revisions count milliseconds, and reach it in the year 2527


class Position(NamedTuple):
    """Last epoch and revision that a deployment has used, 0 for unknown ones."""

    epoch: int
    revision: int


UNKNOWN = Position(0, 0)


def read(database: Path, folder: Path) -> Position:
    """Return the position of a database, which may be damaged. ``folder``: for a copy of it. Raises OSError."""
    copy = folder / "position.db"
    for suffix in ("", "-wal"):  # the original must not change, not even its write-ahead log
        if Path(f"{database}{suffix}").exists():
            shutil.copyfile(f"{database}{suffix}", f"{copy}{suffix}")
    try:
        with closing(sqlite3.connect(copy)) as connection:
            (epoch,) = connection.execute("SELECT epoch FROM deployment").fetchone()
            (revision,) = connection.execute("SELECT max(revision) FROM revisions").fetchone()
    except (sqlite3.Error, TypeError):
        epoch, revision = 0, 0
    return Position(_plausible(epoch), max(_plausible(revision), _plausible(LastRevision(database).read())))


def _plausible(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < _MAX else 0
