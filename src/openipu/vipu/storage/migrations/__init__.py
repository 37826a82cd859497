# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions of the controller's database.

The import of Alembic takes a third of a second, so it is imported only for the migration of an older database.
``newest.sql`` creates a new one. It is generated from all migrations: see ``tests/unit/vipu/storage/test_newest.py``.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

HEAD = "0010"


class UnknownVersionError(Exception):
    """Raised for a database with an unknown version, which a newer release has written."""


def version(connection: sqlite3.Connection) -> str | None:
    """Return the version of a database; None when it is empty.

    Raises sqlite3.DatabaseError for the database of another program.
    """
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if not tables:
        return None
    row = "alembic_version" in tables and connection.execute("SELECT version_num FROM alembic_version").fetchone()
    if not row:
        raise sqlite3.DatabaseError("it belongs to another program")
    return str(row[0])


def upgrade(connection: sqlite3.Connection) -> None:
    """Migrate a database to ``HEAD`` in one transaction; an empty one gets all tables. Raises sqlite3.Error.

    The connection must be in autocommit mode (``isolation_level=None``) and not enforce foreign keys,
    because SQLite changes a table by creating a new one.
    """
    if version(connection) is None:
        create(connection)
    current = version(connection)
    if current != HEAD:
        migrate(connection, current)


def create(connection: sqlite3.Connection) -> None:
    """Create all tables in an empty database, in one transaction. Raises sqlite3.Error."""
    script = (Path(__file__).parent / "newest.sql").read_text(encoding="utf-8")
    try:
        connection.executescript(f"BEGIN IMMEDIATE;\n{script}COMMIT;")
    except sqlite3.Error:
        connection.rollback()
        raise


def migrate(connection: sqlite3.Connection, current: str | None) -> None:
    """Run the migrations after the current version, or all of them. Raises sqlite3.Error."""
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

    # The driver itself would begin a transaction only before the first INSERT, after the tables are created.
    @sqlalchemy.event.listens_for(engine, "begin")
    def begin(connection: sqlalchemy.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    with engine.connect() as shared:
        config.attributes["connection"] = shared
        try:
            command.upgrade(config, "head")
        except sqlalchemy.exc.DBAPIError as error:
            raise error.orig or error from None
