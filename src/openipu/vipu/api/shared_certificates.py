# SPDX-License-Identifier: GPL-3.0-or-later
"""Users that call with shared certificates. A certificate that becomes one of a single user rejects the others."""

from __future__ import annotations

from pathlib import Path

from openipu.vipu.tls import load, user_certificates

_MAX_KEYS = 1024  # the oldest is dropped; the authority of clients may have issued any number of certificates


class SharedCertificates:
    """Keys of shared certificates, with the users that called since the start of the controller."""

    def __init__(self) -> None:
        self._users: dict[str, set[str]] = {}

    def record(self, key: str, user: str) -> None:
        """Record a call. Any thread may do this."""
        users = self._users.get(key)
        if users is None:
            users = self._users.setdefault(key, set())
            if len(self._users) > _MAX_KEYS:
                self._users.pop(next(iter(self._users.copy())), None)
        users.add(user)

    def users(self, key: str) -> set[str]:
        """Return the users that called with a certificate."""
        return self._users.get(key, set()).copy()


def is_shared_by_all(key: str, certs: Path | None) -> bool:
    """Return whether a certificate has the key of ``client/client.crt``, which all users without certificates may have.

    ``certs``: folder of the certificates of a secure controller.
    """
    if certs is None:
        return False
    try:
        return user_certificates.fingerprint(load.read(Path(load.client_files(certs)["client_cert"]))) == key
    except load.TlsError:
        return False
