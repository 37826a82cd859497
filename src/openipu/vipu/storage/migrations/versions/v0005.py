# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of users."""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Create the table. ``key`` is the fingerprint of the public key, which one user can have.

    Users have a new field, so the next start computes all checksums.
    """
    op.execute("DELETE FROM record_checksum")
    op.execute(
        """
        CREATE TABLE user_certificates (
            key TEXT PRIMARY KEY,
            user TEXT NOT NULL REFERENCES users DEFERRABLE INITIALLY DEFERRED,
            position INTEGER NOT NULL,
            serial TEXT NOT NULL,
            not_after INTEGER NOT NULL,
            revoked INTEGER NOT NULL,
            UNIQUE (user, position)
        ) STRICT, WITHOUT ROWID
        """
    )
