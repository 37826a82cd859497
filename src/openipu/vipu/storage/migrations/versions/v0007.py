# SPDX-License-Identifier: GPL-3.0-or-later
"""Revoked keys of removed users."""

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Create the table. ``id`` is the fingerprint of the public key. ``user`` is the removed user."""
    op.execute(
        """
        CREATE TABLE revoked_keys (
            id TEXT PRIMARY KEY,
            user TEXT NOT NULL,
            serial TEXT NOT NULL,
            not_after INTEGER NOT NULL,
            checksum INTEGER NOT NULL DEFAULT 0
        ) STRICT, WITHOUT ROWID
        """
    )
