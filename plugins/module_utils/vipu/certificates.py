# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Key and certificate of a user, in files. The key is made here and never leaves this machine."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import typing as t
from pathlib import Path

from ..atomic_files import write_private
from .client import VipuError

# Codes of errors after which the controller may still have issued the certificate.
_UNCERTAIN = ("CANCELLED", "DEADLINE_EXCEEDED", "INTERNAL", "UNAVAILABLE", "UNKNOWN")


def paths(folder: Path, user: str) -> tuple[Path, Path]:
    """Return the files of certificate and key."""
    return folder / ("%s.crt" % user), folder / ("%s.key" % user)


def fingerprint(key_file: Path) -> str | None:
    """Return the SHA-256 hash of the public key of a private key, in hex; None when the file does not exist.

    Raises OSError, and ValueError or TypeError for a file without a usable key.
    """
    return _hash(_private_key(key_file).public_key()) if key_file.exists() else None


def _private_key(key_file: Path) -> t.Any:
    """Return the key of a file. Raises OSError, ValueError and TypeError."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    try:
        return serialization.load_pem_private_key(key_file.read_bytes(), None)
    except UnsupportedAlgorithm as error:
        raise ValueError(str(error)) from None


@contextlib.contextmanager
def discarding_new_key(key_file: Path) -> t.Iterator[None]:
    """Remove a key file that did not exist before, when the controller rejects its certificate."""
    is_new = not key_file.exists()
    try:
        yield
    except VipuError as error:
        if is_new and error.code not in _UNCERTAIN:
            key_file.unlink(missing_ok=True)
        raise


def is_valid(certificate_file: Path, key: str, until: datetime.datetime) -> bool:
    """Return whether a file has a certificate of the key with this fingerprint that is valid until then.

    Raises OSError for a file that exists and cannot be read.
    """
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        certificate = x509.load_pem_x509_certificate(certificate_file.read_bytes())
        public_key = certificate.public_key()
    except (FileNotFoundError, ValueError, UnsupportedAlgorithm):
        return False
    return _hash(public_key) == key and certificate.not_valid_after_utc > until


def _hash(public_key: t.Any) -> str:
    from cryptography.hazmat.primitives import serialization

    info = public_key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(info).hexdigest()


def signing_request(key_file: Path, user: str) -> bytes:
    """Return a certificate signing request for the key in a file, which is created if it does not exist.

    Raises OSError, and ValueError for a file without a usable key.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    if key_file.exists():
        key = _private_key(key_file)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("it is not an elliptic curve key in PEM")
    else:
        key = ec.generate_private_key(ec.SECP256R1())
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        write_private(key_file, pem.decode())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, user)])
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    return request.public_bytes(serialization.Encoding.PEM)
