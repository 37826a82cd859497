# SPDX-License-Identifier: GPL-3.0-or-later
"""Checksums of records. The next start computes them: see ``storage.checksums``."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add a checksum to each record, and the sum of all checksums."""
    for table in ("agents", "clusters", "allocations", "partitions", "users"):
        op.execute(f"ALTER TABLE {table} ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0")
    op.execute("CREATE TABLE record_checksum (total INTEGER NOT NULL) STRICT")
