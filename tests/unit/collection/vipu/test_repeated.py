# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes without a response: how often they are made again, and what their errors report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import Client, Connection, VipuError
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin
from ansible_collections.openipu.pod.plugins.module_utils.vipu.transport.grpc_api import GrpcTransport
from ansible_collections.openipu.pod.plugins.module_utils.vipu.transport.repeated import repeat, with_moved

LOST = VipuError("Cannot reset it: the controller did not respond.", "UNAVAILABLE", "Socket closed")
REJECTED = VipuError("Cannot log in.", "UNAUTHENTICATED", "Cannot log in.", "OPU616")


def changes(*results: Any) -> tuple[Callable[[], Any], list[Any]]:
    """Return a function that returns or raises the results one after the other, and those that are left."""
    left = list(results)

    def change() -> Any:
        found = left.pop(0)
        if isinstance(found, VipuError):
            raise found
        return found

    return change, left


@pytest.mark.parametrize(
    ("results", "expected"), [(["a"], ("a", False)), ([LOST, "b"], ("b", True)), ([LOST, LOST, "c"], ("c", True))]
)
def test_a_change_is_made_again(results: list[Any], expected: tuple[str, bool]) -> None:
    change, left = changes(*results)
    assert repeat(Client(Connection("a,b")), change) == expected
    assert not left


@pytest.mark.parametrize(
    ("hosts", "results", "unused"), [("a,b", [LOST, LOST, LOST, "d"], 1), ("a", [LOST, "b"], 1), ("a,b", [REJECTED], 0)]
)
def test_an_error_is_final(hosts: str, results: list[Any], unused: int) -> None:
    change, left = changes(*results)
    with pytest.raises(VipuError) as caught:
        repeat(Client(Connection(hosts)), change)
    assert caught.value is results[-unused - 1] or caught.value.message.startswith(LOST.message)
    assert len(left) == unused


def test_a_later_rejection_reports_that_the_change_may_have_been_made() -> None:
    """Callers keep a new key then, because its certificate may exist."""
    change, _ = changes(LOST, REJECTED)
    with pytest.raises(VipuError) as caught:
        repeat(Client(Connection("a,b")), change)
    error = caught.value
    assert error.message == "Cannot log in. An earlier attempt had no response, so the change may have been made."
    assert (error.code, error.details, error.error_code) == ("UNAVAILABLE", REJECTED.details, REJECTED.error_code)


@pytest.mark.parametrize(("found", "expected"), [("run 1", "run 1"), (None, "run 2")])
def test_the_result_of_an_earlier_attempt_is_read_first(found: str | None, expected: str) -> None:
    change, left = changes(LOST, "run 2")
    reads: list[int] = []

    def read() -> str | None:
        reads.append(len(left))
        return found

    assert repeat(Client(Connection("a,b")), change, read) == (expected, True)
    assert reads == [1], "nothing is read before the first attempt"


def entry(id: str, moves: bool = True) -> dict[str, Any]:
    return {"id": id, "moves": moves}


def test_a_drain_reports_what_an_earlier_attempt_moved() -> None:
    planned = {"changed": True, "partitions": [entry("p1"), entry("p2"), entry("p3", moves=False), entry("p4")]}
    drained = {"changed": False, "partitions": [entry("p2"), entry("p3", moves=False)]}
    existing = [{"id": id} for id in ("p1", "p2", "p3")]  # another client has removed p4
    assert with_moved(planned, drained, lambda: existing) == {
        "changed": True,
        "partitions": [entry("p1"), entry("p2"), entry("p3", moves=False)],
    }


def test_a_drain_whose_partitions_cannot_be_read_is_done() -> None:
    def fail() -> list[dict[str, Any]]:
        raise LOST

    drained = {"changed": False, "partitions": [entry("p2")]}
    assert with_moved({"changed": True, "partitions": [entry("p1")]}, drained, fail) == {**drained, "changed": True}


@pytest.mark.parametrize(
    ("last", "stops"),
    [
        ({"run_id": "r1", "state": "running"}, 2),
        ({"run_id": "r1", "state": "stopped"}, 1),
        ({"run_id": None, "state": "none"}, 1),  # it ended with its leader
        ({"run_id": "r2", "state": "running"}, 1),  # that of another client
    ],
)
def test_only_a_test_that_runs_is_stopped_again(monkeypatch: pytest.MonkeyPatch, last: Any, stops: int) -> None:
    change, left = changes(LOST, "reply")
    monkeypatch.setattr(Client, "call", lambda client, method, request, action="": change())
    monkeypatch.setattr(GrpcTransport, "test_run", lambda transport: last)
    GrpcTransport(Connection("a,b")).stop_test({"run_id": "r1"})
    assert len(left) == 2 - stops


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ({"run_id": "r2", "cluster": "c1", "requested": ["Cabling"]}, "r2"),
        ({"run_id": "r1", "cluster": "c1", "requested": ["Cabling"]}, "r3"),  # it was the last one before
        ({"run_id": None, "cluster": None, "requested": []}, "r3"),  # the next leader has none
        ({"run_id": "r2", "cluster": "c2", "requested": ["Cabling"]}, "r3"),
        ({"run_id": "r2", "cluster": "c1", "requested": ["Version"]}, "r3"),
    ],
)
def test_a_test_that_has_begun_is_not_started_again(monkeypatch: pytest.MonkeyPatch, last: Any, expected: str) -> None:
    reply = admin.StartClusterTestReply(run=admin.ClusterTestRun(run_id="r3"))
    change, _ = changes(LOST, reply)
    runs = [{"run_id": "r1"}, last]
    monkeypatch.setattr(Client, "call", lambda client, method, request, action="": change())
    monkeypatch.setattr(GrpcTransport, "test_run", lambda transport: runs.pop(0))
    assert GrpcTransport(Connection("a,b")).start_test("c1", ["Cabling"])["run_id"] == expected
