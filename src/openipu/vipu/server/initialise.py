# SPDX-License-Identifier: GPL-3.0-or-later
"""Creation of database and first administrator by ``vipu-server --init``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from openipu.shared.vipu.client import Connection
from openipu.shared.vipu.userfile import write_config
from openipu.vipu.api import auth
from openipu.vipu.domain.model import Certificate, Put, Role
from openipu.vipu.storage.store import Store, StoreError
from openipu.vipu.tls import load, users

FIRST_ADMIN = "admin"


def initialise(database: Path) -> bool:
    """Create the database unless it exists. Return whether it is new. Raises StoreError."""
    new = not database.exists() or database.stat().st_size == 0
    Store(database, create=True).close()
    return new


def first_admin(database: Path, connection: Connection, *, own_certificate: bool = False) -> Path | None:
    """Create the first administrator, who can create all other users.

    Write its access key and the connection to a configuration file next to the database, readable by the
    owner only. With ``own_certificate``, the client certificate of the connection becomes the administrator's own.
    Return the path of the file, or None when an administrator exists. Raises StoreError and TlsError.
    """
    store = Store(database)
    try:
        state = store.load()
        if any(user.role is Role.ADMIN for user in state.users.values()):
            return None
        user, key = auth.new_user(FIRST_ADMIN, Role.ADMIN, ())
        if own_certificate:
            if connection.client_cert is None:
                raise StoreError(
                    "Cannot create the first administrator: it needs a certificate, and the folder of --certs has no "
                    "client/client.crt. Add the file, or use --client-certificates=shared."
                )
            user = replace(user, certificates=(Certificate(*users.describe(load.read(Path(connection.client_cert)))),))
        if user.id in state.users:
            raise StoreError(
                f"Cannot create the first administrator: {FIRST_ADMIN!r} is an ordinary user in {str(database)!r}. "
                "Start vipu-server without --secure and remove that user first."
            )
        path = database.parent / f"{FIRST_ADMIN}.vipu-cli.hcl"
        # Write the file first: the key of a stored user cannot be read again.
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
