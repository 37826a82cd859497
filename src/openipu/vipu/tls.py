# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates for mutual TLS: made by ``vipu-server --tls-init``, checked before they are used."""

from __future__ import annotations

import datetime
import ipaddress
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import structlog

if TYPE_CHECKING:  # cryptography is loaded where it is needed: not on a controller without TLS
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes as PublicKeyTypes

CA = "ca.crt"
VALIDITY = datetime.timedelta(days=825)
AUTHORITY_VALIDITY = datetime.timedelta(days=3650)
CLIENT, SERVER = "client", "server"

_log = structlog.get_logger("tls")


class TlsError(Exception):
    """Certificates cannot be made, read or used; one sentence."""


def create(directory: Path, names: Iterable[str], validity: datetime.timedelta = VALIDITY) -> None:
    """Make an authority of our own, a certificate of the server for these names, and one for clients.

    ``validity`` is that of the two certificates; ``tls_renewal`` makes new ones before they end.
    ``directory`` gets ``ca``, ``server`` and ``client``; whoever has the files of ``client`` may
    connect, whoever has the key of ``ca`` may make more. Raises TlsError, also when it exists already.
    It appears when it is complete: after a failure nothing of it is there.
    """
    ca_key = _new_key()
    ca = authority(ca_key, max(validity, AUTHORITY_VALIDITY))
    names = list(names)
    folder = None
    try:
        if os.path.lexists(directory):
            raise FileExistsError
        directory.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
        draft = folder / directory.name
        draft.mkdir()
        _write(draft / "ca", "ca", ca, ca, ca_key)
        for role in (SERVER, CLIENT):
            key = _new_key()
            certificate = issue(role, names, key.public_key(), ca, ca_key, validity)
            _write(draft / role, role, ca, certificate, key)
        draft.rename(directory)
    except FileExistsError:
        raise TlsError(f"There is {str(directory)!r} already; remove it first to make new certificates.") from None
    except OSError as error:
        raise TlsError(f"Cannot write certificates to {str(directory)!r}: {error.strerror}.") from None
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def server_credentials(directory: Path) -> grpc.ServerCredentials:
    """Mutual TLS with ``directory/server``: clients need a certificate of its authority. Raises TlsError."""
    server = directory / "server"
    return mutual(
        server / CA, server / "server.crt", server / "server.key", remedy="; make one with 'vipu-server --tls-init'"
    )


def client_files(directory: Path) -> dict[str, str]:
    """What ``create`` made for clients, by the names that a connection has for it."""
    client = directory / "client"
    files = {"ca_path": client / CA, "client_cert": client / "client.crt", "client_key": client / "client.key"}
    return {name: str(path) for name, path in files.items()}


def mutual(ca_file: Path, certificate_file: Path, key_file: Path, remedy: str = "") -> grpc.ServerCredentials:
    """Mutual TLS with PEM files; ``remedy`` ends the sentence of a TlsError.

    Files that are replaced count from the next connection on. While the new ones cannot be used, the
    log says why, and the old ones count.
    """
    files = (ca_file, certificate_file, key_file)
    seen = stamps(files)

    def renewed() -> grpc.ServerCertificateConfiguration | None:
        nonlocal seen
        now = stamps(files)
        if now == seen:
            return None
        seen = now
        try:
            configuration = _configuration(files, remedy)
        except TlsError as error:
            _log.warning("new certificates cannot be used", reason=str(error))
            return None
        _log.info("new certificates", file=str(certificate_file))
        return configuration

    return grpc.dynamic_ssl_server_credentials(_configuration(files, remedy), renewed, True)


def stamps(files: tuple[Path, ...]) -> list[tuple[int, int] | None]:
    """What tells whether files were replaced."""
    stamps: list[tuple[int, int] | None] = []
    for file in files:
        try:
            status = file.stat()
        except OSError:
            stamps.append(None)
        else:
            stamps.append((status.st_ino, status.st_mtime_ns))
    return stamps


