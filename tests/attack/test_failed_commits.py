# SPDX-License-Identifier: GPL-3.0-or-later
"""Commits that fail, and changes whose handling fails, in the controller."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

import pytest

from openipu.vipu.cluster_test.model import Test
from openipu.vipu.cluster_test.runs import Runs
from openipu.vipu.domain import partition_state
from openipu.vipu.domain.model import Agent, Change, Cluster, Delete, Kind, Put
from openipu.vipu.domain.specs import PartitionSpec
from openipu.vipu.domain.state import State
from openipu.vipu.lifecycle import inbox
from openipu.vipu.lifecycle.interface import LifecycleOptions
from openipu.vipu.lifecycle.service import LifecycleService
from openipu.vipu.server.initialise import initialise
from openipu.vipu.storage.store import Store, StoreError
from openipu.vipu.storage.writer import RecordWriter
from tests.unit.vipu.domain.rules_support import agents, pod
from tests.unit.vipu.storage.test_writer import create
from tests.waiting import until


class Controller:
    """Records and partition life of a cluster of four agents that do not exist."""

    def __init__(self, database: Path) -> None:
        initialise(database)
        self.store = Store(database)
        self.records = RecordWriter(self.store)
        self.life = LifecycleService(self.records, LifecycleOptions())
        self.driver: Any = self.life._driver

    def start(self) -> None:
        self.records.start()
        self.life.start()

    def put(self, *changes: Change) -> Future[None]:
        return self.records.submit(lambda state: (changes, None))

    def put_pod(self) -> None:
        desired = pod(4)
        self.put(*(Put(record) for kind in Kind for record in desired.table(kind).values())).result(10)

    def stop(self) -> None:
        self.life.stop()
        self.records.stop()


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[Controller]:
    made = Controller(tmp_path / "vipu.db")
    yield made
    made.stop()


def start_in_the_command(runs: Runs, records: RecordWriter, cluster: str, tests: tuple[Test, ...]) -> Any:
    def command(state: State) -> Any:
        run = runs._planned(state, "id", cluster, tests)
        runs._begin(run)
        return [], run

    return records.submit(command)


@pytest.mark.defence("openipu.vipu.cluster_test.runs.Runs.start", start_in_the_command)
def test_a_cluster_test_in_a_failed_transaction(controller: Controller) -> None:
    controller.start()
    controller.put_pod()
    running, gate = threading.Event(), threading.Event()
    held = controller.records.submit(lambda state: ([], running.set() or gate.wait(10)))
    assert running.wait(10)  # so that the next commands are in one transaction of their own
    started = controller.life.start_cluster_test("cl0", (Test.VERSION,))
    many = [Agent(f"new{number}-{'x' * 50}", f"host{number}") for number in range(500)]
    full = controller.put(*map(Put, many))
    pages = controller.store._connection.execute("PRAGMA page_count").fetchone()[0]
    controller.store._connection.execute(f"PRAGMA max_page_count = {pages}")
    gate.set()
    held.exception(10)
    with pytest.raises(StoreError, match="Nothing was changed"):
        full.result(10)
    with pytest.raises(StoreError, match="Nothing was changed"):
        started.result(10)
    assert controller.life.cluster_test() is None
    assert controller.life.cluster_under_test() == ""
    assert controller.life.start_cluster_test("cl0", (Test.VERSION,)).result(10).cluster.id == "cl0"


def attempt_without_isolation(box: inbox.Inbox, change: Change, committed: float, failures: int) -> None:
    box._handle(change, committed)


@pytest.mark.defence("openipu.vipu.lifecycle.inbox.Inbox._attempt", attempt_without_isolation)
def test_a_change_whose_handler_fails(controller: Controller, monkeypatch: pytest.MonkeyPatch, defence: bool) -> None:
    monkeypatch.setattr(inbox, "FIRST_RETRY", 0.01)
    add, failures = controller.driver.add_agent, ["ag01", "ag01"]

    def fail_twice(agent: Agent) -> None:
        if agent.id in failures:
            failures.remove(agent.id)
            raise RuntimeError("injected")
        add(agent)

    controller.driver.add_agent = fail_twice
    controller.start()
    controller.put_pod()
    ids = [agent.id for agent in agents(4)]
    connections = controller.driver.supervisor.connections
    seconds = 20.0 if defence else 1.0
    until(lambda: all(id in connections for id in ids), seconds, lambda: f"only {sorted(connections)} are supervised")


@contextlib.contextmanager
def read_without_lock(records: RecordWriter) -> Iterator[State]:
    yield records._committed


@pytest.mark.defence("openipu.vipu.storage.writer.RecordWriter.reading", read_without_lock)
def test_a_forced_batch_during_the_handling_of_an_earlier_change(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller.start()
    controller.put_pod()
    indices_of, results = partition_state.ipus_by_agent, []

    def interrupted(state: State, record: Any) -> Any:
        if not results:
            smaller = Cluster("cl0", tuple(agent.id for agent in agents(1)))
            batch = (Delete(Kind.PARTITION, "p"), Delete(Kind.ALLOCATION, "a1"), Put(smaller))
            wait([controller.put(*batch)], 0.3)  # it waits until the partition was read
        try:
            results.append(indices_of(state, record))
        except (IndexError, KeyError) as error:
            results.append(repr(error))
            raise
        return results[-1]

    monkeypatch.setattr(partition_state, "ipus_by_agent", interrupted)
    controller.records.submit(create(PartitionSpec("p", 16, "a1"))).result(10)
    until(lambda: results, 5)
    assert results[0] == {agent.id: list(range(4 * n, 4 * n + 4)) for n, agent in enumerate(agents(4))}
    until(lambda: controller.records.state.partitions == {} and controller.driver._agents_of == {}, 5)
