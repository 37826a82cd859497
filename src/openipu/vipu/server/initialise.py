# SPDX-License-Identifier: GPL-3.0-or-later
"""Creation of database and first administrator by ``vipu-server --init``, and recovery of the administrator."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from openipu.shared.vipu.addresses import is_wildcard
from openipu.shared.vipu.client import Connection
from openipu.shared.vipu.userfile import write_config
from openipu.vipu.api import auth
from openipu.vipu.api.addresses import ListenAddress
from openipu.vipu.domain import certificates
from openipu.vipu.domain.errors import RuleError, listing
from openipu.vipu.domain.model import Certificate, Put, Role, User
from openipu.vipu.domain.state import State
from openipu.vipu.storage.etcd.keys import Location
from openipu.vipu.storage.interface import StoreError
from openipu.vipu.storage.store import Store
from openipu.vipu.tls import load, user_certificates

FIRST_ADMIN = "admin"


def run(
    database: Path,
    address: ListenAddress,
    certs: Path | None,
    *,
    shared_certificate: bool,
    location: Location | None = None,
) -> Iterator[str]:
    """Create the database and, with ``certs``, the first administrator. Yield what was done.

    ``address``: endpoint of the controller for administrators. ``location``: store in etcd in place of the database.
    Raises StoreError and TlsError.
    """
    new = initialise(database, location)
    yield f"{'Initialised storage' if new else 'Storage is initialised already'}: {location or database}"
    if certs is None:
        return
    # Certificates of another authority may be in other places. The user adds them to the file then.
    files: dict[str, Any] = dict(load.client_files(certs)) if (certs / load.CLIENT).is_dir() else {}
    host = "localhost" if is_wildcard(address.host) else address.host
    connection = Connection(host, address.port, **files)
    path = first_admin(database, connection, shared_certificate=shared_certificate, location=location)
    if path is not None:
        yield f"vipu configuration file for the user '{FIRST_ADMIN}' written: {path}"
        if not shared_certificate:
            with opened(database, location) as (state, _):
                yield from _restrictions(certificates.sharing(state))


@contextlib.contextmanager
def opened(database: Path, location: Location | None = None) -> Iterator[tuple[State, Callable[[User], None]]]:
    """Return a context with the records, and a function that writes a user. Raises StoreError.

    No controller may use the records.
    """
    if location is not None:
        from openipu.vipu.storage.etcd import content

        with content.exclusive(location) as records:
            state = records.state()
            yield state, lambda user: records.put(Put(user), state)
        return
    store = Store(database)
    try:
        state = store.load()
        yield state, lambda user: _put(store, state, user)
    finally:
        store.close()


def _exists(database: Path, location: Location | None) -> bool:
    if location is None:
        return database.exists() and database.stat().st_size > 0
    from openipu.vipu.storage.etcd import content

    return content.exists(location)


def check_file(database: Path, location: Location | None = None) -> None:
    """Raise StoreError when ``run`` would overwrite the file of an administrator. Nothing is written before."""
    file = _admin_file(database)
    if not file.exists():
        return
    if _exists(database, location):
        with opened(database, location) as (state, _):
            if _admins(state):
                return
    raise StoreError(
        f"Cannot create the first administrator: {str(file)!r} exists, and may be the only copy of an access key. Move "
        "it away, or give a --database in another folder. Nothing was changed."
    )


def initialise(database: Path, location: Location | None = None) -> bool:
    """Create the database, or the store in etcd, unless it exists. Return whether it is new. Raises StoreError."""
    if location is not None:
        from openipu.vipu.storage.etcd import content

        return content.initialise(location)
    new = not database.exists() or database.stat().st_size == 0
    Store(database, create=True).close()
    return new


def first_admin(
    database: Path, connection: Connection, *, shared_certificate: bool, location: Location | None = None
) -> Path | None:
    """Create the first administrator, who can create all other users.

    Write its access key and the connection to a configuration file next to the database, readable by the
    owner only. Unless ``shared_certificate``, the client certificate of the connection becomes its own.
    Return the path of the file, or None when an administrator exists. Raises StoreError and TlsError.
    """
    check_file(database, location)
    with opened(database, location) as (state, put):
        if _admins(state):
            return None
        if FIRST_ADMIN in state.users:
            raise StoreError(
                f"Cannot create the first administrator: {FIRST_ADMIN!r} is an ordinary user in "
                f"{str(location or database)!r}. Start vipu-server without --secure and remove that user first."
            )
        path = _admin_file(database)
        try:
            user, key = _new_admin(state, connection, shared_certificate=shared_certificate)
            # Write the file first: the key of a stored user cannot be read again.
            write_config(path, connection, user.id, key)
            put(user)
        except RuleError as error:
            raise StoreError(error.message) from None
        except OSError as error:
            raise StoreError(f"Cannot write the access key of the first administrator: {error}.") from None
    return path


def _new_admin(state: State, connection: Connection, *, shared_certificate: bool) -> tuple[User, str]:
    """Return the first administrator and its access key. Raises RuleError, StoreError and TlsError."""
    user, key = auth.new_user(FIRST_ADMIN, Role.ADMIN, (), shared_certificate=shared_certificate)
    if shared_certificate:
        return user, key
    if connection.client_cert is None:
        raise StoreError(
            "Cannot create the first administrator: it needs a certificate, and the folder of --certs has no "
            "client/client.crt. Create it with --tls-init, add the file, or use --client-certificates=shared."
        )
    with_user = state.copy()
    with_user.apply([Put(user)])
    return certificates.add(with_user, user.id, _certificate(Path(connection.client_cert))), key


def register(database: Path, file: Path, replaced: Path | None, location: Location | None = None) -> str:
    """Register a certificate with the first administrator, unless it has it or may use a shared one.

    ``replaced``: certificate whose owner gets the new one; nothing changes if it is not that of the administrator.
    Return what was done. Raises StoreError and TlsError.
    """
    with opened(database, location) as (state, put):
        user = state.users.get(FIRST_ADMIN)
        if user is None:
            raise StoreError(
                f"Cannot register {str(file)!r}: there is no user {FIRST_ADMIN!r} in {str(location or database)!r}. "
                "Create it with 'vipu-server --init --secure'."
            )
        if not certificates.needs_own(user):
            return f"Nothing to register: the user {FIRST_ADMIN!r} may use a shared certificate"
        added = _certificate(file)
        valid = {each.key for each in user.certificates if not each.revoked}
        if added.key in valid:
            return f"Nothing to register: {file} is a certificate of the user {FIRST_ADMIN!r} already"
        if replaced is not None and user_certificates.fingerprint(load.read(replaced)) not in valid:
            return f"Nothing to register: {replaced} is no certificate of the user {FIRST_ADMIN!r}"
        try:
            put(certificates.add(state, FIRST_ADMIN, added))
        except RuleError as error:
            raise StoreError(error.message) from None
        done = f"Certificate of the user {FIRST_ADMIN!r} registered: {file}"
        return "\n".join([done, *_restrictions(certificates.sharing(state))])


def _restrictions(users: Sequence[str]) -> Iterator[str]:
    """Yield a note with the users that can no longer use a certificate of the administrator."""
    if users:
        yield (
            f"Only {FIRST_ADMIN!r} can use its certificate now. If others shared it, create certificates for them with "
            f"'vipu-admin create certificate': {listing(users)}"
        )


def _admin_file(database: Path) -> Path:
    return database.parent / f"{FIRST_ADMIN}.vipu-cli.hcl"


def _admins(state: State) -> list[User]:
    return [user for user in state.users.values() if user.role is Role.ADMIN]


def _certificate(file: Path) -> Certificate:
    return Certificate(*user_certificates.describe(load.read(file)))


def _put(store: Store, state: State, user: User) -> None:
    changes = [Put(user)]
    state.apply(changes)
    transaction = store.transaction()
    transaction.add(changes, state)
    transaction.commit()
