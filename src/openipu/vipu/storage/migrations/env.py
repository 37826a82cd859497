# SPDX-License-Identifier: GPL-3.0-or-later
"""Entry point of Alembic, which runs the migrations on the connection of ``migrations.upgrade``."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
    # Other fields have other checksums, which the next start computes.
    context.execute("DELETE FROM record_checksum")
