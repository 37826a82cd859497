# SPDX-License-Identifier: GPL-3.0-or-later
"""New certificates in the place of those of ``tls.create`` that are about to end.

Keys stay, so a file is replaced at a time, and at every moment what is there belongs together. Whoever
trusts the old certificate of the authority trusts what the new one has signed as long as the old one
is valid, since both have one key.
"""

from __future__ import annotations

import datetime
import os
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from openipu.vipu import tls
from openipu.vipu.tls import CA, CLIENT, SERVER, TlsError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

AUTHORITY = "ca"


def renew(
    directory: Path,
    within: datetime.timedelta,
    names: Collection[str] = (),
    validity: datetime.timedelta = tls.VALIDITY,
    *,
    pretend: bool = False,
) -> dict[str, datetime.datetime]:
    """Renew what ends within that time, and the server's certificate when it has other names than ``names``.

    Without ``names`` it keeps those that it has. Gives what was renewed, and until when it is valid now;
    with ``pretend`` what would be, and nothing is written. Raises TlsError.
    """
    ca, key = _read(directory)
    ends = datetime.datetime.now(datetime.UTC) + within
    fresh: dict[Path, x509.Certificate] = {}
    renewed = {}
    if ca.not_valid_after_utc <= ends:
        ca = tls.authority(key, max(validity, tls.AUTHORITY_VALIDITY))
        fresh.update({directory / role / CA: ca for role in (AUTHORITY, SERVER, CLIENT)})
        renewed[AUTHORITY] = ca.not_valid_after_utc
    for role in (SERVER, CLIENT):
        file = directory / role / f"{role}.crt"
        old = certificate(file)
        known = _names(old) if role == SERVER else []
        wanted = list(names or known) if role == SERVER else []
        if old.not_valid_after_utc <= ends or set(wanted) != set(known):
            fresh[file] = tls.issue(role, wanted, old.public_key(), ca, key, validity)
            renewed[role] = fresh[file].not_valid_after_utc
    if not pretend:
        for file, new in fresh.items():
            _replace(file, new)
    return renewed


def valid_until(directory: Path) -> datetime.datetime:
    """When the first of the certificates ends; raises TlsError."""
    files = [directory / AUTHORITY / CA, *(directory / role / f"{role}.crt" for role in (SERVER, CLIENT))]
    return min(certificate(file).not_valid_after_utc for file in files)


def _read(directory: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    file = directory / AUTHORITY / f"{AUTHORITY}.key"
    remedy = "; only certificates of 'vipu-server --tls-init' can be renewed here, and others where they come from"
    try:
        key = serialization.load_pem_private_key(tls.read(file, remedy), None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TlsError(f"The file {str(file)!r} is not the key that 'vipu-server --tls-init' made for its authority.")
    return certificate(directory / AUTHORITY / CA), key


def certificate(file: Path) -> x509.Certificate:
    """Read a certificate; raises TlsError."""
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(tls.read(file))
    except ValueError:
        raise TlsError(f"The file {str(file)!r} is not a PEM certificate.") from None


def _names(old: x509.Certificate) -> list[str]:
    from cryptography import x509

    try:
        extension = old.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return [str(name.value) for name in extension.value]


def _replace(file: Path, fresh: x509.Certificate) -> None:
    """Put a certificate in the place of one, whole or not at all."""
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
            f"Cannot write the new certificate {str(file)!r}: {error.strerror}; the old one is still there."
        ) from None
