# SPDX-License-Identifier: GPL-3.0-or-later
"""Revisions: the objects that each of the latest transactions changed.

The first revision is the time in milliseconds, so that clients of an earlier database notice the new history.
"""

import time

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the table with its first revision."""
    op.execute("CREATE TABLE revisions (revision INTEGER PRIMARY KEY, changes TEXT NOT NULL) STRICT")
    op.execute(f"INSERT INTO revisions (revision, changes) VALUES ({time.time_ns() // 1_000_000}, '[]')")  # noqa: S608
