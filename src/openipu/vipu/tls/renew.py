# SPDX-License-Identifier: GPL-3.0-or-later
"""Renewal of certificates of ``issue.create`` before they expire.

Keys are kept. So files are replaced one at a time, and they match each other at every moment. Clients
that trust the old certificate of the authority also trust certificates of the new one while the old one
is valid, because both have the same key.
"""

from __future__ import annotations

import datetime
import os
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from openipu.vipu.tls import issue, load
from openipu.vipu.tls.load import CA, CLIENT, CONTROLLER, SERVER, TlsError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

AUTHORITY = "ca"
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

    Without ``names``, the server certificate keeps its names. Returns the renewed certificates with their
    new ends of validity. With ``pretend``, nothing is written. Raises TlsError.
    """
    ca, key = authority(directory)
    ends = datetime.datetime.now(datetime.UTC) + within
    fresh: dict[Path, x509.Certificate] = {}
    renewed = {}
    if ca.not_valid_after_utc <= ends:
        ca = issue.authority(key, max(validity, issue.AUTHORITY_VALIDITY))
        fresh.update({directory / role / CA: ca for role in (AUTHORITY, *_ISSUED)})
        renewed[AUTHORITY] = ca.not_valid_after_utc
    for role in _ISSUED:
        file = directory / role / f"{role}.crt"
        old = certificate(file)
        known = _names(old) if role == SERVER else []
        desired = list(names or known) if role == SERVER else []
        if old.not_valid_after_utc <= ends or set(desired) != set(known):
            fresh[file] = issue.issue(role, desired, old.public_key(), ca, key, validity)
            renewed[role] = fresh[file].not_valid_after_utc
    if not pretend:
        for file, new in fresh.items():
            _replace(file, new)
    return renewed


def valid_until(directory: Path) -> datetime.datetime:
    """Return the earliest end of validity of the certificates; raises TlsError."""
    files = [directory / AUTHORITY / CA, *(directory / role / f"{role}.crt" for role in _ISSUED)]
    return min(certificate(file).not_valid_after_utc for file in files)


def authority(directory: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """Read certificate and key of the authority; raises TlsError."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    file = directory / AUTHORITY / f"{AUTHORITY}.key"
    remedy = "Only certificates of 'vipu-server --tls-init' can be renewed here. Renew others at their issuer"
    try:
        key = serialization.load_pem_private_key(load.read(file, remedy), None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TlsError(f"Cannot use key {str(file)!r}: it is not the authority key of 'vipu-server --tls-init'.")
    return certificate(directory / AUTHORITY / CA), key


def certificate(file: Path) -> x509.Certificate:
    """Read a certificate; raises TlsError."""
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(load.read(file))
    except ValueError:
        raise TlsError(f"Cannot use {str(file)!r}: it is not a PEM certificate.") from None


def _names(old: x509.Certificate) -> list[str]:
    from cryptography import x509

    try:
        extension = old.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return [str(name.value) for name in extension.value]


def _replace(file: Path, fresh: x509.Certificate) -> None:
    """Replace a certificate file atomically."""
    from cryptography.hazmat.primitives import serialization

    try:
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}.", delete=False) as draft:
            try:
                draft.write(fresh.public_bytes(serialization.Encoding.PEM))
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
