# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules for the certificates of users."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openipu.vipu.domain import certificates, rules
from openipu.vipu.domain.context import Context
from openipu.vipu.domain.errors import RuleError
from openipu.vipu.domain.invariants import violations
from openipu.vipu.domain.model import Certificate, Delete, Kind, Put, RevokedKey, Role, User
from openipu.vipu.domain.specs import Removal
from openipu.vipu.domain.state import State

FIRST, SECOND = Certificate("k1", "1", 100), Certificate("k2", "2", 200)


def state(*, shared: bool = False, **users: tuple[Certificate, ...]) -> State:
    """Return a state with these users; those of role ``admin`` have an id that starts with ``root``."""
    made = State()
    made.apply(
        Put(User(id, Role.ADMIN if id.startswith("root") else Role.USER, (), "hash", "salt", own, shared))
        for id, own in users.items()
    )
    return made


@pytest.mark.parametrize(
    ("user", "key", "shared", "allowed"),
    [
        ("alice", "k1", False, True),
        ("alice", "k2", False, False),
        ("alice", "k2", True, False),
        ("alice", "other", True, False),
        ("bob", "k2", True, False),  # revoked
        ("bob", "other", True, False),
        ("carol", "k1", True, False),
        ("carol", "k2", True, False),
        ("carol", "other", True, True),
        ("carol", "other", False, False),
    ],
)
def test_who_may_use_a_certificate(user: str, key: str, shared: bool, allowed: bool) -> None:
    found = state(shared=shared, alice=(FIRST,), bob=(replace(SECOND, revoked=True),), carol=())
    assert certificates.may_use(found.users[user], key, found) is allowed


@pytest.mark.parametrize(
    ("own", "shared", "needs", "can"),
    [
        ((), False, True, False),
        ((), True, False, True),
        ((FIRST,), True, True, True),
        ((replace(FIRST, revoked=True),), True, True, False),
    ],
)
def test_users_need_own_certificates_from_the_first_one_on(
    own: tuple[Certificate, ...], shared: bool, needs: bool, can: bool
) -> None:
    user = state(shared=shared, alice=own).users["alice"]
    assert (certificates.needs_own(user), certificates.can_call(user)) == (needs, can)


def test_a_renewed_certificate_replaces_that_of_its_key() -> None:
    renewed = replace(FIRST, serial="9", not_after=900)
    assert certificates.add(state(alice=(FIRST, SECOND)), "alice", renewed).certificates == (SECOND, renewed)


@pytest.mark.parametrize(
    ("user", "certificate", "reason"),
    [
        ("mallory", FIRST, "user 'mallory' does not exist. Check the id."),
        ("bob", FIRST, "another user has a certificate with its key. Use a new key."),
        ("bob", SECOND, "its key was revoked. Use a new key."),
    ],
)
def test_rejected_certificates(user: str, certificate: Certificate, reason: str) -> None:
    found = state(alice=(FIRST,), bob=(replace(SECOND, revoked=True),))
    with pytest.raises(RuleError) as caught:
        certificates.add(found, user, certificate)
    assert str(caught.value) == f"Cannot add a certificate to user '{user}': {reason}"


@pytest.mark.parametrize(
    ("callers", "owners", "others"),
    [
        (["alice", "bob"], (), "'bob'. These users"),
        (["alice", "bob", "carol", "dave", "erin"], (), "'bob', 'carol', 'dave' and 1 more. These users"),
        (["alice", "bob"], ("bob",), ""),
        (["alice", "removed"], (), ""),
        ([], (), ""),
    ],
)
def test_a_shared_certificate_is_registered_without_other_callers_only(
    callers: list[str], owners: tuple[str, ...], others: str
) -> None:
    users = {id: (SECOND,) if id in owners else () for id in ("alice", "bob", "carol", "dave", "erin")}
    found = state(shared=True, **users)
    if not others:
        assert certificates.add(found, "alice", FIRST, callers).certificates == (FIRST,)
        return
    with pytest.raises(RuleError, match=f"it is shared with {others}"):
        certificates.add(found, "alice", FIRST, callers)


def test_the_number_of_certificates_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "MAX_CERTIFICATES", 1)
    with pytest.raises(RuleError, match="it has 1 already"):
        certificates.add(state(alice=(FIRST,)), "alice", SECOND)


def test_revoked_certificates_stay_in_the_record() -> None:
    user, key = certificates.revoke(state(alice=(FIRST, SECOND)), "alice", "k1")
    assert (user.certificates, key) == ((replace(FIRST, revoked=True), SECOND), "k1")


