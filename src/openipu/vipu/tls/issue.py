# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates for mutual TLS, created by ``vipu-server --tls-init``.

There are two authorities. That of ``ca`` issues the certificates of this module, and its key may be inaccessible for a
running controller. That of ``users`` issues certificates of users. Servers accept clients of both. Clients trust
servers of the first one only, so a stolen key of the second one is of no use for a false controller.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from openipu.vipu.tls.load import CA, CLIENT, CONTROLLER, SERVER, TlsError

if TYPE_CHECKING:  # imported inside functions, so that a controller without TLS does not load it
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes as PublicKeyTypes

VALIDITY = datetime.timedelta(days=825)
AUTHORITY_VALIDITY = datetime.timedelta(days=3650)
AUTHORITY, USERS = "ca", "users"  # folders of the authorities
_NAMES = {AUTHORITY: "vipu-server authority", USERS: "vipu-server authority of users"}


def create(directory: Path, names: Iterable[str], validity: datetime.timedelta = VALIDITY) -> None:
    """Create the authorities, a server certificate for these names, and certificates of clients and controllers.

    ``validity`` applies to all but the authorities; ``renew`` replaces them before they expire.
    ``directory`` gets the folders ``ca``, ``users``, ``server``, ``client`` and ``controller``. The files of
    ``client`` permit connections to the server; those of ``controller`` also calls to agents; the keys of ``ca`` and
    ``users`` permit new certificates. ``directory`` appears only when it is complete. Raises TlsError, even when it
    exists.
    """
    ca_key = _new_key()
    ca = authority(AUTHORITY, ca_key, max(validity, AUTHORITY_VALIDITY))
    names = list(names)
    folder = None
    try:
        if os.path.lexists(directory):
            raise FileExistsError
        directory.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
        draft = folder / directory.name
        draft.mkdir()
        _write(draft / AUTHORITY, AUTHORITY, [ca], None, ca_key)
        users = create_users_authority(draft, max(validity, AUTHORITY_VALIDITY))
        for role in (SERVER, CLIENT, CONTROLLER):
            key = _new_key()
            certificate = issue(role, names, key.public_key(), ca, ca_key, validity)
            _write(draft / role, role, [ca, users] if role == SERVER else [ca], certificate, key)
        draft.rename(directory)
    except FileExistsError:
        raise TlsError(
            f"Cannot create certificates in {str(directory)!r}: it already exists. Remove it first."
        ) from None
    except OSError as error:
        raise TlsError(f"Cannot write certificates to {str(directory)!r}: {error.strerror}.") from None
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def create_users_authority(directory: Path, validity: datetime.timedelta) -> x509.Certificate:
    """Create the authority of users in ``directory/users`` and return its certificate. Raises OSError."""
    key = _new_key()
    certificate = authority(USERS, key, validity)
    with tempfile.TemporaryDirectory(prefix=f".{USERS}.", dir=directory) as folder:
        draft = Path(folder) / USERS
        _write(draft, AUTHORITY, [certificate], None, key)
        draft.rename(directory / USERS)
    return certificate


def authority(folder: str, key: ec.EllipticCurvePrivateKey, validity: datetime.timedelta) -> x509.Certificate:
    """Return the certificate of the authority of AUTHORITY or USERS.

    Another one with the same key may replace it.
    """
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _NAMES[folder])])
    extensions: list[tuple[x509.ExtensionType, bool]] = [(x509.BasicConstraints(ca=True, path_length=0), True)]
    return _sign(name, key.public_key(), name, key, validity, extensions)


def issue(
    role: str,
    names: Iterable[str],
    key: PublicKeyTypes,
    ca: x509.Certificate,
    ca_key: ec.EllipticCurvePrivateKey,
    validity: datetime.timedelta,
    name: str = "",
) -> x509.Certificate:
    """Return a certificate of a role. That of SERVER has these names. ``name``: common name, omit to use the role.

    Raises TlsError.
    """
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    usage = ExtendedKeyUsageOID.SERVER_AUTH if role == SERVER else ExtendedKeyUsageOID.CLIENT_AUTH
    extensions: list[tuple[x509.ExtensionType, bool]] = [(x509.ExtendedKeyUsage([usage]), False)]
    if role == SERVER:
        alternatives = [_general_name(name) for name in dict.fromkeys(names)]
        extensions.append((x509.SubjectAlternativeName(alternatives), False))
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name or common_name(role))])
    return _sign(subject, key, ca.subject, ca_key, validity, extensions)


def common_name(role: str) -> str:
    """Return the name in a certificate of a role. No user id contains a colon."""
    return f"vipu:{role}"


def pem(*certificates: x509.Certificate) -> bytes:
    """Return certificates as the contents of a PEM file."""
    from cryptography.hazmat.primitives import serialization

    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)


def _new_key() -> ec.EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _general_name(name: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        pass
    try:
        return x509.DNSName(name)
    except ValueError:
        raise TlsError(
            f"Cannot issue a certificate for {name!r}: it is neither an IP address nor a DNS name in ASCII. Correct it."
        ) from None


def _sign(
    subject: x509.Name,
    key: PublicKeyTypes,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    validity: datetime.timedelta,
    extensions: list[tuple[x509.ExtensionType, bool]],
) -> x509.Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    end = datetime.datetime.now(datetime.UTC) + validity
    # The start tolerates clock differences. A certificate with an end in the past must start before it.
    start = min(datetime.datetime.now(datetime.UTC), end) - datetime.timedelta(hours=1)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), False)
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    return builder.sign(issuer_key, hashes.SHA256())


def _write(
    directory: Path,
    name: str,
    trusted: Sequence[x509.Certificate],
    certificate: x509.Certificate | None,
    key: ec.EllipticCurvePrivateKey,
) -> None:
    from cryptography.hazmat.primitives import serialization

    directory.mkdir(mode=0o700)
    (directory / CA).write_bytes(pem(*trusted))
    if certificate is not None:
        (directory / f"{name}.crt").write_bytes(pem(certificate))
    encoding = serialization.Encoding.PEM
    with os.fdopen(os.open(directory / f"{name}.key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(
            key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        )
