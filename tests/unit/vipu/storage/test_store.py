# SPDX-License-Identifier: GPL-3.0-or-later
"""Records of the database: stored changes, and rejected ones."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest

from openipu.vipu.domain.model import (
    Certificate,
    Change,
    Cluster,
    Delete,
    Kind,
    Operation,
    PlacedIpu,
    Put,
    ReadyState,
    RevokedKey,
    Role,
    User,
)
from openipu.vipu.domain.state import State
from openipu.vipu.storage.store import Store, StoreError
from tests.unit.vipu.domain.rules_support import agents, partition, pod, user
from tests.unit.vipu.storage.store_support import DEVICE, all_records, rack, reopened, write


def test_all_records_are_restored(store: Store) -> None:
    state = State()
    write(store, state, *all_records(rack()))
    assert state == rack()
    assert reopened(store) == state


def test_an_ipu_cannot_be_in_two_partitions(store: Store) -> None:
    state = State()
    write(store, state, *all_records(rack()))
    write_raw = sqlite3.connect(store.path)
    with pytest.raises(sqlite3.IntegrityError, match=r"partition_ipus\.agent, partition_ipus\.ipu"):
        write_raw.execute(
            "INSERT INTO partition_ipus SELECT agent, ipu, 'small', segment, 99 FROM partition_ipus "
            "WHERE partition = 'one'"
        )
    write_raw.close()
    one = state.partitions["one"]
    transaction = store.transaction()
    transaction.add([Put(replace(one, id="thief"))], state)
    with pytest.raises(StoreError, match="UNIQUE constraint failed"):
        transaction.commit()
    assert reopened(store) == state


def test_changes_of_a_partition_are_stored(store: Store) -> None:
    state = State()
    write(store, state, *all_records(rack()))
    eight = state.partitions["eight"]
    for changed in (
        replace(eight, ready=ReadyState.ERROR, operation=Operation.FAILED, errors=("A.", "B.", "C.")),
        replace(eight, ready=ReadyState.ERROR, operation=Operation.FAILED, errors=("B.",)),
        replace(eight, ready=ReadyState.PENDING, operation=Operation.RESETTING, errors=(), devices=(), retries=1),
        replace(eight, devices=tuple(replace(DEVICE, chip_id=f"new {n}") for n in range(8))),
        replace(eight, devices=tuple(replace(DEVICE, chip_id=f"newer {n}") for n in range(8))),
    ):
        write(store, state, Put(changed))
        assert reopened(store) == state


def test_a_partition_moves_and_moves_back_in_one_transaction(store: Store) -> None:
    state = State()
    write(store, state, *all_records(pod(2)))
    one = partition(state, "one", 1)
    write(store, state, Put(one))
    moved = replace(one, ipus=(PlacedIpu(0, 0, 6, 0),))
    returned = replace(one, ipus=(replace(one.ipus[0]),))
    transaction = store.transaction()
    for record in (moved, returned, replace(moved, devices=(DEVICE,)), returned, moved):
        state.apply([Put(record)])
        transaction.add([Put(record)], state)
    transaction.commit()
    assert reopened(store) == state
    assert reopened(store).holders == {"ag02": {2: "one"}}


def test_ipus_change_their_partition_in_one_transaction(store: Store) -> None:
    state = State()
    write(store, state, *all_records(pod(1)))
    one = partition(state, "one", 1)
    write(store, state, Put(one))
    transaction = store.transaction()
    for changes in ([Delete(Kind.PARTITION, "one")], [Put(replace(one, id="two"))], [Delete(Kind.PARTITION, "two")]):
        state.apply(changes)
        transaction.add(changes, state)
    changes = [Put(replace(one, num_replicas=1))]
    state.apply(changes)
    transaction.add(changes, state)
    transaction.commit()
    assert reopened(store) == state
    assert list(state.partitions) == ["one"]


def test_a_cluster_and_its_partitions_are_created_and_deleted_in_one_transaction(store: Store) -> None:
    state, desired = State(), rack()
    transaction = store.transaction()
    for change in all_records(desired):
        state.apply([change])
        transaction.add([change], state)
    deletions: list[Change] = [Delete(Kind.PARTITION, id) for id in desired.partitions]
    deletions += [Delete(Kind.USER, id) for id in desired.users]
    deletions += [Delete(Kind.ALLOCATION, id) for id in desired.allocations]
    deletions.append(Delete(Kind.CLUSTER, "cl0"))
    state.apply(deletions)
    transaction.add(deletions, state)
    transaction.commit()
    assert reopened(store) == state
    assert list(state.agents) == [agent.id for agent in agents(8)]


def test_agents_exchange_their_endpoints_in_one_transaction(store: Store) -> None:
    first, second, third = agents(3)
    state = State()
    write(store, state, Put(first), Put(second))
    write(
        store,
        state,
        Put(replace(first, host=third.host)),
        Put(replace(second, host=first.host)),
        Put(replace(first, host=second.host)),
    )
    assert reopened(store) == state


def test_clusters_and_allocations_change(store: Store) -> None:
    state = State()
    write(store, state, *all_records(pod(4, allocations={"a1": 2})))
    cluster = state.clusters["cl0"]
    write(store, state, Put(Cluster("cl0", tuple(reversed(cluster.agents)), 2, cluster.topology)))
    write(store, state, Put(replace(state.allocations["a1"], agents=("ag04", "ag03", "ag02", "ag01"))))
    assert reopened(store) == state


def test_a_failed_commit_changes_nothing(store: Store) -> None:
    state = State()
    write(store, state, *all_records(rack()))
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    many = [Put(replace(agent, id=f"{agent.id}-{'x' * 50}", host=f"host-{agent.id}")) for agent in agents(500)]
    after = state.copy()
    transaction = store.transaction()
    after.apply(many)
    transaction.add(many, after)
    message = r"^Cannot write to the database: database or disk is full\. Nothing was changed\. Check the disk\.$"
    with pytest.raises(StoreError, match=message):
        transaction.commit()
    assert reopened(store) == state
    write(store, state, Delete(Kind.PARTITION, "one"))  # a deletion is always possible
    assert reopened(store) == state


def test_values_of_a_wrong_type_are_rolled_back(store: Store) -> None:
    state = State()
    write(store, state, *all_records(rack()))
    transaction = store.transaction()
    other = user("other")
    transaction.add([Delete(Kind.PARTITION, "one"), Put(replace(other, allocations=None))], state)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        transaction.commit()
    assert not store._connection.in_transaction
    assert reopened(store) == state
    write(store, state, Delete(Kind.PARTITION, "one"))
    assert reopened(store) == state


def test_certificates_of_users(store: Store) -> None:
    state = State()
    own = (Certificate("k1", "1f", 100, True), Certificate("k2", "2f", 200))
    user = User("alice", Role.USER, (), "hash", "salt", own)
    write(store, state, Put(user), Put(User("bob", Role.USER, (), "hash", "salt")))
    assert reopened(store).users == state.users
    write(store, state, Put(replace(user, certificates=own[1:])))
    assert reopened(store).users == state.users
    write(store, state, Delete(Kind.USER, "alice"))
    assert (reopened(store).users, reopened(store).certificate_users) == (state.users, {})
    write(store, state, Put(RevokedKey("k1", "alice", "1f", 100)))
    assert reopened(store) == state
