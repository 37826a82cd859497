# SPDX-License-Identifier: GPL-3.0-or-later
"""Users that may call with a shared certificate."""

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the column. Users of earlier releases keep calling with the shared certificate.

    Users have a new field, so the next start computes all checksums.
    """
    op.execute("DELETE FROM record_checksum")
    op.execute("ALTER TABLE users ADD COLUMN shared_certificate INTEGER NOT NULL DEFAULT 1")
