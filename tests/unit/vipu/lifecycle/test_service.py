# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory of the lifecycle service."""

from __future__ import annotations

from pathlib import Path

from openipu.vipu.cluster_test.model import Test
from openipu.vipu.cluster_test.results import RunState
from openipu.vipu.domain.model import Change, Cluster, Delete, Kind, Put
from openipu.vipu.lifecycle.interface import LifecycleOptions
from openipu.vipu.lifecycle.service import LifecycleService
from openipu.vipu.server.initialise import initialise
from openipu.vipu.storage.store import Store
from openipu.vipu.storage.writer import RecordWriter
from tests.unit.vipu.domain.rules_support import agents
from tests.waiting import until


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
