# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of users with a key that is weak, or that the library does not support."""

from __future__ import annotations

import datetime
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from openipu.vipu.tls import issue, user_certificates
from openipu.vipu.tls.load import TlsError

_CURVE = "ec_paramgen_curve:secp112r1"


def _openssl(folder: Path, *options: str) -> bytes:
    command = ["openssl", "req", *options, "-newkey", "ec", "-pkeyopt", _CURVE, "-nodes", "-subj", "/CN=x"]
    file = folder / "made.pem"
    subprocess.run([*command, "-keyout", folder / "key.pem", "-out", file], check=True, capture_output=True)
    return file.read_bytes()


def test_a_certificate_with_an_unknown_kind_of_key(tmp_path: Path) -> None:
    with pytest.raises(TlsError, match="unknown kind of key"):
        user_certificates.describe(_openssl(tmp_path, "-x509"))


def test_a_request_with_an_unknown_kind_of_key(tmp_path: Path) -> None:
    issue.create(tmp_path / "certs", ["127.0.0.1"])
    with pytest.raises(TlsError, match="unknown kind of key"):
        user_certificates.sign(tmp_path / "certs", "alice", _openssl(tmp_path, "-new"))


NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x")])
WEAK = {
    "RSA": (lambda: rsa.generate_private_key(65537, 1024), "its RSA key has 1024 bits, at least 2048 are required"),
    "curve": (lambda: ec.generate_private_key(ec.SECP224R1()), "its elliptic curve key has 224 bits, at least 256"),
    "DSA": (lambda: dsa.generate_private_key(1024), "DSA keys are not supported"),
}
STRONG = {
    "RSA": lambda: rsa.generate_private_key(65537, 2048),
    "curve": lambda: ec.generate_private_key(ec.SECP256R1()),
    "Edwards curve": ed25519.Ed25519PrivateKey.generate,
}


def signed_by(key: Any) -> tuple[bytes, bytes]:
    """Return a certificate signing request and a certificate, both PEM, that a key has signed."""
    algorithm = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    now = datetime.datetime.now(datetime.UTC)
    request = x509.CertificateSigningRequestBuilder(NAME).sign(key, algorithm)
    builder = x509.CertificateBuilder(NAME, NAME, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    return request.public_bytes(Encoding.PEM), builder.sign(key, algorithm).public_bytes(Encoding.PEM)


@pytest.mark.parametrize("kind", WEAK)
def test_weak_keys_are_rejected(tmp_path: Path, kind: str) -> None:
    make, reason = WEAK[kind]
    request, certificate = signed_by(make())
    issue.create(tmp_path / "certs", ["127.0.0.1"])
    with pytest.raises(TlsError, match=f"^Cannot issue a certificate: {reason}"):
        user_certificates.sign(tmp_path / "certs", "alice", request)
    with pytest.raises(TlsError, match=f"^Cannot use the certificate: {reason}"):
        user_certificates.describe(certificate)


@pytest.mark.parametrize("kind", STRONG)
def test_strong_keys_are_accepted(tmp_path: Path, kind: str) -> None:
    request, certificate = signed_by(STRONG[kind]())
    issue.create(tmp_path / "certs", ["127.0.0.1"])
    issued = user_certificates.sign(tmp_path / "certs", "alice", request)
    assert user_certificates.describe(issued)[0] == user_certificates.describe(certificate)[0]
