# SPDX-License-Identifier: GPL-3.0-or-later
"""Who calls, and what they may touch."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import string
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import ACCESS_KEY_METADATA, USER_ID_METADATA

from openipu.vipu.model import Role, State, User

# 11 of 62 characters: 65 random bits.
_KEY_LENGTH = 11
_KEY_ALPHABET = string.ascii_letters + string.digits


class AuthError(Exception):
    """The caller is not who it says it is, or does not say it; one sentence, and the ``user`` it claims to be."""

    def __init__(self, sentence: str, user: str = "") -> None:
        """See the class."""
        super().__init__(sentence)
        self.user = user


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody whose identity is established.

    ``allowed``: the allocations that it may touch, None for all, which makes an administrator.
    ``user`` is empty where there are no users, on a controller that is not secure.
    """

    user: str = ""
    allowed: frozenset[str] | None = None


ANYBODY = Caller()
"""The caller of a controller without users: it may do everything."""


def new_user(id: str, role: Role, allocations: tuple[str, ...]) -> tuple[User, str]:
    """A user with a new access key, and the key, which nobody can tell afterwards."""
    key = "".join(secrets.choice(_KEY_ALPHABET) for _ in range(_KEY_LENGTH))
    salt = secrets.token_hex(16)
    return User(id, role, allocations, hash_key(salt, key), salt), key


def hash_key(salt: str, key: str) -> str:
    """What is stored of an access key.

    One HMAC-SHA256 is enough: slow hashes make up for passwords that can be guessed, and nobody goes
    through 2^65 random keys. It costs a call microseconds instead of a tenth of a second.
    """
    return hmac.new(salt.encode(), key.encode(), hashlib.sha256).hexdigest()


class Authenticator:
    """Finds the user of a call from its metadata. The transport has verified a client certificate before."""

    def __init__(
        self,
        state: Callable[[], State],
        *,
        default_user_id: str = "",
        user_id_metadata: str = USER_ID_METADATA,
        access_key_metadata: str = ACCESS_KEY_METADATA,
    ) -> None:
        """Calls without credentials count as ``default_user_id`` when there is one."""
        self._state = state
        self._default = default_user_id
        self._user_id_metadata = user_id_metadata
        self._access_key_metadata = access_key_metadata

    def __call__(self, metadata: Iterable[tuple[str, str | bytes]]) -> Caller:
        """The caller; raises AuthError."""
        given = dict(metadata)
        id, key = given.get(self._user_id_metadata, ""), given.get(self._access_key_metadata, "")
        if not isinstance(id, str) or not isinstance(key, str):
            raise AuthError("User id and access key must be text, not binary metadata.")
        users = self._state().users
        if not id and not key:
            if not self._default:
                raise AuthError("This controller is secure: give a user id and its access key.")
            default = users.get(self._default)
            if default is None:
                raise AuthError(
                    f"No user id was given, and the default user {self._default!r} of this controller does not exist.",
                    self._default,
                )
            return _caller(default)
        user = users.get(id)
        # Of unknown users as much is computed as of known ones, so that the time tells nothing.
        stored = user.key_hash if user else ""
        right = hmac.compare_digest(hash_key(user.key_salt if user else "", key), stored)
        if user is None or not right:
            raise AuthError("The user id or its access key is wrong; ask an administrator for a new one.", id)
        return _caller(user)


def _caller(user: User) -> Caller:
    return Caller(user.id, None if user.role is Role.ADMIN else frozenset(user.allocations))
