# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``vipu-server --init`` does before there is a controller."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import Connection
from ansible_collections.openipu.pod.plugins.module_utils.vipu.userfile import write_config

from openipu.vipu import auth
from openipu.vipu.model import Put, Role
from openipu.vipu.store import Store, StoreError

FIRST_ADMIN = "admin"


def initialise(database: Path) -> bool:
    """Make the database, unless it is there already; whether it is new. Raises StoreError."""
    new = not database.exists() or database.stat().st_size == 0
    Store(database, create=True).close()
    return new


def first_admin(database: Path, connection: Connection) -> Path | None:
    """Make the user who makes all others and calls by this connection, when there is no administrator.

    Gives the command line configuration file with its access key, written beside the database for its
    owner only; None when there is an administrator already. Raises StoreError.
    """
    store = Store(database)
    try:
        state = store.load()
        if any(user.role is Role.ADMIN for user in state.users.values()):
            return None
        user, key = auth.new_user(FIRST_ADMIN, Role.ADMIN, ())
        if user.id in state.users:
            raise StoreError(
                f"Cannot make the first administrator: {FIRST_ADMIN!r} is an ordinary user of {str(database)!r}; "
                "remove that user on a server without --secure first."
            )
        path = database.parent / f"{FIRST_ADMIN}.vipu-cli.hcl"
        # The file first: without it nobody would ever know the key of a user that is there.
        write_config(path, connection, user.id, key)
        changes = [Put(user)]
        state.apply(changes)
        transaction = store.transaction()
        transaction.add(changes, state)
        transaction.commit()
    except OSError as error:
        raise StoreError(f"Cannot write the access key of the first administrator: {error}.") from None
    finally:
        store.close()
    return path
