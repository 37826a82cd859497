# SPDX-License-Identifier: GPL-3.0-or-later
"""Authentication of callers and their access rights."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import string
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from openipu.shared.vipu.client import ACCESS_KEY_METADATA, USER_ID_METADATA
from openipu.vipu.api.shared_certificates import SharedCertificates
from openipu.vipu.domain import certificates
from openipu.vipu.domain.context import ALL_ALLOCATIONS, Allowed
from openipu.vipu.domain.model import Role, User
from openipu.vipu.domain.state import State
from openipu.vipu.tls import user_certificates
from openipu.vipu.tls.load import TlsError

# 11 of 62 characters: 65 random bits.
_KEY_LENGTH = 11
_KEY_ALPHABET = string.ascii_letters + string.digits


class AuthError(Exception):
    """Raised for missing or wrong credentials. ``user`` is the id that the caller sent."""

    error_code = "OPU610"

    def __init__(self, message: str, user: str = "") -> None:
        super().__init__(message)
        self.user = user


@dataclass(frozen=True, slots=True)
class Caller:
    """Authenticated caller.

    ``allowed``: allocations that it may use, None for an administrator, who may manage all objects too.
    ``user`` is empty on a controller without ``--secure``, which has no users.
    """

    user: str = ""
    allowed: Allowed | None = None

    @property
    def administrator(self) -> bool:
        """Return whether it has all rights. A user of all allocations has not."""
        return self.allowed is None


UNAUTHENTICATED_ADMINISTRATOR = Caller()
"""Caller without credentials, with all rights. Controllers without users assume it for every call."""


def new_user(
    id: str,
    role: Role,
    allocations: tuple[str, ...],
    *,
    all_allocations: bool = False,
    shared_certificate: bool = False,
) -> tuple[User, str]:
    """Return a user with a new access key, and the key itself, which is not stored."""
    key = "".join(secrets.choice(_KEY_ALPHABET) for _ in range(_KEY_LENGTH))
    salt = secrets.token_hex(16)
    user = User(
        id,
        role,
        allocations,
        hash_key(salt, key),
        salt,
        shared_certificate=shared_certificate,
        all_allocations=all_allocations,
    )
    return user, key


def hash_key(salt: str, key: str) -> str:
    """Return the hash of an access key, as it is stored.

    One HMAC-SHA256 is enough: slow hashes protect guessable passwords, and 2^65 random keys cannot be
    searched. It takes microseconds per call instead of a tenth of a second.
    """
    return hmac.new(salt.encode(), key.encode(), hashlib.sha256).hexdigest()


class Authenticator:
    """Map the metadata of a call to a user. The transport has already verified the client certificate."""

    def __init__(
        self,
        state: Callable[[], State],
        *,
        default_user_id: str = "",
        user_id_metadata: str = USER_ID_METADATA,
        access_key_metadata: str = ACCESS_KEY_METADATA,
    ) -> None:
        """Read users from ``state``. ``default_user_id``: user of calls without credentials, empty for none."""
        self._state = state
        self._default = default_user_id
        self._user_id_metadata = user_id_metadata
        self._access_key_metadata = access_key_metadata
        self.shared = SharedCertificates()

    def __call__(self, metadata: Iterable[tuple[str, str | bytes]]) -> Caller:
        """Return the caller. Raises AuthError."""
        given = [item for item in metadata if item[0] in (self._user_id_metadata, self._access_key_metadata)]
        values = dict(given)
        if len(values) < len(given):
            raise AuthError("Cannot log in: the call has several user ids or access keys. Send one of each.")
        id, key = values.get(self._user_id_metadata, ""), values.get(self._access_key_metadata, "")
        if not isinstance(id, str) or not isinstance(key, str):
            raise AuthError("Cannot log in: the user id or access key is binary metadata. Send them as text.")
        users = self._state().users
        if not id and not key:
            if not self._default:
                raise AuthError("Cannot log in: this controller is secure. Give a user id and its access key.")
            default = users.get(self._default)
            if default is None:
                raise AuthError(
                    f"Cannot log in without a user id: the default user {self._default!r} of this controller does not "
                    "exist. Give a user id and its access key.",
                    self._default,
                )
            return _caller(default)
        user = users.get(id)
        # Hash for unknown users too, so that the response time does not reveal which users exist.
        stored = user.key_hash if user else ""
        matches = hmac.compare_digest(hash_key(user.key_salt if user else "", key), stored)
        if user is None or not matches:
            raise AuthError(
                "Cannot log in: the user id or its access key is wrong. Ask an administrator for a new one.", id
            )
        return _caller(user)

    def check_certificate(self, caller: Caller, connection: Mapping[str, Sequence[bytes]]) -> None:
        """Raise AuthError when the caller may not use the certificate of its connection.

        ``connection``: authentication context of gRPC. Without TLS, there is no certificate to check. TLS checks the
        expiry of a certificate only at the start of a connection, which may stay open for longer.
        """
        pems = connection.get("x509_pem_cert")
        if not pems:
            return
        state = self._state()
        user = state.users.get(caller.user)
        try:
            key = user_certificates.fingerprint(pems[0])
            expired = user_certificates.has_expired(pems[0], time.time())
        except TlsError:
            key, expired = "", False
        if expired:
            raise AuthError(
                "Cannot log in: the certificate of this connection has expired. Connect again with a renewed one.",
                caller.user,
            )
        if user is None or not key or not certificates.may_use(user, key, state):
            raise AuthError(
                "Cannot log in: the certificate is not one of this user, or was revoked. Use the user's own "
                "certificate, or ask an administrator for a new one.",
                caller.user,
            )
        if not certificates.needs_own(user):
            self.shared.record(key, user.id)


def _caller(user: User) -> Caller:
    if user.role is Role.ADMIN:
        return Caller(user.id)
    return Caller(user.id, ALL_ALLOCATIONS if user.all_allocations else frozenset(user.allocations))
