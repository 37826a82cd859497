# SPDX-License-Identifier: GPL-3.0-or-later
"""Streams of changes and several controllers: no revision is lost or repeated when the leader changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest

from openipu.shared.vipu.client import Client, Connection, VipuError
from openipu.shared.vipu.contract import admin
from openipu.shared.vipu.failover import ERROR_CODE_METADATA, LEADER_METADATA, NOT_LEADER
from openipu.shared.vipu.options import CONNECTION_OPTIONS, connection

OUT_OF_RANGE, UNAVAILABLE = grpc.StatusCode.OUT_OF_RANGE, grpc.StatusCode.UNAVAILABLE


def reply(revision: int, *ids: str) -> Any:
    return admin.WatchReply(revision=revision, events=[admin.Event(id=id) for id in ids])


class Controller:
    """Controller with one stream after the other, each a list of replies that ends with a status."""

    def __init__(self, *streams: list[Any], leader: str = "", end: grpc.StatusCode = UNAVAILABLE) -> None:
        self.requested: list[int] = []  # revisions
        self._streams, self._end, self._leader = list(streams), end, leader
        self._server = grpc.server(futures.ThreadPoolExecutor(2))
        self._server.add_generic_rpc_handlers([admin.handler("AdminService", self)])
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def __getattr__(self, name: str) -> Any:
        """Return a method that is not called."""
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda request, context: context.abort(grpc.StatusCode.UNIMPLEMENTED, name)

    def Watch(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:  # noqa: N802
        self.requested.append(request.since_revision)
        if self._streams:
            yield from self._streams.pop(0)
            if not self._streams:
                context.abort(self._end, "The stream ends.")
        if self._leader:
            code, leader = (ERROR_CODE_METADATA, NOT_LEADER), (LEADER_METADATA, self._leader)
            context.set_trailing_metadata((code, leader))
        context.abort(UNAVAILABLE, "it does not lead")

    def close(self) -> None:
        self._server.stop(None).wait()


Start = Callable[..., Controller]


@pytest.fixture
def start() -> Iterator[Start]:
    made: list[Controller] = []

    def make(*streams: list[Any], **options: Any) -> Controller:
        made.append(Controller(*streams, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def watched(hosts: list[Controller], since: int = 0) -> tuple[list[tuple[int, list[str]]], VipuError]:
    """Return revision and ids of the received replies, and the error at the end of the stream."""
    found = []
    request = admin.WatchRequest(since_revision=since)
    connection = Connection(",".join(each.address for each in hosts), timeout=20)
    with Client(connection) as client, pytest.raises(VipuError) as caught:
        for each in client.watch("AdminService", request, "watch"):
            found.append((each.revision, [event.id for event in each.events]))
    assert request.since_revision == since, "the request of the caller is not changed"
    return found, caught.value


def test_a_stream_continues_at_the_next_controller(start: Start) -> None:
    first = start([reply(0, "a"), reply(5, "b"), reply(7, "c")])
    second = start([reply(8, "d"), reply(9)], end=OUT_OF_RANGE)
    found, error = watched([first, second])
    assert found == [(0, ["a"]), (5, ["b"]), (7, ["c"]), (8, ["d"]), (9, [])]
    assert (first.requested, second.requested, error.code) == ([0], [7], "OUT_OF_RANGE")


def test_an_incomplete_step_is_not_repeated(start: Start) -> None:
    first = start([reply(5, "a"), reply(0, "b")])
    second = start([reply(0, "b"), reply(6, "c")], end=OUT_OF_RANGE)
    found, _error = watched([first, second], 4)
    assert found == [(5, ["a"]), (0, ["b"]), (6, ["c"])]
    assert (first.requested, second.requested) == ([4], [5])


def test_an_incomplete_snapshot_starts_again(start: Start) -> None:
    first = start([reply(0, "a"), reply(0, "b")])
    second = start([reply(0, "a"), reply(5, "b")], end=OUT_OF_RANGE)
    found, _error = watched([first, second])
    assert found == [(0, ["a"]), (5, ["b"])]
    assert (first.requested, second.requested) == ([0], [0])


def test_a_stream_follows_the_address_of_the_leader(start: Start) -> None:
    leader = start([reply(6, "b")], end=OUT_OF_RANGE)
    other = start(leader=leader.address)
    former = start([reply(5, "a")], leader=leader.address)
    found, _error = watched([former, other, leader])
    assert found == [(5, ["a"]), (6, ["b"])]
    assert (other.requested, leader.requested) == ([5], [5])


def test_a_stream_of_a_single_controller_ends_with_it(start: Start) -> None:
    only = start([reply(0, "a"), reply(5, "b"), reply(0, "c")])
    found, error = watched([only])
    assert found == [(0, ["a"]), (5, ["b"]), (0, ["c"])]
    assert (only.requested, error.code) == ([0], "UNAVAILABLE")


def test_a_caller_can_cancel_the_continued_stream(start: Start) -> None:
    first, second = start([reply(5, "a")]), start([reply(6, "b"), reply(7, "c")], end=OUT_OF_RANGE)
    calls: list[Any] = []
    with Client(Connection(f"{first.address},{second.address}", timeout=20)) as client:
        stream = client.watch("AdminService", admin.WatchRequest(), "watch", calls.append)
        assert [next(stream).revision, next(stream).revision] == [5, 6]
        calls[-1].cancel()
        with pytest.raises(VipuError) as caught:
            list(stream)
    assert (len(calls), caught.value.code) == (2, "CANCELLED")


@pytest.mark.parametrize(
    ("transport", "hosts", "called"),
    [
        ("grpc", "h1,h2:99", "h1:8090,h2:99"),
        ("cli", "h1,h2:99", "h1:8090"),
        ("cli", "h1:99, h2", "h1:99"),
        ("cli", "h1", "h1:8090"),
    ],
)
def test_command_lines_of_the_vendor_call_the_first_controller(transport: str, hosts: str, called: str) -> None:
    defaults = {name: option.get("default") for name, option in CONNECTION_OPTIONS.items()}
    assert connection({**defaults, "api_host": hosts, "transport": transport}).address == called
