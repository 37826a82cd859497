# SPDX-License-Identifier: GPL-3.0-or-later
"""Checksum of the identity."""

from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add the column. The next start computes the checksum."""
    op.execute("ALTER TABLE deployment ADD COLUMN checksum INTEGER")
