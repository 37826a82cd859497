# SPDX-License-Identifier: GPL-3.0-or-later
"""Store on etcd: durable, atomic beyond the limits of etcd, and closed to former leaders."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from aetcd import rpc

from openipu.vipu.domain import rules
from openipu.vipu.domain.context import Context
from openipu.vipu.domain.deployment import Deployment
from openipu.vipu.domain.model import Agent, Delete, Kind, Put
from openipu.vipu.domain.state import State
from openipu.vipu.server.initialise import initialise
from openipu.vipu.storage import snapshot
from openipu.vipu.storage.etcd import content, election, writes
from openipu.vipu.storage.etcd.keys import Location, end_of
from openipu.vipu.storage.interface import LeadershipLostError, NotLeaderError, StoreError
from openipu.vipu.storage.store import Store
from openipu.vipu.storage.writer import RecordWriter
from tests.ha.replica import Replica
from tests.ha.store_writes import agents, end_after, transaction_sizes
from tests.unit.vipu.storage.store_support import all_records, rack, write_revision

Start = Callable[[], Replica]


@pytest.fixture
def start(location: Location) -> Iterator[Start]:
    """Start replicas of one deployment, which exists."""
    content.initialise(location)
    started: list[Replica] = []

    def make() -> Replica:
        started.append(Replica(location))
        return started[-1]

    yield make
    for replica in started:
        replica.close()


def test_records_of_every_kind_survive(start: Start) -> None:
    first = start().lead()
    state = first.load()
    desired = rack()
    write_revision(first, state, *all_records(desired))
    write_revision(first, state, Delete(Kind.PARTITION, "one"))
    desired.apply([Delete(Kind.PARTITION, "one")])
    last = first.events.revision
    first.close()
    again = start().lead()
    assert again.load() == desired
    assert again.events.revision == last


def test_a_follower_has_the_records_before_it_leads(start: Start) -> None:
    first, second = start(), start()
    store = first.lead()
    state = store.load()
    write_revision(store, state, *agents(3))
    assert second.mirror.wait(lambda seen: len(seen.records[Kind.AGENT]) == 3, 10)
    assert not second.leadership.campaign()
    store.close()
    assert second.lead().load() == state


@pytest.mark.parametrize("count", [1, 126, 127, 128, 1000])
def test_transactions_larger_than_the_limits_are_atomic(start: Start, count: int) -> None:
    store = start().lead()
    state = store.load()
    first = write_revision(store, state, *agents(count))
    assert write_revision(store, state, Delete(Kind.AGENT, "ag0")) == first + 1
    store.close()
    assert start().lead().load() == state


def test_a_transaction_larger_than_the_bytes_of_a_request(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "MAX_BYTES", 2000)
    store = start().lead()
    state = store.load()
    write_revision(store, state, *agents(100))
    store.close()
    assert start().lead().load() == state


@pytest.mark.parametrize("fails_at", range(6))
def test_a_leader_that_ends_within_a_large_transaction(
    start: Start, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    """Its successor has all of the changes, or none of them."""
    monkeypatch.setattr(writes, "MAX_OPERATIONS", 8)
    monkeypatch.setattr(writes, "_PARALLEL", 1)
    replica = start()
    store = replica.lead()
    state = store.load()
    write_revision(store, state, *agents(5))
    before = state.copy()
    end_after(monkeypatch, replica.client, replica.leadership, fails_at)
    with pytest.raises(LeadershipLostError):
        write_revision(store, state, *(change for change in all_records(rack()) if isinstance(change, Put)))
    monkeypatch.undo()
    store.close()
    successor = start().lead()
    found = successor.load()
    assert found in (before, state)
    assert (found == state) == (fails_at >= 2)  # the second transaction commits: part, head
    assert write_revision(successor, found, Put(Agent("new", "10.0.0.2"))) == successor.events.revision


def test_parts_of_an_uncommitted_transaction_have_no_effect(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "MAX_OPERATIONS", 8)
    expected = None
    for transactions in (1, 2):  # only the second leader commits
        replica = start()
        store = replica.lead()
        state = store.load()
        end_after(monkeypatch, replica.client, replica.leadership, transactions)
        with pytest.raises(LeadershipLostError):
            write_revision(store, state, *agents(20 * transactions))
        expected = state
        store.close()
    assert start().lead().load() == expected


def test_a_missing_part_of_a_committed_transaction_is_noticed(
    start: Start, location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "MAX_OPERATIONS", 8)
    replica = start()
    store = replica.lead()
    state = store.load()
    end_after(monkeypatch, replica.client, replica.leadership, 2)
    with pytest.raises(LeadershipLostError):
        write_revision(store, state, *agents(20))
    monkeypatch.undo()
    first = replica.keys.staged
    replica.client.call("KV", "DeleteRange", rpc.DeleteRangeRequest(key=first, range_end=end_of(first)))
    store.close()
    with pytest.raises(StoreError, match="Parts of a transaction are missing"):
        content.read(location)
    with pytest.raises(StoreError, match="Parts of a transaction are missing"):
        start().lead().load()


def test_a_former_leader_cannot_write(start: Start) -> None:
    first, second = start(), start()
    store = first.lead()
    state = store.load()
    write_revision(store, state, *agents(1))
    # The lease ends, and the former leader does not notice, as after a pause.
    first.leadership._stopping.set()
    first.leadership._revoke(first.leadership._lease)
    successor = second.lead()
    assert successor.load().agents.keys() == {"ag0"}
    with pytest.raises(NotLeaderError, match="Nothing was changed"):
        write_revision(store, state, Put(Agent("late", "10.0.0.9")))
    assert store.lost
    assert second.leadership.token > first.leadership.token
    first.leadership._lease = 0
    successor.close()
    assert start().lead().load().agents.keys() == {"ag0"}


def test_an_attempt_that_was_executed_without_a_response(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    replica = start()
    store = replica.lead()
    state = store.load()
    call, lost = replica.client.call, []

    def lose(service: str, method: str, *arguments: Any) -> Any:
        response = call(service, method, *arguments)
        if method == "Txn" and not lost:
            lost.append(response)
            raise writes.EtcdUnavailableError("the response is lost", None)  # type: ignore[arg-type]
        return response

    monkeypatch.setattr(replica.client, "call", lose)
    first = write_revision(store, state, *agents(2))
    assert lost
    assert write_revision(store, state, Put(Agent("next", "10.0.0.7"))) == first + 1


def test_a_slow_election_is_followed_by_a_renewal(location: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lease began before the election, so a third of it can be over when the election is won."""
    replica, shift, renewed = Replica(location, ttl=12), [0.0], Event()
    call, keep_alive = replica.client.call, replica.client.keep_alive

    def call_slowly(service: str, method: str, request: Any) -> Any:
        response = call(service, method, request)
        shift[0] += 6.0 if method == "Txn" else 0.0
        return response

    def renew(*arguments: Any) -> Any:
        renewed.set()
        return keep_alive(*arguments)

    monkeypatch.setattr(replica.client, "call", call_slowly)
    monkeypatch.setattr(replica.client, "keep_alive", renew)
    monkeypatch.setattr(election, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + shift[0]))
    with closing(replica):
        assert replica.leadership.campaign()
        assert renewed.wait(2.0)  # a third of the lease is 4 s


