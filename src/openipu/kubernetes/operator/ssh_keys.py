# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys of jobs that start programs with SSH."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from openipu.kubernetes.domain import ssh


def create() -> dict[str, str]:
    """Return new keys as the files of a Secret: name -> text."""
    identity, host = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    return {
        ssh.IDENTITY: _private(identity),
        ssh.AUTHORIZED_KEYS: f"{_public(identity)}\n",
        ssh.HOST_KEY: _private(host),
        ssh.KNOWN_HOSTS: ssh.known_hosts(_public(host)),
    }


def _private(key: Ed25519PrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()


def _public(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
