# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules for the certificates of users."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from openipu.vipu.domain.errors import Code, RuleError, listing, quoted
from openipu.vipu.domain.model import Certificate, Put, RevokedKey, Role, User
from openipu.vipu.domain.state import State

MAX_CERTIFICATES = 16  # per user, revoked ones included
MIN_PREFIX = 8  # digits of a fingerprint that select a certificate


def needs_own(user: User) -> bool:
    """Return whether a user can call only with certificates of its own.

    From its first one on, every user needs them.
    """
    return bool(user.certificates) or not user.shared_certificate


def can_call(user: User) -> bool:
    """Return whether there are certificates with which a user may call."""
    return not needs_own(user) or any(not each.revoked for each in user.certificates)


def expiry(user: User) -> int | None:
    """Return when the last certificate of a user expires, in seconds since 1970; None if it has none."""
    return max((each.not_after for each in user.certificates if not each.revoked), default=None)


def may_use(user: User, key: str, state: State) -> bool:
    """Return whether a user may call with the certificate of this key."""
    if needs_own(user):
        return any(each.key == key and not each.revoked for each in user.certificates)
    return key not in state.certificate_users and key not in state.revoked_keys


def check_user(state: State, id: str) -> User:
    """Return the user that is to get a certificate. Raises RuleError when it does not exist."""
    return _user(state, id, _adding(id))


def sharing(state: State) -> list[str]:
    """Return the users that need no certificates of their own, sorted."""
    return sorted(user.id for user in state.users.values() if not needs_own(user))


def losing(state: State, id: str, key: str, callers: Iterable[str]) -> list[str]:
    """Return the callers that may no longer use a certificate when user ``id`` gets it, sorted."""
    users = (state.users.get(each) for each in callers if each != id)
    return sorted(user.id for user in users if user is not None and may_use(user, key, state))


def add(state: State, id: str, certificate: Certificate, callers: Iterable[str] = ()) -> User:
    """Return the user with another certificate. That of the same key is replaced. Raises RuleError.

    ``callers``: users that call with this certificate. If others than ``id`` may do so, it is rejected.
    """
    verb, user = _adding(id), check_user(state, id)
    if state.certificate_users.get(certificate.key, id) != id:
        raise RuleError(Code.ALREADY_EXISTS, f"{verb}: another user has a certificate with its key. Use a new key.")
    if certificate.key in state.revoked_keys or any(
        each.key == certificate.key and each.revoked for each in user.certificates
    ):
        raise RuleError(Code.FAILED_PRECONDITION, f"{verb}: its key was revoked. Use a new key.")
    losers = losing(state, id, certificate.key, callers)
    if losers:
        raise RuleError(
            Code.FAILED_PRECONDITION,
            f"{verb}: it is shared with {listing(losers)}. These users could not log in with it any more. "
            "Use a new key, or create certificates for these users first.",
        )
    others = tuple(each for each in user.certificates if each.key != certificate.key)
    if len(others) >= MAX_CERTIFICATES:
        raise RuleError(
            Code.RESOURCE_EXHAUSTED, f"{verb}: it has {MAX_CERTIFICATES} already. Remove the user and create it again."
        )
    return replace(user, certificates=(*others, certificate))


def revoke(state: State, id: str, prefix: str) -> tuple[User, str]:
    """Return the user without a certificate, and the fingerprint of its key. It stays in the record as revoked.

    ``prefix``: first digits of the fingerprint, at least ``MIN_PREFIX``. Raises RuleError.
    """
    verb = f"Cannot revoke a certificate of user {quoted(id)}"
    user = _user(state, id, verb)
    key = _matching(known(state, user), prefix.lower(), verb)
    if key in state.revoked_keys:
        return user, key
    changed = tuple(replace(each, revoked=each.revoked or each.key == key) for each in user.certificates)
    if all(each.revoked for each in changed) and user.role is Role.ADMIN and not _other_admins(state, id):
        raise RuleError(
            Code.FAILED_PRECONDITION, f"{verb}: it is the last one of the last administrator. Issue another one first."
        )
    return replace(user, certificates=changed), key


def _matching(certificates: list[Certificate], prefix: str, verb: str) -> str:
    """Return the only key with a prefix. Raises RuleError."""
    found = sorted({each.key for each in certificates if each.key.startswith(prefix)})
    if prefix in found:
        return prefix
    if len(prefix) < MIN_PREFIX:
        raise RuleError(
            Code.INVALID_ARGUMENT,
            f"{verb}: {quoted(prefix)} is too short for a fingerprint. Give at least {MIN_PREFIX} digits.",
        )
    if not found:
        raise RuleError(
            Code.NOT_FOUND, f"{verb}: it has none with the key fingerprint {quoted(prefix)}. List its certificates."
        )
    if len(found) > 1:
        raise RuleError(
            Code.INVALID_ARGUMENT, f"{verb}: {len(found)} fingerprints start with {quoted(prefix)}. Give more digits."
        )
    return found[0]


def known(state: State, user: User) -> list[Certificate]:
    """Return the certificates of a user, after the revoked ones of removed users with its id."""
    former = [each for each in state.revoked_keys.values() if each.user == user.id]
    return [*(Certificate(each.id, each.serial, each.not_after, revoked=True) for each in former), *user.certificates]


def kept_revocations(user: User) -> list[Put]:
    """Return the changes that keep the revoked keys of a user after its removal."""
    revoked = (each for each in user.certificates if each.revoked)
    return [Put(RevokedKey(each.key, user.id, each.serial, each.not_after)) for each in revoked]


def _adding(id: str) -> str:
    return f"Cannot add a certificate to user {quoted(id)}"


def _other_admins(state: State, id: str) -> bool:
    """Return whether another administrator can still call."""
    others = (user for user in state.users.values() if user.role is Role.ADMIN and user.id != id)
    return any(can_call(user) for user in others)


def _user(state: State, id: str, verb: str) -> User:
    user = state.users.get(id)
    if user is None:
        raise RuleError(Code.NOT_FOUND, f"{verb}: user {quoted(id)} does not exist. Check the id.")
    return user
