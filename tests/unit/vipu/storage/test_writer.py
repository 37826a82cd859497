# SPDX-License-Identifier: GPL-3.0-or-later
"""RecordWriter: order, durability and failures."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest

from openipu.vipu.domain import rules
from openipu.vipu.domain.context import Context
from openipu.vipu.domain.errors import Code, RuleError
from openipu.vipu.domain.invariants import violations
from openipu.vipu.domain.model import Agent, Change, Delete, Kind, Put
from openipu.vipu.domain.specs import PartitionSpec, Removal, Spec
from openipu.vipu.domain.state import State
from openipu.vipu.server.initialise import initialise
from openipu.vipu.storage.interface import StoppedError
from openipu.vipu.storage.store import Store, StoreError, Transaction
from openipu.vipu.storage.writer import RecordWriter, take_group
from tests.unit.vipu.domain.rules_support import agents, pod


class Tracing(Store):
    """Real database that records the start and end of transactions, and fails on request."""

    def __init__(self, path: Path) -> None:
        initialise(path)
        super().__init__(path)
        self.commits: list[int] = []  # number of changes of each commit
        self.fail: Exception | None = None
        self.gate = threading.Event()  # commits wait for it
        self.gate.set()
        self.entered = threading.Semaphore(0)

    def transaction(self) -> Transaction:
        return Traced(self)


class Traced(Transaction):
    def __init__(self, store: Tracing) -> None:
        super().__init__(store._connection, store._stored, store.verify, store._last.write)
        self.store = store
        self.changes = 0

    def add(self, changes: Sequence[Change], state: State) -> None:
        self.changes += len(changes)
        super().add(changes, state)

    def commit(self) -> int:
        self.store.entered.release()
        assert self.store.gate.wait(10)
        if self.store.fail is not None:
            raise self.store.fail
        revision = super().commit()
        self.store.commits.append(self.changes)
        return revision


@pytest.fixture
def store(tmp_path: Path) -> Tracing:
    return Tracing(tmp_path / "records.db")


@pytest.fixture
def controller(store: Tracing) -> Iterator[RecordWriter]:
    made = RecordWriter(store)
    made.start()
    yield made
    store.gate.set()
    made.stop()


def create(spec: Spec) -> Callable[[State], tuple[list[Change], str]]:
    return lambda state: (rules.create(state, spec, Context()), spec.id)


def put_pod(controller: RecordWriter, machines: int = 4) -> None:
    desired = pod(machines)
    records = [Put(record) for kind in Kind for record in desired.table(kind).values()]
    controller.submit(lambda state: (records, None)).result(10)


def hold(controller: RecordWriter, store: Tracing) -> Future[str]:
    """Block the writer during a commit; release it with ``store.gate.set()``."""
    store.gate.clear()
    while store.entered.acquire(blocking=False):
        pass
    first = controller.submit(create(Agent("first", "10.0.0.1")))
    assert store.entered.acquire(timeout=10)
    return first


def test_an_acknowledged_change_is_durable_and_visible(controller: RecordWriter, store: Tracing) -> None:
    assert controller.submit(create(Agent("ag01", "10.0.0.1"))).result(10) == "ag01"
    assert controller.state.agents["ag01"].host == "10.0.0.1"
    assert store.commits == [1]
    assert list(store.load().agents) == ["ag01"]


def test_changes_are_invisible_before_they_are_durable(controller: RecordWriter, store: Tracing) -> None:
    first = hold(controller, store)
    assert controller.state.agents == {}
    assert not first.done()
    store.gate.set()
    first.result(10)
    assert list(controller.state.agents) == ["first"]


def test_waiting_commands_share_a_transaction(controller: RecordWriter, store: Tracing) -> None:
    first = hold(controller, store)
    waiting = [controller.submit(create(agent)) for agent in agents(50)]
    store.gate.set()
    assert [future.result(10) for future in (first, *waiting)] == ["first", *(agent.id for agent in agents(50))]
    assert store.commits == [1, 50]


@pytest.fixture
def waiting() -> queue.SimpleQueue[int | None]:
    """Return a queue with two items."""
    items: queue.SimpleQueue[int | None] = queue.SimpleQueue()
    items.put(2)
    items.put(3)
    return items


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_group_that_is_large_enough_does_not_wait(waiting: queue.SimpleQueue[int | None], count: int) -> None:
    assert take_group(waiting, 1, count, threading.TIMEOUT_MAX) == [1, 2, 3]


def test_a_group_waits_for_the_callers_of_the_last_one(waiting: queue.SimpleQueue[int | None]) -> None:
    late = threading.Timer(0.05, waiting.put, (4,))
    late.start()
    assert take_group(waiting, 1, 4, 30) == [1, 2, 3, 4]
    late.join()


def test_a_group_does_not_wait_for_lost_callers(waiting: queue.SimpleQueue[int | None]) -> None:
    assert take_group(waiting, 1, 4, 0.01) == [1, 2, 3]


def test_none_ends_a_group(waiting: queue.SimpleQueue[int | None]) -> None:
    waiting.put(None)
    waiting.put(5)
    assert take_group(waiting, 1, 9, 30) == [1, 2, 3, None]
    assert waiting.qsize() == 1


@pytest.mark.parametrize(("seconds", "commits"), [(0.0, [1, 2, 1, 1]), (30.0, [1, 2, 2])])
def test_the_store_says_how_long_a_transaction_waits(
    controller: RecordWriter, store: Tracing, seconds: float, commits: list[int]
) -> None:
    store.group_seconds = seconds
    one, two, three, four = agents(4)
    first = hold(controller, store)
    waiting = [controller.submit(create(agent)) for agent in (one, two)]
    store.gate.set()
    for future in (first, *waiting):
        future.result(10)
    later = controller.submit(create(three))
    if not seconds:
        later.result(10)
    controller.submit(create(four)).result(10)
    later.result(10)
    assert store.commits == commits


def test_commands_see_earlier_changes(controller: RecordWriter, store: Tracing) -> None:
    hold(controller, store)
    first = controller.submit(create(Agent("ag01", "10.0.0.2")))
    duplicate = controller.submit(create(Agent("ag01", "10.0.0.3")))
    removed = controller.submit(lambda state: (rules.remove(state, Removal(Kind.AGENT, "ag01"), Context()), None))
    recreated = controller.submit(create(Agent("ag01", "10.0.0.4")))
    store.gate.set()
    first.result(10)
    with pytest.raises(RuleError) as rejected:
        duplicate.result(10)
    assert rejected.value.code is Code.ALREADY_EXISTS
    removed.result(10)
    recreated.result(10)
    assert controller.state.agents["ag01"].host == "10.0.0.4"
    assert store.load() == controller.state


def test_a_command_that_raises_fails_alone(controller: RecordWriter, store: Tracing) -> None:
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


@pytest.mark.parametrize("error", [StoreError("The disk is full."), RuntimeError("a bug")])
def test_a_failing_commit_fails_its_batch_and_changes_nothing(
    controller: RecordWriter, store: Tracing, error: Exception
) -> None:
    put_pod(controller)
    before = controller.state.copy()
    hold(controller, store)
    store.fail = error
    waiting = [controller.submit(create(PartitionSpec(f"p{n}", 1, "a1"))) for n in range(3)]
    duplicate = controller.submit(create(PartitionSpec("p0", 1, "a1")))
    store.gate.set()
    for future in (*waiting, duplicate):
        with pytest.raises(type(error), match=str(error)):
            future.result(10)
    assert controller.state == before
    store.fail = None
    # The failed changes are not in the state of the writer either.
    controller.submit(create(PartitionSpec("p0", 16, "a1"))).result(10)
    assert violations(controller.state) == []
    assert store.load() == controller.state


def test_commits_succeed_again_after_a_full_disk(controller: RecordWriter, store: Tracing) -> None:
    put_pod(controller)
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    changes = [Put(replace(agent, id=f"{agent.id}-{'x' * 50}", host=f"host-{agent.id}")) for agent in agents(500)]
    with pytest.raises(StoreError, match=r"database or disk is full\. Nothing was changed"):
        controller.submit(lambda state: (changes, None)).result(10)
    assert len(controller.state.agents) == 4
    store._connection.execute(f"PRAGMA max_page_count = {pages + 1000}")
    controller.submit(lambda state: (changes, None)).result(10)
    assert len(controller.state.agents) == 504
    assert store.load() == controller.state


def test_subscribers_receive_each_commit_before_its_futures_are_done(controller: RecordWriter, store: Tracing) -> None:
    received: list[tuple[list[Change], bool]] = []
    futures: list[Future[str]] = []

    def failing(changes: Sequence[Change]) -> None:
        raise ZeroDivisionError

    controller.subscribe(failing)
    controller.subscribe(lambda changes: received.append((list(changes), futures[0].done())))
    hold(controller, store)
    agent = Agent("ag01", "10.0.0.2")
    futures.append(controller.submit(create(agent)))
    futures.append(controller.submit(lambda state: ([Delete(Kind.AGENT, "ag01")], "gone")))
    store.gate.set()
    assert [future.result(10) for future in futures] == ["ag01", "gone"]
    assert received[1:] == [([Put(agent), Delete(Kind.AGENT, "ag01")], False)]


def test_a_read_only_command_fails_with_the_changes_it_read(controller: RecordWriter, store: Tracing) -> None:
    hold(controller, store)
    store.fail = StoreError("No.")
    controller.submit(create(Agent("ag01", "10.0.0.2")))
    reader = controller.submit(lambda state: ([], "ag01" in state.agents))
    store.gate.set()
    with pytest.raises(StoreError):
        reader.result(10)


def test_a_cancelled_command_is_not_run(controller: RecordWriter, store: Tracing) -> None:
    hold(controller, store)
    future = controller.submit(create(Agent("ag01", "10.0.0.2")))
    last = controller.submit(create(Agent("ag02", "10.0.0.3")))
    assert future.cancel()
    store.gate.set()
    last.result(10)
    assert list(controller.state.agents) == ["first", "ag02"]


def test_stop_finishes_what_was_submitted_and_rejects_the_rest(store: Tracing) -> None:
    controller = RecordWriter(store)
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


def test_commands_of_many_threads(controller: RecordWriter, store: Tracing) -> None:
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


def test_stopping_twice_is_no_error(store: Tracing) -> None:
    controller = RecordWriter(store)
    controller.start()
    controller.submit(create(Agent("ag01", "10.0.0.1"))).result(10)
    stopping = [threading.Thread(target=controller.stop) for _ in range(4)]
    for thread in stopping:
        thread.start()
    for thread in stopping:
        thread.join(10)
        assert not thread.is_alive()
    again = RecordWriter(Store(store.path))  # the database is unlocked
    controller.stop()
    assert list(again.state.agents) == ["ag01"]
    with pytest.raises(StoreError, match="another vipu-server uses it"):
        Store(store.path)
    again.stop()


def test_a_reader_delays_later_changes(controller: RecordWriter) -> None:
    with controller.reading() as state:
        future = controller.submit(create(Agent("ag01", "10.0.0.1")))
        assert "ag01" not in state.agents
        with pytest.raises(TimeoutError):
            future.result(0.05)
    future.result(10)
    assert "ag01" in controller.state.agents


def test_a_lost_database_is_noticed_without_commands(store: Tracing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openipu.vipu.storage.writer._IDLE_CHECK", 0.01)
    controller = RecordWriter(store)
    lost = threading.Event()
    controller.on_loss(lost.set)
    controller.start()
    try:
        assert not store.lost
        store.path.unlink()
        assert lost.wait(10)
        store.path.touch()  # another file does not help
        with pytest.raises(StoreError, match=r"was deleted or moved\. Changes are rejected\. Stop the controller"):
            controller.submit(create(Agent("ag01", "10.0.0.1"))).result(10)
        assert controller.state.agents == {}
    finally:
        controller.stop()


def test_a_database_lost_during_a_commit_acknowledges_nothing(controller: RecordWriter, store: Tracing) -> None:
    verify, calls = store.verify, []

    def lose_it_after_the_first_check() -> None:
        verify()
        calls.append(store.path.unlink(missing_ok=True))

    store.verify = lose_it_after_the_first_check  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="was deleted or moved"):
        controller.submit(create(Agent("ag01", "10.0.0.1"))).result(10)
    assert len(calls) == 1
    assert controller.state.agents == {}
