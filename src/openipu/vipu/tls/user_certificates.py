# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of users: issue, and identification of the key in a certificate."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from openipu.vipu.tls import issue, load, renew
from openipu.vipu.tls.load import CLIENT, TlsError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes as PublicKey

MAX_BYTES = 16 << 10  # of a request or certificate
MIN_RSA_BITS = 2048  # as NIST SP 800-57 requires
MIN_CURVE_BITS = 256


def sign(certs: Path, user: str, request: bytes) -> bytes:
    """Return a certificate, PEM, for the key in a certificate signing request, PEM. Only the key is used of it.

    ``certs``: folder of ``issue.create``. Raises TlsError.
    """
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    if not (certs / issue.USERS).is_dir():
        raise TlsError(
            f"Cannot issue a certificate: there is no authority of users in {str(certs)!r}. Create one with "
            "'vipu-server renew'. If the certificates are of another authority, register a certificate with "
            "'vipu-admin create certificate --file'."
        )
    try:
        parsed = x509.load_pem_x509_csr(request[:MAX_BYTES])
        valid = parsed.is_signature_valid
    except (ValueError, TypeError, UnsupportedAlgorithm):
        valid = False
    if not valid:
        raise TlsError(
            "Cannot issue a certificate: the request is not a signed PKCS #10 request in PEM, or it has an unknown "
            "kind of key. Use an elliptic curve key, such as P-256."
        )
    _check_strength(parsed.public_key(), "Cannot issue a certificate")
    ca, key = renew.authority(certs, issue.USERS)
    return issue.pem(issue.issue(CLIENT, [], parsed.public_key(), ca, key, issue.VALIDITY, name=user))


def describe(pem: bytes) -> tuple[str, str, int]:
    """Return fingerprint of the key, serial number in hex, and end of validity in seconds since 1970.

    Raises TlsError for contents other than a certificate in PEM with a strong key that is valid now.
    """
    certificate = _parse(pem)
    load.check_validity(certificate, "the certificate")
    key = fingerprint(pem)
    _check_strength(certificate.public_key(), "Cannot use the certificate")
    return key, f"{certificate.serial_number:x}", int(certificate.not_valid_after_utc.timestamp())


def fingerprint(pem: bytes) -> str:
    """Return the SHA-256 hash of the public key in a certificate, in hex. A renewed certificate keeps it.

    Raises TlsError.
    """
    return _fingerprint(pem[:MAX_BYTES])


@functools.lru_cache(4096)  # every call passes here
def _fingerprint(pem: bytes) -> str:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    try:
        key = _parse(pem).public_key()
    except (ValueError, UnsupportedAlgorithm):
        raise TlsError(
            "Cannot use the certificate: it has an unknown kind of key. Use an elliptic curve key."
        ) from None
    info = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(info).hexdigest()


def has_expired(pem: bytes, now: float) -> bool:
    """Return whether a certificate has expired at this time, in seconds since 1970. Raises TlsError."""
    return now > _expiry(pem[:MAX_BYTES])


@functools.lru_cache(4096)
def _expiry(pem: bytes) -> float:
    return _parse(pem).not_valid_after_utc.timestamp()


def _check_strength(key: PublicKey, verb: str) -> None:
    """Raise TlsError for a key whose private key others could compute. ``verb``: start of the message."""
    from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa

    if isinstance(key, rsa.RSAPublicKey):
        kind, bits, least = "RSA", key.key_size, MIN_RSA_BITS
    elif isinstance(key, ec.EllipticCurvePublicKey):
        kind, bits, least = "elliptic curve", key.curve.key_size, MIN_CURVE_BITS
    elif isinstance(key, dsa.DSAPublicKey):
        raise TlsError(f"{verb}: DSA keys are not supported. Use an elliptic curve key, such as P-256.")
    else:
        return
    if bits < least:
        raise TlsError(f"{verb}: its {kind} key has {bits} bits, at least {least} are required. Use a longer key.")


def _parse(pem: bytes) -> x509.Certificate:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(pem[:MAX_BYTES])
    except ValueError:
        raise TlsError("Cannot use the certificate: it is not PEM. Use a PEM file.") from None
