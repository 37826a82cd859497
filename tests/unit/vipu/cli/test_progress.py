# SPDX-License-Identifier: GPL-3.0-or-later
"""Notes on standard error while a command waits."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from openipu.shared.vipu import client
from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.cli import cluster_tests, partitions, session


class FakeSession:
    """Session whose calls return prepared replies."""

    def __init__(self, *replies: Any, json: bool = False) -> None:
        self.json = json
        self.client = None
        self.requests: list[Any] = []
        self._replies = iter(replies)

    def call(self, service: str, method: str, request: Any, timeout: float = 0) -> Any:
        self.requests.append(request)
        assert timeout > request.wait_milliseconds / 1000
        return SimpleNamespace(run=next(self._replies))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Advance the clock by three seconds with each reading."""
    monkeypatch.setattr(session, "monotonic", itertools.count(0, 3).__next__)


def running(*finished: int, state: int = admin.ClusterTestRun.RUNNING) -> Any:
    results = [admin.TestResult(test=test) for test in finished]
    run = admin.ClusterTestRun(run_id="r", state=state, results=results, running=admin.CLUSTER_TEST_IPU_LINK)
    run.cluster.id = "cl"
    return run


@pytest.mark.parametrize("json", [False, True])
@pytest.mark.usefixtures("clock")
def test_cluster_test_reports_every_five_seconds(json, capsys):
    end = running(1, 2, 3, state=admin.ClusterTestRun.FINISHED)
    replies = [running(1), running(1), running(1, 2), running(1, 2), end]
    fake = FakeSession(*replies, json=json)
    assert cluster_tests._follow(fake, running()) == end
    assert [request.known_results for request in fake.requests] == [0, 1, 1, 2, 2]
    printed = capsys.readouterr()
    assert not printed.out
    assert printed.err.splitlines() == (
        []
        if json
        else [
            "Note: the test of cluster 'cl' is in progress: 1 test finished, IPU-Link is running (6 s).",
            "Note: the test of cluster 'cl' is in progress: 2 tests finished, IPU-Link is running (12 s).",
        ]
    )


@pytest.mark.usefixtures("clock")
def test_partition_that_takes_long_is_reported(capsys, monkeypatch):
    pending = virmgrpc.PartitionStatus(ready_state=virmgrpc.PS_PENDING, operation_state=virmgrpc.POS_CREATING)
    active = virmgrpc.PartitionStatus(ready_state=virmgrpc.PS_ACTIVE, operation_state=virmgrpc.POS_IDLE)
    states = iter([pending, pending, pending, active])
    monkeypatch.setattr(client, "partition_status", lambda connection, id: next(states))
    partitions._wait_active(FakeSession(), "p", 60)
    printed = capsys.readouterr()
    assert not printed.out
    assert printed.err == "Note: partition 'p' is PENDING (CREATING) (6 s).\n"


@pytest.mark.usefixtures("clock")
def test_partition_that_is_quick_is_not_reported(capsys, monkeypatch):
    active = virmgrpc.PartitionStatus(ready_state=virmgrpc.PS_ACTIVE, operation_state=virmgrpc.POS_IDLE)
    monkeypatch.setattr(client, "partition_status", lambda connection, id: active)
    partitions._wait_active(FakeSession(), "p", 60)
    assert capsys.readouterr().err == ""
