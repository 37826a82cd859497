# SPDX-License-Identifier: GPL-3.0-or-later
"""Loading and checking of certificate files."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import structlog

if TYPE_CHECKING:
    from cryptography import x509

CA = "ca.crt"
CLIENT, SERVER, CONTROLLER = "client", "server", "controller"

_log = structlog.get_logger("tls")

ServerCredentials = Callable[[], grpc.ServerCredentials]
"""Factory of the credentials of one port. gRPC cannot use an object that loads new files for a second port."""


class TlsError(Exception):
    """Raised when certificates cannot be created, read or used."""

    error_code = "OPU614"


def server_credentials(directory: Path) -> ServerCredentials:
    """Return a factory of credentials for mutual TLS with ``directory/server``.

    Clients need a certificate of its authority. Raises TlsError.
    """
    server = directory / "server"
    return mutual(
        server / CA, server / "server.crt", server / "server.key", remedy="Create one with 'vipu-server --tls-init'"
    )


def client_files(directory: Path) -> dict[str, str]:
    """Return the client files of ``issue.create``, by the options of a connection."""
    client = directory / "client"
    files = {"ca_path": client / CA, "client_cert": client / "client.crt", "client_key": client / "client.key"}
    return {name: str(path) for name, path in files.items()}


def mutual(ca_file: Path, certificate_file: Path, key_file: Path, remedy: str = "") -> ServerCredentials:
    """Return a factory of credentials for mutual TLS with PEM files.

    Raises TlsError, whose message ends with ``remedy``. Replaced files apply to the next connection. If they
    are invalid, the reason is logged and the previous ones remain in use.
    """
    files = (ca_file, certificate_file, key_file)
    check(files, remedy)
    return lambda: _server_credentials(PemFiles(*files, remedy))


def _server_credentials(files: PemFiles) -> grpc.ServerCredentials:
    def configuration() -> grpc.ServerCertificateConfiguration:
        ca, certificate, key = files.contents
        return grpc.ssl_server_certificate_configuration([(key, certificate)], root_certificates=ca)

    return grpc.dynamic_ssl_server_credentials(
        configuration(), lambda: configuration() if files.reload() else None, True
    )


class PemFiles:
    """Files of an authority, a certificate and its key, which may be replaced while the program runs.

    When replaced files are invalid, the reason is logged and the previous contents remain in use.
    """

    def __init__(self, ca: Path, certificate: Path, key: Path, remedy: str = "") -> None:
        """Read and check the files. Raises TlsError, whose message ends with ``remedy``."""
        self.certificate = certificate
        self._paths, self._remedy = (ca, certificate, key), remedy
        self._seen = file_stamps(self._paths)
        self.contents = check(self._paths, remedy)

    def reload(self) -> bool:
        """Read files that were replaced. Return whether ``contents`` is new."""
        now = file_stamps(self._paths)
        if now == self._seen:
            return False
        self._seen = now
        try:
            self.contents = check(self._paths, self._remedy)
        except TlsError as error:
            _log.warning("cannot use new certificates", reason=str(error))
            return False
        _log.info("new certificates loaded", file=str(self.certificate))
        return True


class ClientCredentials:
    """Credentials of a client for mutual TLS. Replaced files apply to the next channel."""

    def __init__(self, files: PemFiles) -> None:
        """Use ``files``, which nothing else reloads."""
        self._files = files
        self._current = self._make()

    def current(self) -> grpc.ChannelCredentials:
        """Return the same object until the files are replaced. Call it from one thread."""
        if self._files.reload():
            self._current = self._make()
        return self._current

    def _make(self) -> grpc.ChannelCredentials:
        ca, certificate, key = self._files.contents
        return grpc.ssl_channel_credentials(ca, key, certificate)


def file_stamps(files: tuple[Path, ...]) -> list[tuple[int, int] | None]:
    """Return values that differ after a file is replaced: inode and modification time, None for a missing file."""
    stamps: list[tuple[int, int] | None] = []
    for file in files:
        try:
            status = file.stat()
        except OSError:
            stamps.append(None)
        else:
            stamps.append((status.st_ino, status.st_mtime_ns))
    return stamps


def check(files: tuple[Path, Path, Path], remedy: str = "") -> tuple[bytes, bytes, bytes]:
    """Return authority, certificate and key after checking that they are valid now; raises TlsError."""
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
            f"Cannot use {str(ca_file)!r}, {str(certificate_file)!r} and {str(key_file)!r}: "
            "they are not PEM certificates and an unencrypted key. Replace them."
        ) from None
    if parsed.public_key() != private.public_key():
        raise TlsError(
            f"Cannot use key {str(key_file)!r}: it does not match certificate {str(certificate_file)!r}. "
            "Use files that belong together."
        )
    check_validity(parsed, f"certificate {str(certificate_file)!r}", remedy)
    return ca, certificate, key


def check_validity(certificate: x509.Certificate, name: str, remedy: str = "") -> None:
    """Raise TlsError for a certificate that is not valid now. ``name``: its name in the message."""
    now = datetime.datetime.now(datetime.UTC)
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        raise TlsError(f"Cannot use {name}: it is valid only from {start:%Y-%m-%d} to {end:%Y-%m-%d}.{_suffix(remedy)}")


def read(file: Path, remedy: str = "") -> bytes:
    """Return the contents of a file; raises TlsError, whose message ends with ``remedy``."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise TlsError(f"Cannot read {str(file)!r}: {error.strerror}.{_suffix(remedy)}") from None


def _suffix(remedy: str) -> str:
    return f" {remedy}." if remedy else ""
