# SPDX-License-Identifier: GPL-3.0-or-later
"""The writer: order, durability, and what happens when something fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest
from rules_support import agents, pod

from openipu.vipu import rules
from openipu.vipu.checks import Code, Context, RuleError
from openipu.vipu.controller import Controller
from openipu.vipu.initialise import initialise
from openipu.vipu.invariants import violations
from openipu.vipu.model import Agent, Change, Delete, Kind, Put, State
from openipu.vipu.ports import StoppedError
from openipu.vipu.specs import PartitionSpec, Removal, Spec
from openipu.vipu.store import Store, StoreError, Transaction


class Tracing(Store):
    """A real database that tells when transactions begin and end, and fails when told to."""

    def __init__(self, path: Path) -> None:
        initialise(path)
        super().__init__(path)
        self.commits: list[int] = []  # changes of each
        self.fail: Exception | None = None
        self.gate = threading.Event()  # commits wait for it
        self.gate.set()
        self.entered = threading.Semaphore(0)

    def transaction(self) -> Transaction:
        return Traced(self)


class Traced(Transaction):
    def __init__(self, store: Tracing) -> None:
        super().__init__(store._connection, store._partitions)
        self.store = store
        self.changes = 0

    def add(self, changes: Sequence[Change], state: State) -> None:
        self.changes += len(changes)
        super().add(changes, state)

    def commit(self) -> None:
        self.store.entered.release()
        assert self.store.gate.wait(10)
        if self.store.fail is not None:
            raise self.store.fail
        super().commit()
        self.store.commits.append(self.changes)


@pytest.fixture
def store(tmp_path: Path) -> Tracing:
    return Tracing(tmp_path / "records.db")


@pytest.fixture
def controller(store: Tracing) -> Iterator[Controller]:
    made = Controller(store)
    made.start()
    yield made
    store.gate.set()
    made.stop()


def create(spec: Spec) -> Callable[[State], tuple[list[Change], str]]:
    return lambda state: (rules.create(state, spec, Context()), spec.id)


def put_pod(controller: Controller, machines: int = 4) -> None:
    wanted = pod(machines)
    records = [Put(record) for kind in Kind for record in wanted.table(kind).values()]
    controller.submit(lambda state: (records, None)).result(10)


def hold(controller: Controller, store: Tracing) -> Future[str]:
    """Make the writer wait in the middle of a commit; release it with ``store.gate.set()``."""
    store.gate.clear()
    while store.entered.acquire(blocking=False):
        pass
    first = controller.submit(create(Agent("first", "10.0.0.1")))
    assert store.entered.acquire(timeout=10)
    return first


def test_a_change_is_durable_and_seen_when_it_is_acknowledged(controller: Controller, store: Tracing) -> None:
    assert controller.submit(create(Agent("ag01", "10.0.0.1"))).result(10) == "ag01"
    assert controller.state.agents["ag01"].host == "10.0.0.1"
    assert store.commits == [1]
    assert list(store.load().agents) == ["ag01"]


def test_nobody_sees_a_change_before_it_is_durable(controller: Controller, store: Tracing) -> None:
    first = hold(controller, store)
    assert controller.state.agents == {}
    assert not first.done()
    store.gate.set()
    first.result(10)
    assert list(controller.state.agents) == ["first"]


def test_those_who_wait_share_a_transaction(controller: Controller, store: Tracing) -> None:
    first = hold(controller, store)
    waiting = [controller.submit(create(agent)) for agent in agents(50)]
    store.gate.set()
    assert [future.result(10) for future in (first, *waiting)] == ["first", *(agent.id for agent in agents(50))]
    assert store.commits == [1, 50]


def test_commands_see_those_before_them(controller: Controller, store: Tracing) -> None:
    hold(controller, store)
    one = controller.submit(create(Agent("ag01", "10.0.0.2")))
    again = controller.submit(create(Agent("ag01", "10.0.0.3")))
    gone = controller.submit(lambda state: (rules.remove(state, Removal(Kind.AGENT, "ag01"), Context()), None))
    anew = controller.submit(create(Agent("ag01", "10.0.0.4")))
    store.gate.set()
    one.result(10)
    with pytest.raises(RuleError) as refused:
        again.result(10)
    assert refused.value.code is Code.ALREADY_EXISTS
    gone.result(10)
    anew.result(10)
    assert controller.state.agents["ag01"].host == "10.0.0.4"
    assert store.load() == controller.state


def test_a_command_that_raises_fails_alone(controller: Controller, store: Tracing) -> None:
    hold(controller, store)

    def broken(state: State) -> tuple[list[Change], None]:
        raise ZeroDivisionError("oops")

    before, bad, after = (
        controller.submit(create(Agent("ag01", "10.0.0.2"))),
        controller.submit(broken),
        controller.submit(create(Agent("ag02", "10.0.0.3"))),
    )
    store.gate.set()
    before.result(10)
    with pytest.raises(ZeroDivisionError, match="oops"):
        bad.result(10)
    after.result(10)
    assert list(controller.state.agents) == ["first", "ag01", "ag02"]


@pytest.mark.parametrize("trouble", [StoreError("The disk is full."), RuntimeError("a bug")])
def test_a_failing_commit_fails_its_batch_and_changes_nothing(
    controller: Controller, store: Tracing, trouble: Exception
) -> None:
    put_pod(controller)
    before = controller.state.copy()
    hold(controller, store)
    store.fail = trouble
    waiting = [controller.submit(create(PartitionSpec(f"p{n}", 1, "a1"))) for n in range(3)]
    duplicate = controller.submit(create(PartitionSpec("p0", 1, "a1")))
    store.gate.set()
    for future in (*waiting, duplicate):
        with pytest.raises(type(trouble), match=str(trouble)):
            future.result(10)
    assert controller.state == before
    store.fail = None
    # What failed left no trace in what the writer knows either.
    controller.submit(create(PartitionSpec("p0", 16, "a1"))).result(10)
    assert violations(controller.state) == []
    assert store.load() == controller.state


def test_a_full_disk_is_survived(controller: Controller, store: Tracing) -> None:
    put_pod(controller)
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    many = [Put(replace(agent, id=f"{agent.id}-{'x' * 50}", host=f"host-{agent.id}")) for agent in agents(500)]
    with pytest.raises(StoreError, match="database or disk is full; nothing was changed"):
        controller.submit(lambda state: (many, None)).result(10)
    assert len(controller.state.agents) == 4
    store._connection.execute(f"PRAGMA max_page_count = {pages + 1000}")
    controller.submit(lambda state: (many, None)).result(10)
    assert len(controller.state.agents) == 504
    assert store.load() == controller.state


def test_subscribers_hear_every_commit_before_its_callers(controller: Controller, store: Tracing) -> None:
    heard: list[tuple[list[Change], bool]] = []
    futures: list[Future[str]] = []

    def failing(changes: Sequence[Change]) -> None:
        raise ZeroDivisionError

    controller.subscribe(failing)
    controller.subscribe(lambda changes: heard.append((list(changes), futures[0].done())))
    hold(controller, store)
    agent = Agent("ag01", "10.0.0.2")
    futures.append(controller.submit(create(agent)))
    futures.append(controller.submit(lambda state: ([Delete(Kind.AGENT, "ag01")], "gone")))
    store.gate.set()
    assert [future.result(10) for future in futures] == ["ag01", "gone"]
    assert heard[1:] == [([Put(agent), Delete(Kind.AGENT, "ag01")], False)]


def test_a_command_that_changes_nothing_waits_for_what_it_saw(controller: Controller, store: Tracing) -> None:
    hold(controller, store)
    store.fail = StoreError("No.")
    controller.submit(create(Agent("ag01", "10.0.0.2")))
    saw = controller.submit(lambda state: ([], "ag01" in state.agents))
    store.gate.set()
    with pytest.raises(StoreError):
        saw.result(10)


def test_a_cancelled_command_is_not_run(controller: Controller, store: Tracing) -> None:
    hold(controller, store)
    future = controller.submit(create(Agent("ag01", "10.0.0.2")))
    last = controller.submit(create(Agent("ag02", "10.0.0.3")))
    assert future.cancel()
    store.gate.set()
    last.result(10)
    assert list(controller.state.agents) == ["first", "ag02"]


def test_stop_finishes_what_was_submitted_and_refuses_the_rest(store: Tracing) -> None:
    controller = Controller(store)
    controller.start()
    first = hold(controller, store)
    waiting = [controller.submit(create(agent)) for agent in agents(5)]
    stopping = threading.Thread(target=controller.stop)
    stopping.start()
    store.gate.set()
    stopping.join(10)
    assert not stopping.is_alive()
    assert [future.result(0) for future in (first, *waiting)] == ["first", *(agent.id for agent in agents(5))]
    with pytest.raises(StoppedError):
        controller.submit(create(Agent("late", "10.0.0.9"))).result(0)
    again = Store(store.path)
    assert len(again.load().agents) == 6
    again.close()


def test_many_threads_at_once(controller: Controller, store: Tracing) -> None:
    put_pod(controller, 16)
    taken: list[str] = []

    def work(worker: int) -> None:
        for n in range(30):
            id = f"w{worker}-{n}"
            controller.submit(create(PartitionSpec(id, 1, "a1"))).result(10)
            if n % 3:
                removal = Removal(Kind.PARTITION, id)
                controller.submit(lambda state, r=removal: (rules.remove(state, r, Context()), None)).result(10)
            elif n % 2:
                taken.append(id)
                assert id in controller.state.partitions
            else:
                removal = Removal(Kind.PARTITION, id, force=True)
                controller.submit(lambda state, r=removal: (rules.remove(state, r, Context()), None)).result(10)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(controller.state.partitions) == sorted(taken)
    assert len(taken) == 8 * 5
    assert violations(controller.state) == []
    assert store.load() == controller.state


def test_stopping_twice_does_no_harm(store: Tracing) -> None:
    controller = Controller(store)
    controller.start()
    controller.submit(create(Agent("ag01", "10.0.0.1"))).result(10)
    stopping = [threading.Thread(target=controller.stop) for _ in range(4)]
    for thread in stopping:
        thread.start()
    for thread in stopping:
        thread.join(10)
        assert not thread.is_alive()
    again = Controller(Store(store.path))  # nobody else has the database any more
    controller.stop()
    assert list(again.state.agents) == ["ag01"]
    with pytest.raises(StoreError, match="in use by another vipu-server"):
        Store(store.path)
    again.stop()


def test_reading_is_not_disturbed(controller: Controller) -> None:
    with controller.reading() as state:
        future = controller.submit(create(Agent("ag01", "10.0.0.1")))
        assert "ag01" not in state.agents
        with pytest.raises(TimeoutError):
            future.result(0.05)
    future.result(10)
    assert "ag01" in controller.state.agents
