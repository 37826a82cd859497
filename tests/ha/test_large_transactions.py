# SPDX-License-Identifier: GPL-3.0-or-later
"""Transactions near the limits of requests, with the default limits of etcd."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from openipu.vipu.domain import rules
from openipu.vipu.domain.context import Context
from openipu.vipu.domain.history import changed_objects
from openipu.vipu.domain.model import Agent, Change, Operation, Partition, Put, ReadyState
from openipu.vipu.domain.specs import PartitionSpec
from openipu.vipu.domain.state import State
from openipu.vipu.storage import event_log
from openipu.vipu.storage.checksums import checksum
from openipu.vipu.storage.etcd import codec, content, writes
from openipu.vipu.storage.etcd.keys import Location
from openipu.vipu.storage.interface import LeadershipLostError
from tests.ha.replica import Replica
from tests.ha.store_writes import end_after, transaction_sizes
from tests.unit.vipu.domain.rules_support import pod
from tests.unit.vipu.storage.store_support import DEVICE, all_records, write_revision

REQUEST_BYTES = 3 << 19  # default of etcd (--max-request-bytes)
PARTITIONS = 120


@pytest.fixture
def replica(location: Location) -> Iterator[Replica]:
    """A replica of a store that exists."""
    content.initialise(location)
    with closing(Replica(location)) as made:
        yield made


@pytest.fixture
def sizes(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of each transaction of the replica, in order."""
    return transaction_sizes(replica.client, monkeypatch)


def reread(replica: Replica, location: Location) -> State:
    """Return the state that a successor reads."""
    replica.close()
    with closing(Replica(location)) as successor:
        return successor.lead().load()


def partitions(state: State) -> list[Change]:
    """Create partitions in a state, and return changes that make each of them fail."""
    changes: list[Change] = []
    for number in range(PARTITIONS):
        state.apply(rules.create(state, PartitionSpec(f"p{number:03}", 1, "a1"), Context()))
        failed = replace(
            state.partitions[f"p{number:03}"],
            ready=ReadyState.ERROR,
            operation=Operation.FAILED,
            errors=("Agent 'ag01' reports an error:",),
            devices=(DEVICE,),
        )
        changes.append(Put(failed))
    return changes


def bytes_of(replica: Replica, state: State, changes: list[Change]) -> int:
    """Return the bytes of the keys and values of a transaction, as ``GuardedWriter`` counts them."""
    records = [change.record for change in changes if isinstance(change, Put)]
    values = [codec.encode(record, checksum(record)) for record in records]
    keys = [replica.keys.record(record.kind, record.id) for record in records]
    after = state.copy()
    after.apply(changes)
    changed = event_log.encode(changed_objects(state, after, changes))
    return sum(map(len, [*keys, *values, replica.keys.revision(1), changed]))


def padded(replica: Replica, state: State, changes: list[Change], size: int) -> list[Change]:
    """Return the changes with longer errors, for a transaction of a number of bytes."""
    missing = (size - bytes_of(replica, state, changes)) // len(changes) - 10  # numbers of digits of checksums differ
    made = [longer(change, missing) for change in changes]
    for number in range(len(made)):
        if (missing := size - bytes_of(replica, state, made)) == 0:
            return made
        made[number] = longer(made[number], missing)
    raise AssertionError(f"no transaction of {size} bytes was found")


def longer(change: Change, characters: int) -> Change:
    """Return the change of a partition with a longer error, or a shorter one."""
    assert isinstance(change, Put)
    assert isinstance(change.record, Partition)
    (error,) = change.record.errors
    error = error + "x" * characters if characters > 0 else error[:characters]
    return Put(replace(change.record, errors=(error,)))


@pytest.mark.parametrize(("more", "transactions"), [(0, 1), (1, 6)], ids=["at the limit", "beyond the limit"])
def test_the_largest_transaction(
    replica: Replica, location: Location, sizes: list[int], more: int, transactions: int
) -> None:
    """The next byte stages it: two parts, the commit, and its execution in two groups with the end in a third."""
    store = replica.lead()
    state = store.load()
    write_revision(store, state, *all_records(pod(32)))
    changes = padded(replica, state, partitions(state.copy()), writes.MAX_BYTES + more)
    sizes.clear()
    write_revision(store, state, *changes)
    assert len(sizes) == transactions
    assert writes.MAX_BYTES * 0.99 < max(sizes) < REQUEST_BYTES
    assert reread(replica, location) == state


@pytest.mark.parametrize("fails_at", range(6))
def test_a_leader_that_ends_within_the_next_larger_transaction(
    replica: Replica, location: Location, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    """Its successor has all of the changes, or none of them."""
    store = replica.lead()
    state = store.load()
    write_revision(store, state, *all_records(pod(32)))
    before = state.copy()
    changes = padded(replica, state, partitions(state.copy()), writes.MAX_BYTES + 1)
    end_after(monkeypatch, replica.client, replica.leadership, fails_at)
    with pytest.raises(LeadershipLostError):
        write_revision(store, state, *changes)
    monkeypatch.undo()
    assert reread(replica, location) == (state if fails_at >= 3 else before)


def plain(number: int) -> Agent:
    """Return an agent whose parts have the usual share of quotes."""
    return Agent(f"ag{number}", "10.0.0.1", number % 60_000 + 1)


def quoted(number: int) -> Agent:
    """Return an agent whose record doubles in a part: its backslashes and quotes are escaped again."""
    return replace(plain(number), out_of_service=True, service_reason='"' * 200)


@pytest.mark.parametrize(("make", "count"), [(plain, 10_000), (quoted, 2_600)])
def test_parts_of_a_large_transaction(
    replica: Replica, location: Location, sizes: list[int], make: Callable[[int], Agent], count: int
) -> None:
    store = replica.lead()
    state = store.load()
    sizes.clear()
    write_revision(store, state, *(Put(make(number)) for number in range(count)))
    assert writes.MAX_BYTES * 0.9 < max(sizes) < writes.MAX_BYTES * 1.01
    assert reread(replica, location) == state
