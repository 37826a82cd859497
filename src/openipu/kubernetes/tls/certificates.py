# SPDX-License-Identifier: GPL-3.0-or-later
"""Serving certificates. Each one has a CA of its own, whose key is discarded once it has signed."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = datetime.timedelta(days=365)
_RENEWED_SHARE = 1 / 3  # of its lifetime that a certificate has left when it is renewed
_CLOCK_DIFFERENCE = datetime.timedelta(minutes=5)  # between hosts


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A serving certificate and its key in PEM. The key appears in no text for humans."""

    certificate: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Issued:
    """A new key pair, and the CA certificate with which clients verify it."""

    authority: bytes
    pair: KeyPair


def issue(names: Sequence[str], lifetime: datetime.timedelta = LIFETIME) -> Issued:
    """Return a certificate for host names and IP addresses, signed by a new CA."""
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ipu-operator")])
    authority = (
        _builder(subject, subject, authority_key, lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    certificate = (
        _builder(name, subject, key, lifetime)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(each) for each in names]), critical=False)
        .add_extension(issuer, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Issued(authority.public_bytes(pem), KeyPair(certificate.public_bytes(pem), private))


def has_key(pair: KeyPair) -> bool:
    """Return whether the key belongs to the certificate. Raises ValueError if one of them cannot be read."""
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    try:
        key = serialization.load_pem_private_key(pair.key, None)
    except TypeError:
        raise ValueError("the key has a password") from None
    return key.public_key() == certificate.public_key()


def is_usable(pair: KeyPair, bundle: bytes, names: Sequence[str], now: datetime.datetime) -> bool:
    """Return whether a server can use a key pair: valid now, for all names, and signed by a CA of a bundle."""
    try:
        certificate = x509.load_pem_x509_certificate(pair.certificate)
        matches = has_key(pair)
        named = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return False
    is_named = all(_general_name(each) in named for each in names)
    is_valid = certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc
    return matches and is_named and is_valid and bool(issuers(pair, bundle))


def is_due(pair: KeyPair, now: datetime.datetime) -> bool:
    """Return whether a certificate must be renewed."""
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    lifetime = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return certificate.not_valid_after_utc - now < lifetime * _RENEWED_SHARE


def issuers(pair: KeyPair, bundle: bytes) -> bytes:
    """Return the CA certificates of a bundle that have signed a certificate."""
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    pem = serialization.Encoding.PEM
    return b"".join(each.public_bytes(pem) for each in _authorities(bundle) if _has_signed(each, certificate))


def expiry(pair: KeyPair) -> datetime.datetime:
    """Return when a certificate expires."""
    return x509.load_pem_x509_certificate(pair.certificate).not_valid_after_utc


def _authorities(bundle: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(bundle)
    except ValueError:
        return []


def _has_signed(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, lifetime: datetime.timedelta
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_DIFFERENCE)
        .not_valid_after(now + lifetime)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
