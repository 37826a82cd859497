# SPDX-License-Identifier: GPL-3.0-or-later
"""Entry point of Alembic, which runs the migrations on the connection of ``migrations.upgrade``."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
