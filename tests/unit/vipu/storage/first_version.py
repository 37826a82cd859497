# SPDX-License-Identifier: GPL-3.0-or-later
"""Database of the first version, for tests of the migrations."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from openipu.vipu.storage.migrations.versions import v0001


def create(path: Path) -> None:
    """Create a database of version 0001 with one agent ag01."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in v0001.TABLES:
            connection.execute(statement)
        connection.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) PRIMARY KEY)")
        connection.execute("INSERT INTO alembic_version VALUES ('0001')")
        connection.execute("INSERT INTO agents VALUES ('ag01', '10.1.2.1', 8080)")
