# SPDX-License-Identifier: GPL-3.0-or-later
"""Users that may use all allocations."""

from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the column. Users of earlier releases keep their allocations, also those who have none."""
    op.execute("ALTER TABLE users ADD COLUMN all_allocations INTEGER NOT NULL DEFAULT 0")
