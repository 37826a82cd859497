# SPDX-License-Identifier: GPL-3.0-or-later
"""Authentication of callers: access keys, default user, roles."""

from __future__ import annotations

import pytest

from openipu.vipu.api import auth
from openipu.vipu.api.auth import ACCESS_KEY_METADATA, USER_ID_METADATA, Authenticator, AuthError, Caller
from openipu.vipu.domain.context import ALL_ALLOCATIONS
from openipu.vipu.domain.model import Put, Role
from openipu.vipu.domain.state import State


def state_with(*users: auth.User) -> State:
    state = State()
    state.apply(Put(user) for user in users)
    return state


def credentials(id: str, key: str) -> list[tuple[str, str | bytes]]:
    return [("user-agent", "grpc"), (USER_ID_METADATA, id), (ACCESS_KEY_METADATA, key)]


def test_a_key_is_random_and_not_stored() -> None:
    made = [auth.new_user("alice", Role.USER, ()) for _ in range(200)]
    assert {len(key) for _, key in made} == {11}
    assert len({key for _, key in made}) == 200
    assert all(key.isalnum() and key.isascii() for _, key in made)
    assert len({user.key_salt for user, _ in made}) == 200
    for user, key in made:
        assert key not in repr(user)
        assert user.key_hash == auth.hash_key(user.key_salt, key)


def test_the_right_key_gives_role_and_rights() -> None:
    alice, alices = auth.new_user("alice", Role.USER, ("a1", "a2"))
    bob, bobs = auth.new_user("bob", Role.USER, (), all_allocations=True)
    root, roots = auth.new_user("root", Role.ADMIN, ("a1",))
    authenticate = Authenticator(lambda: state_with(alice, bob, root))
    assert authenticate(credentials("alice", alices)) == Caller("alice", frozenset({"a1", "a2"}))
    assert authenticate(credentials("bob", bobs)) == Caller("bob", ALL_ALLOCATIONS)
    assert authenticate(credentials("root", roots)) == Caller("root", None)
    users = {"alice": alices, "bob": bobs, "root": roots}
    assert [id for id, key in users.items() if authenticate(credentials(id, key)).administrator] == ["root"]


@pytest.mark.parametrize("id", ["alice", "bob", "", "\x00", "x" * 10_000])
def test_every_wrong_pair_is_rejected_with_the_same_message(id: str) -> None:
    alice, key = auth.new_user("alice", Role.USER, ())
    authenticate = Authenticator(lambda: state_with(alice))
    for wrong in ("", key[:-1], key + "x", key.swapcase(), "x" * 10_000):
        if not id and not wrong:
            continue
        with pytest.raises(
            AuthError, match=r"^Cannot log in: the user id or its access key is wrong\. Ask an administrator"
        ):
            authenticate(credentials(id, wrong))


def test_a_removed_user_is_rejected_at_once() -> None:
    alice, key = auth.new_user("alice", Role.USER, ())
    state = state_with(alice)
    authenticate = Authenticator(lambda: state)
    authenticate(credentials("alice", key))
    state.users.clear()
    with pytest.raises(AuthError):
        authenticate(credentials("alice", key))


def test_without_credentials() -> None:
    guest, _ = auth.new_user("guest", Role.USER, ("a1",))
    with pytest.raises(
        AuthError, match=r"Cannot log in: this controller is secure\. Give a user id and its access key"
    ):
        Authenticator(lambda: state_with(guest))([])
    assert Authenticator(lambda: state_with(guest), default_user_id="guest")([]) == Caller("guest", frozenset({"a1"}))
    with pytest.raises(AuthError, match="the default user 'absent' of this controller does not exist"):
        Authenticator(lambda: state_with(guest), default_user_id="absent")([])


def test_a_default_user_does_not_permit_a_wrong_key() -> None:
    guest, _ = auth.new_user("guest", Role.USER, ())
    authenticate = Authenticator(lambda: state_with(guest), default_user_id="guest")
    for given in (credentials("guest", ""), credentials("guest", "wrong"), [(ACCESS_KEY_METADATA, "wrong")]):
        with pytest.raises(AuthError, match="is wrong"):
            authenticate(given)


def test_metadata_keys_are_configurable() -> None:
    alice, key = auth.new_user("alice", Role.USER, ())
    authenticate = Authenticator(lambda: state_with(alice), user_id_metadata="who", access_key_metadata="key")
    assert authenticate([("who", "alice"), ("key", key)]).user == "alice"
    with pytest.raises(AuthError):
        authenticate(credentials("alice", key))


@pytest.mark.parametrize("twice", [(USER_ID_METADATA, "bob"), (ACCESS_KEY_METADATA, "wrong")])
def test_repeated_credentials_are_rejected(twice: tuple[str, str]) -> None:
    alice, key = auth.new_user("alice", Role.USER, ())
    authenticate = Authenticator(lambda: state_with(alice))
    for given in ([twice, *credentials("alice", key)], [*credentials("alice", key), twice]):
        with pytest.raises(AuthError, match="the call has several user ids or access keys"):
            authenticate(given)


def test_binary_metadata_is_rejected() -> None:
    with pytest.raises(AuthError, match="user id or access key is binary metadata"):
        Authenticator(State)([(USER_ID_METADATA, b"alice"), (ACCESS_KEY_METADATA, "key")])
