# SPDX-License-Identifier: GPL-3.0-or-later
"""Slow, many and failing streams of ``Watch``, and other watchers beside them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import grpc
import pytest

from openipu.shared.vipu.contract import admin
from openipu.vipu.api import watch
from openipu.vipu.api.reply_stream import ReplyStream
from openipu.vipu.api.watch import Watches
from tests.integration.vipu_servers import InProcess, partition, pod
from tests.integration.watching import Watcher, open_streams, put_large_error, revision, settle
from tests.waiting import until


@pytest.fixture
def server(instant_server: InProcess) -> InProcess:
    pod(instant_server, 4, {"a1": 2, "a2": 1})
    return instant_server


def watch_large_changes(server: InProcess, watcher: Callable[..., Watcher]) -> tuple[Watcher, Watcher]:
    """Return a client that reads none of 200 large changes, and one that has read them all."""
    server.user.CreatePartition(partition("p1"))
    settle(server)
    slow, quick = watcher(server.admin, paused=True), watcher(server.admin).wait()
    until(lambda: open_streams(server) == 2)
    for number in range(200):
        quick.wait(put_large_error(server, number))
    return slow, quick


def test_a_slow_client_delays_no_other_and_gets_the_last_state(
    server: InProcess, watcher: Callable[..., Watcher]
) -> None:
    slow, quick = watch_large_changes(server, watcher)
    watches = server.server._services.watches
    (behind,) = (each for each in watches._open() if each.position < revision(server) - 50)
    assert behind.sending
    assert not behind.pending
    slow.read()
    assert slow.wait(revision(server)).objects == quick.objects
    assert slow.replies < 150


def test_a_client_that_takes_no_replies_is_ended(
    server: InProcess, watcher: Callable[..., Watcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_STALL_SECONDS", 1.0)
    monkeypatch.setattr(watch, "_TICK_SECONDS", 0.05)
    slow, _ = watch_large_changes(server, watcher)
    until(lambda: open_streams(server) == 1)
    slow.read()
    assert slow.ended() is grpc.StatusCode.CANCELLED


def test_a_thousand_idle_watchers_need_no_threads_and_block_no_other(server: InProcess) -> None:
    options = [("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.insecure_channel(server.address, options) for _ in range(10)]
    stubs = [admin.stub(channel, "AdminService") for channel in channels]
    try:
        calls = [stubs[0].Watch(admin.WatchRequest(kinds=[admin.KIND_PARTITION]))]
        assert next(calls[0]).revision
        threads = threading.active_count()
        calls += [stub.Watch(admin.WatchRequest(kinds=[admin.KIND_PARTITION])) for stub in stubs for _ in range(100)]
        for call in calls[1:]:
            assert next(call).revision
        assert threading.active_count() < threads + 150  # the pool for all calls, and the ten channels
        server.user.CreatePartition(partition("p1"), timeout=10)
        for call in calls:
            assert next(call).events[0].id == "p1"
    finally:
        for channel in channels:
            channel.close()
    until(lambda: open_streams(server) == 0)


def test_a_round_that_stood_still_delays_no_other(
    server: InProcess, watcher: Callable[..., Watcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = Watches._changes
    pauses = [3.0]

    def stand_still(self: Watches, position: int) -> Any:
        if pauses:
            threading.Event().wait(pauses.pop())
        return changes(self, position)

    found = watcher(server.admin)
    until(lambda: found.revision)
    monkeypatch.setattr(Watches, "_changes", stand_still)
    server.user.CreatePartition(partition("p1"))
    until(lambda: not pauses and found.revision == revision(server), 10, lambda: str(found.revision))
    server.user.CreatePartition(partition("p2"))
    until(lambda: found.revision == settle(server), 10, lambda: str(found.revision))


def test_an_error_at_the_end_of_a_stream_affects_no_other(
    server: InProcess, watcher: Callable[..., Watcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, end = watcher(server.admin).wait(revision(server)), ReplyStream.fail

    def fail(self: ReplyStream, error: Exception) -> None:
        end(self, error)
        raise ValueError("unexpected")

    monkeypatch.setattr(ReplyStream, "fail", fail)
    assert watcher(server.admin, since_revision=1).ended() is grpc.StatusCode.OUT_OF_RANGE
    server.user.CreatePartition(partition("p1"))
    first.wait(settle(server))


def test_ended_streams_are_forgotten(server: InProcess, watcher: Callable[..., Watcher]) -> None:
    found = watcher(server.admin).wait()
    assert open_streams(server) == 1
    found.stop()
    until(lambda: open_streams(server) == 0)
    until(lambda: server.server._services.watches._counts == {})