def test_epochs_increase(start: Start) -> None:
    first = start().lead()
    first.load()
    identity = first.begin_epoch()
    first.close()
    second = start().lead()
    second.load()
    later = second.begin_epoch()
    assert later.id == identity.id
    assert later.epoch > identity.epoch


def test_the_writer_groups_commands_on_etcd(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that wait for the writer share one transaction."""
    replica = start()
    writer = RecordWriter(replica.lead())
    before, sizes = writer.events.revision, transaction_sizes(replica.client, monkeypatch)
    futures = [
        writer.submit(lambda state, agent=change.record: (rules.create(state, agent, Context()), agent.id))
        for change in agents(100)
    ]
    writer.start()
    try:
        assert [future.result(30) for future in futures] == [f"ag{number}" for number in range(100)]
    finally:
        writer.stop()
    assert (len(sizes), writer.events.revision) == (1, before + 1)
    assert len(start().lead().load().agents) == 100


def change_values(value: bytes) -> bytes:
    """Return a value with another address, total and list, whichever it has."""
    return value.replace(b"10.0.0.1", b"10.0.0.2").replace(b'"total": ', b'"total": 1').replace(b"[[", b"[")


def nest_too_deep(value: bytes) -> bytes:
    """Return a value that no parser of JSON reads."""
    return b"[" * 100_000


@pytest.mark.parametrize("damage", [change_values, nest_too_deep])
@pytest.mark.parametrize("key", ["records/agent/ag0", "head", "revisions"])
def test_damaged_records_are_rejected(start: Start, key: str, damage: Callable[[bytes], bytes]) -> None:
    replica = start()
    store = replica.lead()
    write_revision(store, store.load(), *agents(2))
    name = replica.keys.prefix + key.encode()
    request = rpc.RangeRequest(key=name, range_end=name + b"\xff")
    *_, pair = replica.client.call("KV", "Range", request).kvs
    replica.client.call("KV", "Put", rpc.PutRequest(key=pair.key, value=damage(pair.value)))
    replica.close()
    with pytest.raises(StoreError, match="damaged"):
        start().lead().load()


def test_a_newer_version_is_rejected(start: Start) -> None:
    replica = start()
    meta = replica.client.call("KV", "Range", rpc.RangeRequest(key=replica.keys.meta)).kvs[0].value
    newer = meta.replace(b'"version": 1', b'"version": 2')
    replica.client.call("KV", "Put", rpc.PutRequest(key=replica.keys.meta, value=newer))
    with pytest.raises(StoreError, match="newer release"):
        start().lead()


def test_the_log_of_revisions_is_bounded(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openipu.vipu.storage.event_log.KEPT_CHANGES", 10)
    monkeypatch.setattr("openipu.vipu.storage.event_log._EXPIRED_ENTRIES", 5)
    replica = start()
    store = replica.lead()
    state = store.load()
    for number in range(40):
        write_revision(store, state, Put(Agent(f"ag{number}", "10.0.0.1", number + 1)))
    kept = store.events.since(store.events.compacted)
    store.close()
    again = start()
    found = again.lead()
    found.load()
    assert len(again.mirror.content.history) < 20
    assert found.events.since(found.events.revision - 10) == dict(list(kept.items())[-10:])


def test_copies_between_database_and_etcd(location: Location, tmp_path: Path) -> None:
    database, back = tmp_path / "first.db", tmp_path / "back.db"
    initialise(database)
    with closing(Store(database)) as store:
        state = store.load()
        changes = all_records(rack())
        state.apply(changes)
        transaction = store.transaction()
        transaction.add(changes, state)
        transaction.commit()
        identity = store.begin_epoch()
    original = snapshot.from_database(database)
    with content.exclusive(location) as target:
        assert target.empty
        target.replace(original)
    copied = content.read(location)
    assert copied == original
    assert copied.deployment == replace(identity)
    snapshot.to_database(copied, back)
    assert snapshot.from_database(back) == original


def test_a_replacement_needs_that_no_controller_leads(start: Start, location: Location) -> None:
    store = start().lead()
    store.load()
    with pytest.raises(StoreError, match=r"a controller uses it \(127\.0\.0\.1:1\)"), content.exclusive(location):
        pass


def test_a_store_is_created_once(location: Location) -> None:
    assert content.initialise(location)
    deployment = content.read(location).deployment
    assert not content.initialise(location)
    assert content.read(location).deployment == deployment


def test_a_replacement_that_was_interrupted_is_completed(location: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    """A creation does not overwrite what an interrupted migration has committed."""
    monkeypatch.setattr(writes, "MAX_OPERATIONS", 4)
    state = State()
    state.apply(all_records(rack()))
    new = snapshot.of_state(state, Deployment("d1", 3, 1), 7)
    with pytest.raises(LeadershipLostError), content.exclusive(location) as target:
        writer = target._writer
        end_after(monkeypatch, writer._client, writer._leadership, 2)
        target.replace(new)
    monkeypatch.undo()
    assert not content.initialise(location)
    found = content.read(location)
    assert (found.deployment, found.revision) == (new.deployment, new.revision)
    assert {(each.kind, each.id): each for each in found.records} == {
        (each.kind, each.id): each for each in new.records
    }


def test_an_unreachable_etcd_is_named() -> None:
    location = Location(("127.0.0.1:9", "127.0.0.1:7"))
    with pytest.raises(StoreError, match=r"Cannot use the store 'etcd://127.0.0.1:9,127.0.0.1:7/openipu/vipu/'"):
        content.initialise(location)