@pytest.mark.parametrize(
    ("user", "prefix", "reason"),
    [
        ("mallory", "k1", "user 'mallory' does not exist. Check the id."),
        ("alice", "cd" * 4, "it has none with the key fingerprint 'cdcdcdcd'. List its certificates."),
        ("alice", "ab" * 3, "'ababab' is too short for a fingerprint. Give at least 8 digits."),
        ("alice", "", "'' is too short for a fingerprint. Give at least 8 digits."),
        ("alice", "ab" * 5, "2 fingerprints start with 'ababababab'. Give more digits."),
    ],
)
def test_certificates_that_cannot_be_revoked(user: str, prefix: str, reason: str) -> None:
    found = state(alice=(replace(FIRST, key="ab" * 32), replace(FIRST, key="ab" * 30 + "cdcd")))
    with pytest.raises(RuleError) as caught:
        certificates.revoke(found, user, prefix)
    assert caught.value.message == f"Cannot revoke a certificate of user '{user}': {reason}"


def test_the_first_digits_of_a_fingerprint_select_a_certificate() -> None:
    own = (replace(FIRST, key="ab" * 32), replace(FIRST, key="cd" * 32))
    found = state(alice=own)
    user, key = certificates.revoke(found, "alice", "CDCDCDCD")
    assert (user.certificates, key) == ((own[0], replace(own[1], revoked=True)), "cd" * 32)
    # A revocation of a removed user is in the list of its successor, and stays as it is.
    found.apply([Put(RevokedKey("ef" * 32, "alice", "1", 100))])
    assert certificates.revoke(found, "alice", "ef" * 4) == (found.users["alice"], "ef" * 32)


def test_the_last_administrator_keeps_a_certificate() -> None:
    with pytest.raises(RuleError, match="it is the last one of the last administrator"):
        certificates.revoke(state(root=(FIRST,)), "root", "k1")
    with pytest.raises(RuleError, match="it is the last one of the last administrator"):
        certificates.revoke(state(root=(FIRST,), root2=()), "root", "k1")
    revoked, _ = certificates.revoke(state(shared=True, root=(FIRST,), root2=()), "root", "k1")
    assert revoked.certificates[0].revoked
    revoked, _ = certificates.revoke(state(root=(FIRST, SECOND)), "root", "k1")
    assert [each.revoked for each in revoked.certificates] == [True, False]


@pytest.mark.parametrize(
    ("shared", "root", "other", "reason"),
    [
        (False, (FIRST,), (), "the other administrators have no valid certificates"),
        (False, (FIRST,), (replace(SECOND, revoked=True),), "the other administrators have no valid certificates"),
        (False, (FIRST,), (SECOND,), ""),
        (False, (), (), ""),  # those of a controller without TLS
        (True, (FIRST,), (), ""),
    ],
)
def test_the_last_administrator_that_can_call_stays(
    shared: bool, root: tuple[Certificate, ...], other: tuple[Certificate, ...], reason: str
) -> None:
    found = state(shared=shared, root=root, root2=other)
    removal = Removal(Kind.USER, "root")
    if reason:
        with pytest.raises(RuleError, match=f"Cannot remove user 'root': {reason}. Create one for another"):
            rules.remove(found, removal, Context())
    else:
        assert rules.remove(found, removal, Context()) == [Delete(Kind.USER, "root")]


def test_a_removed_user_frees_its_keys() -> None:
    found = state(alice=(FIRST,), bob=())
    found.apply([Delete(Kind.USER, "alice")])
    assert found.certificate_users == {}
    assert certificates.add(found, "bob", FIRST).certificates == (FIRST,)


def test_a_revoked_key_of_a_removed_user_stays_revoked() -> None:
    found = state(alice=(replace(FIRST, revoked=True), SECOND), bob=())
    before = found.copy()
    changes = rules.remove(found, Removal(Kind.USER, "alice"), Context())
    assert changes == [Delete(Kind.USER, "alice"), Put(RevokedKey("k1", "alice", "1", 100))]
    undo = found.apply(changes)
    assert violations(found) == []
    for id in ("alice", "bob"):
        found.apply([Put(User(id, Role.USER, (), "hash", "salt", shared_certificate=True))])
        with pytest.raises(RuleError, match=f"to user '{id}': its key was revoked. Use a new key."):
            certificates.add(found, id, FIRST)
        assert not certificates.may_use(found.users[id], "k1", found)
    assert certificates.known(found, found.users["alice"]) == [replace(FIRST, revoked=True)]
    assert certificates.known(found, found.users["bob"]) == []
    found.apply([Delete(Kind.USER, "alice"), Put(before.users["bob"]), *undo])
    assert found == before


def test_no_user_has_a_revoked_key() -> None:
    found = state(alice=(FIRST,))
    found.apply([Put(RevokedKey("k1", "bob", "1", 100))])
    assert violations(found) == ["The revoked_key 'k1' is invalid: user 'alice' has it."]
