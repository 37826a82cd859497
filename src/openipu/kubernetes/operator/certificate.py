# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificate of the metrics endpoint: mounted files, or one that exists only in the memory of this process."""

from __future__ import annotations

import asyncio
import datetime
import os
import ssl
from pathlib import Path

import structlog
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_log = structlog.get_logger("openipu.kubernetes.operator.certificate")

# A new process has a new certificate, so the validity need not be short.
_VALIDITY = datetime.timedelta(days=3650)
_CLOCK_SKEW = datetime.timedelta(hours=1)  # of clients


class CertificateError(ValueError):
    """Raised when the files of a certificate cannot be used."""

    error_code = "OPU614"


class MetricsCertificate:
    """Certificate of a server. ``context`` is replaced in place, so the next connection has the new certificate."""

    def __init__(self, folder: Path | None, name: str, seconds: float = 10.0) -> None:
        """``folder``: has ``tls.crt`` and ``tls.key``; None for a self-signed certificate. ``name``: of the server.

        ``seconds``: between checks for replaced files.

        Raises CertificateError.
        """
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._files = None if folder is None else (folder / "tls.crt", folder / "tls.key")
        self._stamps: list[tuple[int, int]] = []
        self._seconds = seconds
        if self._files is None:
            _load_text(self.context, self_signed(name))
        else:
            self._load(self._files)

    async def run(self) -> None:
        """Follow replaced files until cancelled. If new files are invalid, the previous ones remain in use."""
        failed = ""
        while True:
            await asyncio.sleep(self._seconds)
            try:
                if self._files is not None and self._stamps != _stamps(self._files):
                    self._load(self._files)
                    _log.info("certificate of metrics read again")
                failed = ""
            except (CertificateError, OSError) as error:
                if str(error) != failed:
                    _log.error("cannot use the new certificate of metrics", error=str(error))
                failed = str(error)

    def _load(self, files: tuple[Path, Path]) -> None:
        try:
            stamps = _stamps(files)
            # Tried in another context first: a failure must not leave a certificate without its key.
            for context in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self.context):
                context.load_cert_chain(*files, _no_password)
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
            raise CertificateError(f"Cannot use {files[0]} with {files[1]} for metrics: {reason}.") from None
        self._stamps = stamps


def _stamps(files: tuple[Path, ...]) -> list[tuple[int, int]]:
    """Return what changes when kubelet replaces mounted files, which are links."""
    found = [each.stat() for each in files]
    return [(each.st_ino, each.st_mtime_ns) for each in found]


def _no_password() -> str:
    raise ValueError("the key has a password")


def self_signed(name: str) -> bytes:
    """Return a new key and its certificate, PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _VALIDITY)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name), x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private + certificate.public_bytes(serialization.Encoding.PEM)


def _load_text(context: ssl.SSLContext, text: bytes) -> None:
    """Load a key and its certificate. ssl reads files only, so they are in a file of memory without a name."""
    descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(text)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
