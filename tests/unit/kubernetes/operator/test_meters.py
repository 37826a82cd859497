# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of the operator: counters, and the table in the documentation."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import sentinel

import pytest
from prometheus_client import CollectorRegistry

from openipu.kubernetes.operator import metrics
from openipu.kubernetes.operator.meters import Meters, RestartCounter
from openipu.kubernetes.operator.pod_queue import PodQueue, WaitingPod
from openipu.kubernetes.operator.replica import Replica

PAGE = Path(__file__).parents[4] / "docs/reference/kubernetes-operator.md"


def registry(meters: Meters) -> CollectorRegistry:
    found = CollectorRegistry()
    found.register(meters)
    return found


def job(uid: str, restarts: int) -> dict[str, Any]:
    return {"metadata": {"uid": uid}, "status": {"restartCount": restarts}}


def test_restarts_are_counted_from_the_first_sight_of_a_job() -> None:
    meters = Meters()
    counter = RestartCounter(meters)
    counter.changed({"metadata": {"uid": "a"}}, exists=True)
    counter.changed(job("b", 2), exists=True)  # by a former leader
    assert registry(meters).get_sample_value("ipu_operator_job_restarts_total") == 0
    for restarts in (1, 1, 3):
        counter.changed(job("a", restarts), exists=True)
    counter.changed(job("b", 3), exists=False)
    assert registry(meters).get_sample_value("ipu_operator_job_restarts_total") == 4


def test_handlers_are_timed_and_their_errors_are_counted() -> None:
    meters = Meters()

    async def handle(key: str) -> float | None:
        if key == "bad":
            raise ValueError(key)
        return 5.0

    async def body() -> None:
        timed = meters.timed(handle)
        assert await timed("good") == 5.0
        with pytest.raises(ValueError, match="bad"):
            await timed("bad")

    asyncio.run(body())
    found = registry(meters)
    assert found.get_sample_value("ipu_operator_reconcile_duration_seconds_count") == 2
    assert found.get_sample_value("ipu_operator_reconcile_errors_total") == 1


def test_requests_without_an_answer_have_no_code() -> None:
    meters = Meters()
    meters.count_api_request("GET", 0)
    meters.count_api_request("GET", 404)
    found = registry(meters)
    for code in ("none", "404"):
        labels = {"method": "GET", "code": code}
        assert found.get_sample_value("ipu_operator_api_requests_total", labels) == 1


def test_waiting_pods_and_their_queues_have_metrics() -> None:
    queue = PodQueue(sentinel.proxy, sentinel.reserved, sentinel.refused, sentinel.older_job)
    for number, name in enumerate("ab"):
        queue.add(WaitingPod(("ns", name), name, name, 4, ("pod001:8090",), {}, time.monotonic() - 60 * number))
    pods: Any = SimpleNamespace(synced=True, waiting=queue, queues={"pod_reservations": queue.queue})
    election: Any = None
    found = CollectorRegistry()
    found.register(metrics.ReplicaCollector(Replica(election, pods=pods)))
    assert found.get_sample_value("ipu_operator_waiting_pods") == 2
    assert found.get_sample_value("ipu_operator_unschedulable_pods") == 0
    oldest = found.get_sample_value("ipu_operator_oldest_pod_wait_seconds")
    assert oldest is not None and oldest >= 60
    assert found.get_sample_value("ipu_operator_queue_depth", {"queue": "pod_reservations"}) == 1
    pods.synced = False
    assert found.get_sample_value("ipu_operator_waiting_pods") is None


def test_the_documentation_lists_all_metrics() -> None:
    election: Any = None
    families = [*metrics.ReplicaCollector(Replica(election)).collect(), *Meters().collect()]
    suffixes = {"counter": "_total", "info": "_info"}
    expected = {
        (each.name + suffixes.get(each.type, ""), each.type, each.documentation.replace("|", "\\|"))
        for each in families
    }
    rows = re.findall(r"^\| `(ipu_operator_\w+)(?:\{[\w,]+\})?` \| (\w+) \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    assert set(rows) == expected
