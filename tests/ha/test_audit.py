# SPDX-License-Identifier: GPL-3.0-or-later
"""The audit of the history of etcd finds IPUs that were in two partitions for some time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import pytest

from openipu.vipu.domain.model import Change, Delete, Kind, Partition, Put
from openipu.vipu.domain.state import State
from openipu.vipu.storage.etcd import content, writes
from openipu.vipu.storage.etcd.keys import Location
from openipu.vipu.storage.etcd.store import EtcdStore
from tests.ha import audit, contradictions
from tests.ha.replica import Replica
from tests.ha.store_writes import agents
from tests.unit.vipu.storage.store_support import all_records, rack, write_revision

ONE = rack().partitions["one"]  # one IPU
PLACE = f"IPU {ONE.ipus[0].topology_id} in domain 0 of cl0"


@pytest.fixture
def began(location: Location) -> int:
    """Revision of etcd before the first leader."""
    content.initialise(location)
    return audit.revision(location)


@pytest.fixture
def store(location: Location, began: int) -> Iterator[EtcdStore]:
    """Store of a leader, with a rack."""
    with closing(Replica(location)) as replica:
        store = replica.lead()
        write_revision(store, store.load(), *all_records(rack()))
        yield store


def write(store: EtcdStore, *changes: Change) -> int:
    """Write changes that no rule has checked. Return the revision of etcd."""
    transaction = store.transaction()
    transaction.add(changes, State())
    transaction.log(store.events, {})
    transaction.commit()
    return store._writer._head_revision


def stored(location: Location) -> Sequence[Partition]:
    return [each for each in content.read(location).records if isinstance(each, Partition)]


def test_a_valid_history_has_no_findings(store: EtcdStore, location: Location, began: int) -> None:
    write(store, Delete(Kind.PARTITION, "one"))
    write(store, Put(replace(ONE, id="next")))
    write(store, Put(ONE), Delete(Kind.PARTITION, "next"))  # in one transaction, in either order
    write(store, Delete(Kind.PARTITION, "one"), Put(replace(ONE, id="last")))
    assert audit.replay(location, began) == audit.Findings(transactions=5)


def test_an_ipu_in_two_partitions_is_found_after_their_removal(
    store: EtcdStore, location: Location, began: int
) -> None:
    revision = write(store, Put(replace(ONE, id="second")))
    write(store, Delete(Kind.PARTITION, "second"))
    found = stored(location)
    assert contradictions.of_records(found, {each.id: each.size for each in found}) == []  # the end is valid
    assert audit.replay(location, began).shared == [f"revision {revision}: {PLACE} is used by one and second"]


def test_an_ipu_twice_in_one_partition_is_found(store: EtcdStore, location: Location, began: int) -> None:
    revision = write(store, Put(replace(ONE, ipus=ONE.ipus * 2)))
    write(store, Put(ONE))
    assert audit.replay(location, began).shared == [f"revision {revision}: {PLACE} is used by one and one"]


@pytest.mark.parametrize("last", [[Delete(Kind.PARTITION, "one")], []], ids=["valid", "invalid"])
def test_large_transactions_are_checked_at_their_end(
    store: EtcdStore, location: Location, began: int, monkeypatch: pytest.MonkeyPatch, last: list[Change]
) -> None:
    """Their operations become visible one group after the other: here, a partition comes before the removal."""
    monkeypatch.setattr(writes, "MAX_OPERATIONS", 4)
    monkeypatch.setattr(writes, "_PARALLEL", 1)
    revision = write(store, Put(replace(ONE, id="next")), *agents(4), *last)
    assert audit.replay(location, began).shared == (
        [] if last else [f"revision {revision}: {PLACE} is used by one and next"]
    )
