# SPDX-License-Identifier: GPL-3.0-or-later
"""Failover of a client between controllers: which calls are repeated, and where."""

from __future__ import annotations

import socket
import time
from concurrent import futures
from typing import Any

import grpc
import pytest

from openipu.shared.vipu import failover
from openipu.shared.vipu.client import Client, Connection, VipuError
from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.shared.vipu.failover import ERROR_CODE_METADATA, LEADER_METADATA, NOT_LEADER, Failover, may_be_made, split

ADDRESSES = ["a:1", "b:2", "c:3"]


class Rejection(grpc.RpcError):
    def __init__(self, details: str = "", code: str = "UNAVAILABLE", **metadata: str) -> None:
        super().__init__()
        self._details, self._code = details, grpc.StatusCode[code]
        self._metadata = tuple((key.replace("_", "-"), value) for key, value in metadata.items())

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details

    def trailing_metadata(self) -> tuple[tuple[str, str], ...]:
        return self._metadata


def follower(leader: str = "") -> Rejection:
    metadata = {ERROR_CODE_METADATA: NOT_LEADER, **({LEADER_METADATA: leader} if leader else {})}
    return Rejection("it does not lead", **{key.replace("-", "_"): value for key, value in metadata.items()})


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failover.time, "sleep", lambda seconds: None)


def fail(controllers: Failover, error: Rejection, method: str = "Apply", seconds: float = 60) -> bool:
    return controllers.fail(error, method, time.monotonic() + seconds)


def test_a_follower_names_the_leader() -> None:
    controllers = Failover(ADDRESSES)
    assert fail(controllers, follower("c:3"))
    assert controllers.address == "c:3"


@pytest.mark.parametrize("error", [follower(), follower("unknown:9"), Rejection("failed to connect to all addresses")])
def test_the_next_controller_is_called(error: Rejection) -> None:
    controllers = Failover(ADDRESSES)
    for expected in ("b:2", "c:3", "a:1"):
        assert fail(controllers, error)
        assert controllers.address == expected


@pytest.mark.parametrize(("method", "repeated"), [("Apply", False), ("CreatePartition", False), ("ListAgents", True)])
@pytest.mark.parametrize(
    "error",
    [
        Rejection("Socket closed"),
        Rejection("failed to connect in time", "DEADLINE_EXCEEDED"),
        Rejection("CANCELLED", "CANCELLED"),
    ],
)
def test_a_change_without_a_response_is_not_repeated(error: Rejection, method: str, repeated: bool) -> None:
    controllers = Failover(ADDRESSES)
    assert fail(controllers, error, method) == repeated
    assert controllers.address == "b:2", "the next call goes to another controller"


@pytest.mark.parametrize(
    ("code", "details", "error_code", "expected"),
    [
        ("UNAVAILABLE", "Socket closed", "", True),
        ("UNAVAILABLE", "this controller no longer leads.", "OPU625", True),
        ("UNAVAILABLE", "this controller does not lead.", "OPU624", False),
        ("UNAVAILABLE", "failed to connect to all addresses; last error: UNKNOWN: connect: ", "", False),
        ("CANCELLED", "CANCELLED", "", True),
        ("CANCELLED", "Locally cancelled by application!", "", False),
        ("DEADLINE_EXCEEDED", "Deadline Exceeded", "", False),  # no time is left
        ("ALREADY_EXISTS", "It exists.", "OPU606", False),
    ],
)
def test_changes_that_may_be_made(code: str, details: str, error_code: str, expected: bool) -> None:
    assert may_be_made(code, details, error_code) is expected


def test_a_host_that_does_not_respond_costs_seconds() -> None:
    """The first host accepts connections and sends nothing; the second one responds."""
    server = grpc.server(futures.ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.2:0")
    with socket.create_server(("127.0.0.1", port)):
        server.start()
        began = time.monotonic()
        with Client(Connection("127.0.0.1,127.0.0.2", port, timeout=30)) as client:
            with pytest.raises(VipuError) as caught:
                client.call(client.user.CreatePartition, virmgrpc.CreatePartitionRequest())
            assert caught.value.code == "UNIMPLEMENTED", "the second host has no services"
            assert client.host == "127.0.0.2"
        assert time.monotonic() - began < 10
        server.stop(None)


@pytest.mark.parametrize("details", ["Locally cancelled by application!", "Channel closed!"])
def test_a_call_that_the_client_cancels_is_not_repeated(details: str) -> None:
    assert not fail(Failover(ADDRESSES), Rejection(details, "CANCELLED"), "ListAgents")


@pytest.mark.parametrize(
    ("request_", "action", "effect"),
    [
        (admin.ApplyRequest(), "apply the changes", "A change may have been made: read the object again."),
        (admin.ListAgentsRequest(), "list agents", "Try again."),
        (admin.WatchRequest(), "watch", "Try again."),
    ],
)
def test_a_cancelled_call_is_reported_with_its_effect(request_: Any, action: str, effect: str) -> None:
    def call(request: Any, **options: Any) -> None:
        raise Rejection("CANCELLED", "CANCELLED")

    with pytest.raises(VipuError) as caught, Client(Connection("a")) as client:
        client.call(call, request_, action)
    assert caught.value.message == (
        f"Cannot {action}: the V-IPU controller at a:8090 cancelled the call, for example because it stops. {effect}"
    )


def test_other_errors_are_final() -> None:
    controllers = Failover(ADDRESSES)
    assert not fail(controllers, Rejection("no such partition", "NOT_FOUND"), "GetPartition")
    assert controllers.address == "a:1"


def test_nothing_is_repeated_after_the_deadline() -> None:
    assert not fail(Failover(ADDRESSES), follower("c:3"), seconds=-1)


def test_a_single_controller_is_not_called_again() -> None:
    assert not fail(Failover(["a:1"]), follower())


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("h1", [("h1", 8090)]),
        ("h1,h2:99, h3", [("h1", 8090), ("h2", 99), ("h3", 8090)]),
        ("fd00::1", [("fd00::1", 8090)]),
        ("[fd00::1]:7,h2", [("[fd00::1]", 7), ("h2", 8090)]),
    ],
)
def test_lists_of_controllers(host: str, found: list[tuple[str, int]]) -> None:
    assert split(host, 8090) == found


def test_addresses_of_a_connection() -> None:
    assert Connection("h1,fd00::2,h3:9", 8090).address == "h1:8090,[fd00::2]:8090,h3:9"
    with pytest.raises(VipuError, match="must be a number"):
        _ = Connection("h1:x").address


def test_the_key_needs_tls_for_each_controller() -> None:
    with pytest.raises(VipuError, match="Cannot send the access key"):
        Connection("127.0.0.1,10.0.0.1", access_key="k").check_exposure()
    Connection("127.0.0.1,127.0.0.2", access_key="k").check_exposure()
