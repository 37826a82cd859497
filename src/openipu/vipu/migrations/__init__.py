# SPDX-License-Identifier: GPL-3.0-or-later
"""The versions of the controller's database.

Alembic, whose import takes a second, is imported only when there is something to migrate.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

HEAD = "0001"


class UnknownVersionError(Exception):
    """The database has a version that is not among ours: a newer release has written it."""


def version(connection: sqlite3.Connection) -> str | None:
    """The version of a database; None when it holds nothing at all. Raises sqlite3.DatabaseError for others."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if not tables:
        return None
    row = "alembic_version" in tables and connection.execute("SELECT version_num FROM alembic_version").fetchone()
    if not row:
        raise sqlite3.DatabaseError("it belongs to another program")
    return str(row[0])


def upgrade(connection: sqlite3.Connection) -> None:
    """Bring a database to ``HEAD``, in one transaction; an empty one gets all tables.

    The connection must be in autocommit mode (``isolation_level=None``) and not enforce foreign keys,
    since SQLite changes a table by making it anew.
    """
    current = version(connection)
    if current == HEAD:
        return
    import sqlalchemy
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    if current is not None:
        known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
        if current not in known:
            raise UnknownVersionError(current)
    engine = sqlalchemy.create_engine("sqlite://", creator=lambda: connection, poolclass=sqlalchemy.StaticPool)

    # The driver itself would begin only before the first INSERT, after the tables were made.
    @sqlalchemy.event.listens_for(engine, "begin")
    def begin(connection: sqlalchemy.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    with engine.connect() as shared:
        config.attributes["connection"] = shared
        command.upgrade(config, "head")
