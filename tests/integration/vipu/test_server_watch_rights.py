# SPDX-License-Identifier: GPL-3.0-or-later
"""``Watch`` with ``--secure``: tenants see their allocations only, and rights are checked while the stream runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import grpc
import pytest

from openipu.shared.vipu.contract import admin
from openipu.vipu.api import watch
from openipu.vipu.domain.model import Change, Delete, Kind, Put, Role
from openipu.vipu.domain.state import State
from tests.integration.vipu.test_server_secure import User, certs, secure, tenants
from tests.integration.vipu_servers import InProcess
from tests.integration.watching import Watcher, listed, listed_by_tenant
from tests.waiting import until

__all__ = ["certs", "secure", "tenants"]

Tenants = tuple[User, User, User]


@pytest.fixture(autouse=True)
def frequent_bookmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report each revision soon, even when its changes are not visible."""
    monkeypatch.setattr(watch, "_BOOKMARK_SECONDS", 0.05)
    monkeypatch.setattr(watch, "_TICK_SECONDS", 0.02)


@pytest.fixture
def start() -> Iterator[Callable[..., Watcher]]:
    """Yield a factory of watchers: ``start(user, "tenant", **request)``."""
    made: list[Watcher] = []

    def make(user: User, stub: str = "tenant", **options: Any) -> Watcher:
        made.append(Watcher(getattr(user.client, stub), user.metadata, **options))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def server(user: User) -> InProcess:
    assert isinstance(user.client, InProcess)
    return user.client


def settle(user: User) -> int:
    """Wait until no partition is PENDING, and return the revision."""
    controller = server(user).server.controller
    until(lambda: all(each.ready.name == "ACTIVE" for each in list(controller.state.partitions.values())))
    return controller.events.revision


def set_user(user: User, id: str, **fields: Any) -> int:
    """Change the record of a user."""

    def command(state: State) -> tuple[list[Change], None]:
        return [Put(replace(state.users[id], **fields))], None

    server(user).server.controller.submit(command).result(10)
    return server(user).server.controller.events.revision


@pytest.mark.parametrize(
    ("caller", "stub", "code"),
    [
        ("administrator", "admin", None),
        ("administrator", "tenant", None),
        ("user", "admin", grpc.StatusCode.PERMISSION_DENIED),
        ("user", "tenant", None),
        ("wrong key", "admin", grpc.StatusCode.UNAUTHENTICATED),
        ("wrong key", "tenant", grpc.StatusCode.UNAUTHENTICATED),
        ("anonymous", "admin", grpc.StatusCode.UNAUTHENTICATED),
        ("anonymous", "tenant", grpc.StatusCode.UNAUTHENTICATED),
    ],
)
def test_callers(
    tenants: Tenants, start: Callable[..., Watcher], caller: str, stub: str, code: grpc.StatusCode | None
) -> None:
    root, alice, _ = tenants
    callers = {
        "administrator": root,
        "user": alice,
        "wrong key": User(root.client, "alice", "wrong"),
        "anonymous": User(root.client),
    }
    found = start(callers[caller], stub)
    if code is None:
        found.wait()
    else:
        assert found.ended() is code
        assert found.events == []


def test_users_see_what_their_lists_show(tenants: Tenants, start: Callable[..., Watcher]) -> None:
    root, alice, bob = tenants
    streams = [(user, start(user).wait()) for user in (alice, bob)]
    alice.create("pa2", "a1")
    bob.create("pb2", "a2")
    last = settle(root)
    for user, found in streams:
        until(lambda user=user, found=found: found.objects == listed_by_tenant(user.client, metadata=user.metadata))
        names = {id for _, id in found.objects}
        assert names == ({"a1", "pa", "pa2"} if user is alice else {"a2", "pb", "pb2"})
        seen = {event.id for event in found.events}
        assert seen == names
    assert start(root, "admin").wait(last).objects == listed(root.client, metadata=root.metadata)


def test_filters_give_no_more_rights(tenants: Tenants, start: Callable[..., Watcher]) -> None:
    _, alice, _ = tenants
    for fields in ({"allocation_id": "a2"}, {"ids": ["pb", "a2"]}):
        found = start(alice, **fields).wait()
        assert found.events == []


def test_an_allocation_that_is_taken_away_is_removed_from_the_view(
    tenants: Tenants, start: Callable[..., Watcher]
) -> None:
    root, alice, _ = tenants
    found = start(alice).wait(settle(root))
    found.wait(set_user(root, "alice", allocations=("a1", "a2")))
    assert found.ids("partition") == ["pa", "pb"]
    last = set_user(root, "alice", allocations=("a2",))
    found.wait(last)
    assert found.ids("partition") == ["pb"]
    assert found.objects == listed_by_tenant(root.client, metadata=alice.metadata)
    set_user(root, "alice", allocations=())
    until(lambda: found.objects == {})


