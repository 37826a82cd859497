# SPDX-License-Identifier: GPL-3.0-or-later
"""Agents that are out of service."""

from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the columns. All agents of earlier releases are in service.

    Agents have new fields, so the next start computes all checksums.
    """
    op.execute("DELETE FROM record_checksum")
    op.execute("ALTER TABLE agents ADD COLUMN out_of_service INTEGER NOT NULL DEFAULT 0")
    op.execute("ALTER TABLE agents ADD COLUMN service_reason TEXT NOT NULL DEFAULT ''")
