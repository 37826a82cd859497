# SPDX-License-Identifier: GPL-3.0-or-later
"""Streams of changes that are many, slow, or belong to a user without rights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from openipu.shared.vipu.client import ACCESS_KEY_METADATA, USER_ID_METADATA
from openipu.vipu.api import auth, watch
from openipu.vipu.domain.model import Change, Delete, Kind, Put, Role
from openipu.vipu.domain.state import State
from openipu.vipu.tls import issue, load
from tests.integration.vipu_servers import InProcess, InstantLife, partition, pod
from tests.integration.watching import Watcher
from tests.unit.vipu.domain import rules_support
from tests.waiting import until


class Secure:
    """Secure controller with allocation a1, and its user alice."""

    def __init__(self, make: Callable[..., InProcess], folder: Path) -> None:
        issue.create(folder, ["127.0.0.1"])
        key, certificate = ((folder / "client" / name).read_bytes() for name in ("client.key", "client.crt"))
        channel = grpc.ssl_channel_credentials((folder / "server" / load.CA).read_bytes(), key, certificate)
        self.server = make(life=InstantLife, channel=channel, credentials=load.server_credentials(folder))
        user, access_key = auth.new_user("alice", Role.USER, (), shared_certificate=True)
        self.submit(lambda state: [Put(user)])
        self.alice = ((USER_ID_METADATA, "alice"), (ACCESS_KEY_METADATA, access_key))

    def submit(self, command: Callable[[State], list[Change]]) -> None:
        self.server.server.controller.submit(lambda state: (command(state), None)).result(10)


@pytest.fixture
def secure(vipu_server: Callable[..., InProcess], tmp_path: Path) -> Secure:
    return Secure(vipu_server, tmp_path / "certs")


@pytest.mark.defence("openipu.vipu.api.watch._MAX_STREAMS_PER_USER", 1 << 40)
def test_a_user_cannot_take_all_streams(secure: Secure) -> None:
    streams = [Watcher(secure.server.tenant, secure.alice) for _ in range(40)]
    try:
        until(lambda: all(each.revision or each.code for each in streams))
        assert sum(each.code is grpc.StatusCode.RESOURCE_EXHAUSTED for each in streams) == 8
    finally:
        for each in streams:
            each.stop()


@pytest.mark.defence("openipu.vipu.api.watch_messages.is_valid_id", bool)
@pytest.mark.parametrize("fields", [{"ids": ["x" * 1_000] * 100}, {"allocation_id": "x" * 100_000}])
def test_filters_do_not_occupy_memory(secure: Secure, fields: dict[str, Any]) -> None:
    found = Watcher(secure.server.tenant, secure.alice, **fields)
    try:
        until(lambda: found.revision or found.code)
        assert found.code is grpc.StatusCode.INVALID_ARGUMENT
    finally:
        found.stop()


def everything(watcher: object, allowed: object) -> None:
    """Show all allocations, in place of ``_Watcher.visible``."""


@pytest.mark.defence("openipu.vipu.api.watch._Watcher.visible", everything)
@pytest.mark.parametrize("filters", [{}, {"allocation_id": "a2"}, {"ids": ["a2", "p2", "p3"]}])
def test_only_own_objects_are_shown(secure: Secure, filters: dict[str, Any]) -> None:
    """Neither at the start nor after changes, whatever the filter is."""
    state = rules_support.pod(4, allocations={"a1": 2, "a2": 2})
    own, foreign, later = (
        rules_support.partition(state, id, 1, allocation)
        for id, allocation in (("p1", "a1"), ("p2", "a2"), ("p3", "a2"))
    )
    objects = [Put(each) for kind in Kind for each in state.table(kind).values() if each is not later]
    user, key = auth.new_user("bob", Role.USER, ("a1",), shared_certificate=True)
    secure.submit(lambda _: [*objects, Put(user)])
    found = Watcher(secure.server.tenant, ((USER_ID_METADATA, "bob"), (ACCESS_KEY_METADATA, key)), **filters)
    try:
        found.wait()
        secure.submit(lambda _: [Put(later), *(Put(replace(each, errors=("new",))) for each in (own, foreign))])
        last = secure.server.server.controller.events.revision
        until(lambda: found.code or all(each.position >= last for each in streams(secure.server)))
        until(lambda: found.code or found.revision >= last or filters)
        shown = set(found.objects)
    finally:
        found.stop()
    assert shown == (set() if filters else {("allocation", "a1"), ("partition", "p1")})


def unverified(self: watch.Watches, watcher: object, *, always: bool) -> None:
    """Keep the rights of a watcher."""


@pytest.mark.defence("openipu.vipu.api.watch.Watches._verify", unverified)
def test_a_removed_user_sees_nothing_more(secure: Secure) -> None:
    found = Watcher(secure.server.tenant, secure.alice)
    until(lambda: found.revision)
    secure.submit(lambda state: [Delete(Kind.USER, "alice")])
    try:
        rounds = secure.server.server.controller.events.revision
        until(lambda: found.code or all(each.position == rounds for each in streams(secure.server)))
        assert streams(secure.server) == []
        assert found.ended() is grpc.StatusCode.UNAUTHENTICATED
    finally:
        found.stop()


@pytest.mark.defence("openipu.vipu.api.watch._STALL_SECONDS", 1e9)
def test_a_client_that_takes_no_replies_is_ended(
    vipu_server: Callable[..., InProcess], monkeypatch: pytest.MonkeyPatch, defence: bool
) -> None:
    if defence:
        monkeypatch.setattr(watch, "_STALL_SECONDS", 0.2)
    monkeypatch.setattr(watch, "_TICK_SECONDS", 0.05)
    server = vipu_server(life=InstantLife)
    pod(server, 1)
    server.user.CreatePartition(partition("p1"))
    slow = Watcher(server.admin, paused=True)
    until(lambda: streams(server))

    def enlarge(state: State) -> tuple[list[Change], None]:
        error = "x" * (1 << 20)
        return [Put(replace(state.partitions["p1"], errors=(error,) * 4))], None

    def ended() -> bool:
        # The client takes one reply in advance, and changes in quick succession are one reply.
        server.server.controller.submit(enlarge).result(10)
        return not streams(server)

    try:
        until(ended, 20 if defence else 3)
    finally:
        slow.call.cancel()


def streams(server: InProcess) -> list[Any]:
    return server.server._services.watches._open()