def test_a_user_of_all_allocations_sees_new_ones(tenants: Tenants, start: Callable[..., Watcher]) -> None:
    root, alice, bob = tenants
    found = start(alice).wait(settle(root))
    found.wait(set_user(root, "alice", allocations=(), all_allocations=True))
    assert found.ids("partition") == ["pa", "pb"]
    spec = admin.AllocationSpec(id="a3", cluster_id="cl0", size=1)
    root("admin", "CreateAllocation", admin.CreateAllocationRequest(spec=spec))
    alice.create("pc", "a3")
    found.wait(settle(root))
    assert found.objects == listed_by_tenant(root.client, metadata=alice.metadata)
    assert found.ids("allocation") == ["a1", "a2", "a3"]
    found.stop()
    set_user(root, "alice", allocations=("a1",), all_allocations=False)
    bob.create("pb2", "a2")
    resumed = start(alice, after=found).wait(settle(root))
    assert resumed.objects == listed_by_tenant(root.client, metadata=alice.metadata)
    assert resumed.ids("allocation") == ["a1"]


def test_a_user_continues_across_a_change_of_its_rights(tenants: Tenants, start: Callable[..., Watcher]) -> None:
    root, alice, bob = tenants
    first = start(alice).wait(settle(root))
    first.stop()
    set_user(root, "alice", allocations=("a2",))
    bob.create("pb2", "a2")
    last = settle(root)
    resumed = start(alice, after=first).wait(last)
    assert resumed.objects == listed_by_tenant(root.client, metadata=alice.metadata)


def delete(state: State) -> tuple[list[Change], None]:
    return [Delete(Kind.USER, "alice")], None


def replace_key(state: State) -> tuple[list[Change], None]:
    return [Put(replace(state.users["alice"], key_hash="another"))], None


def promote(state: State) -> tuple[list[Change], None]:
    return [Put(replace(state.users["alice"], role=Role.ADMIN))], None


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (delete, grpc.StatusCode.UNAUTHENTICATED),
        (replace_key, grpc.StatusCode.UNAUTHENTICATED),
        (promote, grpc.StatusCode.OUT_OF_RANGE),
    ],
)
def test_streams_end_with_the_rights(
    tenants: Tenants, start: Callable[..., Watcher], change: Any, code: grpc.StatusCode
) -> None:
    root, alice, bob = tenants
    found, other = start(alice).wait(), start(bob).wait()
    server(root).server.controller.submit(change).result(10)
    assert found.ended() is code
    bob.create("pb2", "a2")
    other.wait(settle(root))


def test_an_administrator_who_becomes_a_user_loses_the_stream(tenants: Tenants, start: Callable[..., Watcher]) -> None:
    root, _, _ = tenants
    spec = admin.UserSpec(id="second", role=admin.ROLE_ADMIN)
    key = root("admin", "CreateUser", admin.CreateUserRequest(spec=spec)).access_key  # type: ignore[attr-defined]
    found = start(User(root.client, "second", key), "admin").wait()
    set_user(root, "second", role=Role.USER)
    assert found.ended() is grpc.StatusCode.PERMISSION_DENIED


def test_a_role_that_changed_between_two_streams_needs_a_new_list(
    tenants: Tenants, start: Callable[..., Watcher]
) -> None:
    root, alice, _ = tenants
    first = start(alice).wait(settle(root))
    set_user(root, "alice", role=Role.ADMIN)
    found = start(alice, since_revision=first.revision)
    assert found.ended() is grpc.StatusCode.OUT_OF_RANGE
    assert "the rights of the user have changed. List again" in found.details


def test_streams_of_a_user_are_limited(
    tenants: Tenants, start: Callable[..., Watcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_MAX_STREAMS_PER_USER", 2)
    monkeypatch.setattr(watch, "_MAX_STREAMS_OF_USERS", 3)
    root, alice, bob = tenants
    first = [start(user).wait() for user in (alice, alice)]
    assert start(alice).ended() is grpc.StatusCode.RESOURCE_EXHAUSTED
    start(bob).wait()
    assert start(bob).ended() is grpc.StatusCode.RESOURCE_EXHAUSTED
    for _ in range(3):
        start(root, "admin").wait()
    first[0].stop()
    until(lambda: server(root).server._services.watches._counts["alice"] == 1)
    start(bob).wait()
