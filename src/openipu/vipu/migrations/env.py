# SPDX-License-Identifier: GPL-3.0-or-later
"""Alembic's entry point: runs the migrations on the connection that ``migrations.upgrade`` hands over."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
