# SPDX-License-Identifier: GPL-3.0-or-later
"""Renewal of certificates of ``issue.create`` before they expire.

Keys are kept. So files are replaced one at a time, and they match each other at every moment. Clients
that trust the old certificate of the authority also trust certificates of the new one. They do while the
old one is valid, because both have the same key.
"""

from __future__ import annotations

import datetime
import os
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from openipu.vipu.tls import issue, load
from openipu.vipu.tls.issue import AUTHORITY, USERS
from openipu.vipu.tls.load import CA, CLIENT, CONTROLLER, SERVER, TlsError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

_ISSUED = (SERVER, CLIENT, CONTROLLER)


def renew(
    directory: Path,
    within: datetime.timedelta,
    names: Collection[str] = (),
    validity: datetime.timedelta = issue.VALIDITY,
    *,
    pretend: bool = False,
) -> dict[str, datetime.datetime]:
    """Renew certificates that expire within that time, and a server certificate with names other than ``names``.

    Without ``names``, the server certificate keeps its names. A missing authority of users is created. Returns the
    renewed certificates with their new ends of validity. With ``pretend``, nothing is written. Raises TlsError.
    """
    now = datetime.datetime.now(datetime.UTC)
    ends, lifetime = now + within, max(validity, issue.AUTHORITY_VALIDITY)
    fresh: dict[Path, bytes] = {}
    renewed = {}
    ca, key = authority(directory)
    if ca.not_valid_after_utc <= ends:
        ca = issue.authority(AUTHORITY, key, lifetime)
        fresh.update({directory / role / CA: issue.pem(ca) for role in (CLIENT, CONTROLLER)})
        renewed[AUTHORITY] = ca.not_valid_after_utc
    trusted = [ca]
    if (directory / USERS).is_dir():
        users, users_key = authority(directory, USERS)
        if users.not_valid_after_utc <= ends:
            users = issue.authority(USERS, users_key, lifetime)
            fresh[directory / USERS / CA] = issue.pem(users)
            renewed[USERS] = users.not_valid_after_utc
        trusted.append(users)
    else:  # a folder of an earlier release
        renewed[USERS] = now + lifetime
        if not pretend:
            trusted.append(_create_users_authority(directory, lifetime))
    # Compare the contents too: an interrupted renewal may have left the old file.
    if load.read(directory / SERVER / CA) != issue.pem(*trusted):
        fresh[directory / SERVER / CA] = issue.pem(*trusted)
    for role in _ISSUED:
        file = directory / role / f"{role}.crt"
        old = certificate(file)
        known = _names(old) if role == SERVER else []
        desired = list(names or known) if role == SERVER else []
        if old.not_valid_after_utc <= ends or set(desired) != set(known):
            new = issue.issue(role, desired, old.public_key(), ca, key, validity)
            fresh[file] = issue.pem(new)
            renewed[role] = new.not_valid_after_utc
    if AUTHORITY in renewed:  # the last one: after an interruption, the next renewal replaces all of them
        fresh[directory / AUTHORITY / CA] = issue.pem(ca)
    if not pretend:
        for file, contents in fresh.items():
            _replace(file, contents)
    return renewed


def valid_until(directory: Path) -> datetime.datetime:
    """Return the earliest end of validity of the certificates; raises TlsError."""
    authorities = [folder for folder in (AUTHORITY, USERS) if (directory / folder).is_dir()]
    files = [directory / folder / CA for folder in authorities]
    files += [directory / role / f"{role}.crt" for role in _ISSUED]
    return min(certificate(file).not_valid_after_utc for file in files)


def authority(directory: Path, folder: str = AUTHORITY) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """Read certificate and key of the authority in a folder of ``directory``; raises TlsError."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    file = directory / folder / f"{AUTHORITY}.key"
    remedy = "Only certificates of 'vipu-server --tls-init' can be renewed here. Renew others at their issuer"
    try:
        key = serialization.load_pem_private_key(load.read(file, remedy), None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TlsError(
            f"Cannot use key {str(file)!r}: it is not the authority key of 'vipu-server --tls-init'. Use that key."
        )
    return certificate(directory / folder / CA), key


def certificate(file: Path) -> x509.Certificate:
    """Read a certificate; raises TlsError."""
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(load.read(file))
    except ValueError:
        raise TlsError(f"Cannot use {str(file)!r}: it is not a PEM certificate. Replace it.") from None


def _names(old: x509.Certificate) -> list[str]:
    from cryptography import x509

    try:
        extension = old.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return [str(name.value) for name in extension.value]


def _create_users_authority(directory: Path, validity: datetime.timedelta) -> x509.Certificate:
    try:
        return issue.create_users_authority(directory, validity)
    except OSError as error:
        raise TlsError(
            f"Cannot create the authority of users in {str(directory)!r}: {error.strerror}. Nothing was renewed. "
            "Make the folder writable, then run the command again."
        ) from None


def _replace(file: Path, contents: bytes) -> None:
    """Replace a certificate file atomically."""
    try:
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}.", delete=False) as draft:
            try:
                draft.write(contents)
                draft.flush()
                os.fchmod(draft.fileno(), file.stat().st_mode & 0o777)
                os.fsync(draft.fileno())
                Path(draft.name).replace(file)
            except OSError:
                Path(draft.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise TlsError(
            f"Cannot write certificate {str(file)!r}: {error.strerror}. The old certificate is unchanged."
        ) from None