def _configuration(files: tuple[Path, Path, Path], remedy: str) -> grpc.ServerCertificateConfiguration:
    """What a server shows and trusts; raises TlsError."""
    ca, certificate, key = check(files, remedy)
    return grpc.ssl_server_certificate_configuration([(key, certificate)], root_certificates=ca)


def check(files: tuple[Path, Path, Path], remedy: str = "") -> tuple[bytes, bytes, bytes]:
    """Read an authority, a certificate and its key, and see that they can be used now; raises TlsError."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization

    ca_file, certificate_file, key_file = files
    ca, certificate, key = (read(file, remedy) for file in files)
    try:
        x509.load_pem_x509_certificates(ca)
        parsed = x509.load_pem_x509_certificate(certificate)
        private = serialization.load_pem_private_key(key, None)
    except (ValueError, TypeError):
        raise TlsError(
            f"The files {str(ca_file)!r}, {str(certificate_file)!r} and {str(key_file)!r} "
            "are not PEM certificates and an unencrypted key."
        ) from None
    if parsed.public_key() != private.public_key():
        raise TlsError(f"The key {str(key_file)!r} does not belong to the certificate {str(certificate_file)!r}.")
    now = datetime.datetime.now(datetime.UTC)
    if not parsed.not_valid_before_utc <= now <= parsed.not_valid_after_utc:
        raise TlsError(
            f"The certificate {str(certificate_file)!r} is valid from {parsed.not_valid_before_utc:%Y-%m-%d} "
            f"to {parsed.not_valid_after_utc:%Y-%m-%d} only{remedy}."
        )
    return ca, certificate, key


def read(file: Path, remedy: str = "") -> bytes:
    """The contents of a file; raises TlsError, whose sentence ends with ``remedy``."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise TlsError(f"Cannot read {str(file)!r}: {error.strerror}{remedy}.") from None


def authority(key: ec.EllipticCurvePrivateKey, validity: datetime.timedelta) -> x509.Certificate:
    """The certificate of an authority with this key. Another one with the same key may take its place."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "vipu-server authority")])
    extensions: list[tuple[x509.ExtensionType, bool]] = [(x509.BasicConstraints(ca=True, path_length=0), True)]
    return _sign(name, key.public_key(), name, key, validity, extensions)


def issue(
    role: str,
    names: Iterable[str],
    key: PublicKeyTypes,
    ca: x509.Certificate,
    ca_key: ec.EllipticCurvePrivateKey,
    validity: datetime.timedelta,
) -> x509.Certificate:
    """A certificate for SERVER, which has these names, or CLIENT, which has none; raises TlsError."""
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    usage = {SERVER: ExtendedKeyUsageOID.SERVER_AUTH, CLIENT: ExtendedKeyUsageOID.CLIENT_AUTH}[role]
    extensions: list[tuple[x509.ExtensionType, bool]] = [(x509.ExtendedKeyUsage([usage]), False)]
    if role == SERVER:
        alternatives = [_general_name(name) for name in dict.fromkeys(names)]
        extensions.append((x509.SubjectAlternativeName(alternatives), False))
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"vipu {role}")])
    return _sign(subject, key, ca.subject, ca_key, validity, extensions)


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
        raise TlsError(f"The name {name!r} is neither an IP address nor a DNS name in ASCII.") from None


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
    # Clocks of machines differ, and a certificate of the past must begin before its end.
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
    directory: Path, name: str, ca: x509.Certificate, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
) -> None:
    from cryptography.hazmat.primitives import serialization

    directory.mkdir(mode=0o700)
    pem = serialization.Encoding.PEM
    (directory / CA).write_bytes(ca.public_bytes(pem))
    if certificate is not ca:
        (directory / f"{name}.crt").write_bytes(certificate.public_bytes(pem))
    with os.fdopen(os.open(directory / f"{name}.key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(
            key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        )
