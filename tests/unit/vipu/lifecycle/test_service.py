# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory of the lifecycle service."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from openipu.vipu.cluster_test.model import Test
from openipu.vipu.cluster_test.results import RunState
from openipu.vipu.domain.model import Allocation, Change, Cluster, Delete, Kind, Put
from openipu.vipu.lifecycle.interface import LifecycleOptions
from openipu.vipu.lifecycle.recovery import Recovery
from openipu.vipu.lifecycle.service import LifecycleService
from openipu.vipu.server.initialise import initialise
from openipu.vipu.storage.store import Store
from openipu.vipu.storage.writer import RecordWriter
from tests.unit.vipu.domain.rules_support import agents
from tests.waiting import until


def test_a_larger_allocation_moves_waiting_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    initialise(tmp_path / "vipu.db")
    records = RecordWriter(Store(tmp_path / "vipu.db"))
    life = LifecycleService(records, LifecycleOptions())
    searched = Event()
    monkeypatch.setattr(Recovery, "search", lambda self: searched.set())
    records.start()
    life.start()
    try:
        machines = agents(2)
        cluster = Cluster("cl0", tuple(agent.id for agent in machines))
        for change in ([*map(Put, machines)], [Put(cluster)], [Put(Allocation("a1", "cl0", ("ag01",)))]):
            records.submit(lambda state, change=change: (change, None)).result(10)
        searched.clear()
        records.submit(lambda state: ([Put(Allocation("a1", "cl0", ("ag01", "ag02")))], None)).result(10)
        assert searched.wait(10)
    finally:
        life.stop()
        records.stop()


def test_results_of_deleted_clusters_are_dropped(tmp_path: Path) -> None:
    initialise(tmp_path / "vipu.db")
    records = RecordWriter(Store(tmp_path / "vipu.db"))
    life = LifecycleService(records, LifecycleOptions())
    records.start()
    life.start()

    def put(*changes: Change) -> None:
        records.submit(lambda state: (changes, None)).result(10)

    try:
        put(*map(Put, agents(4)))
        for number in range(3):
            put(Put(Cluster(f"cl{number}", tuple(agent.id for agent in agents(4)))))
            life.start_cluster_test(f"cl{number}", (Test.VERSION,)).result(10)
            until(lambda: (run := life.cluster_test()) and run.state is not RunState.RUNNING)
            assert f"cl{number}" in life.cluster_test_results()
            put(Delete(Kind.CLUSTER, f"cl{number}"))
        until(lambda: not life.cluster_test_results())
    finally:
        life.stop()
        records.stop()
