# SPDX-License-Identifier: GPL-3.0-or-later
"""Identity of the deployment; see ``domain.deployment``."""

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the table with its only row."""
    op.execute(
        """
        CREATE TABLE deployment (
            id TEXT NOT NULL,
            epoch INTEGER NOT NULL CHECK (epoch >= 0),
            complete_since INTEGER NOT NULL CHECK (complete_since >= 0)
        ) STRICT
        """
    )
    op.execute("INSERT INTO deployment VALUES (lower(hex(randomblob(8))), 0, 0)")
