# SPDX-License-Identifier: GPL-3.0-or-later
"""Inconsistent records are reported, one message each, and so are indexes that do not match."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from openipu.vipu.domain.invariants import rebuild, violations
from openipu.vipu.domain.model import (
    Agent,
    Allocation,
    Cluster,
    Device,
    Kind,
    Operation,
    PlacedIpu,
    Put,
    ReadyState,
    Record,
    Routing,
    SyncType,
)
from openipu.vipu.domain.state import State
from tests.unit.vipu.domain.rules_support import create, names, partition, pod, user

DEVICE = Device("127.5.1.1", 1, 2, 0, 0, "chip", "2.6.0", "1.0", "1.3.3")


def records(state: State) -> list[Record]:
    return [record for kind in Kind for record in state.table(kind).values()]


@pytest.fixture
def valid_state() -> State:
    state = pod(4, allocations={"a1": 2, "a2": 1})
    create(state, user("alice", "a1"))
    p1 = partition(state, "p1", 2)
    state.apply([Put(replace(p1, ready=ReadyState.ACTIVE, operation=Operation.IDLE, devices=(DEVICE,) * 2, retries=2))])
    partition(state, "p2", 4)
    return state


def test_valid_records(valid_state: State) -> None:
    rebuilt, wrong = rebuild(reversed(records(valid_state)))
    assert wrong == []
    assert rebuilt == valid_state
    assert violations(valid_state) == []


def ipus(*ids: int) -> tuple[PlacedIpu, ...]:
    return tuple(PlacedIpu(0, 0, id, number) for number, id in enumerate(ids))


WRONG: list[tuple[Callable[[State], Record], str]] = [
    (lambda s: Agent("..", "h"), "agent '..' is invalid: the id of an agent"),
    (lambda s: Agent("ag05", "10.1.2.1"), "agent 'ag05' is invalid: agent 'ag01' already uses 10.1.2.1:8080"),
    (lambda s: Agent("ag01", "other"), "agent 'ag01' is invalid: another record has the same id"),
    (lambda s: Cluster("c", ("ag01",)), "cluster 'c' is invalid: agent 'ag01' is already in cluster 'cl0'"),
    (lambda s: Cluster("c", ("ag09",)), "cluster 'c' is invalid: agent 'ag09' does not exist"),
    (lambda s: Cluster("c", ()), "cluster 'c' is invalid: it needs at least one agent"),
    (lambda s: Allocation("a", "cl0", names(2)), "'a' is invalid: agent 'ag02' is already in allocation 'a1'"),
    (lambda s: Allocation("a", "cl0", ()), "allocation 'a' is invalid"),
    (lambda s: Allocation("a", "cl9", names(4)), "allocation 'a' is invalid: cluster 'cl9' does not exist"),
    (lambda s: replace(s.partitions["p1"], id="p"), "IPU 1 of agent 'ag01' is in partition 'p1'"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=ipus(12)), "'p' is invalid: agent 'ag04' is in no allocation"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=ipus(8)), "not all of its IPUs are in allocation 'a1'"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=ipus(*range(99))), "power of two"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=()), "it has no IPUs"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=ipus(2)), "it has 1 IPUs but 2 devices"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=ipus(2, 3), num_gcds=3), "into 3 GCDs"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=ipus(2, 3), num_gcds=0), "would create it differently"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=ipus(2, 3)[::-1]), "would create it differently"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=ipus(2, 3), num_segments=2), "its number of segments is 2"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=ipus(2, 3), routing=Routing.RINGSWNC), "RINGSWNC"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=ipus(2, 3), allocation="a9"), "allocation 'a9'"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=ipus(2, 3), allocation=""), "would create it differently"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=ipus(2, 3), cluster="cl9"), "cluster 'cl9' does not exist"),
    (
        lambda s: replace(
            s.partitions["p1"], id="p", ipus=ipus(2, 3), reconfigurable=True, sync_type=SyncType.POD_NATIVE_DEFAULT
        ),
        "c2-compatible",
    ),
    (lambda s: user("bob", "a9"), "user 'bob' is invalid: allocation 'a9' does not exist"),
]


@pytest.mark.parametrize(("record", "message"), WRONG)
def test_an_invalid_record_is_reported_and_omitted(
    valid_state: State, record: Callable[[State], Record], message: str
) -> None:
    rebuilt, wrong = rebuild([*records(valid_state), record(valid_state)])
    assert len(wrong) == 1
    assert message in wrong[0]
    assert rebuilt == valid_state


def test_dependents_of_an_invalid_record_are_invalid_too(valid_state: State) -> None:
    _, wrong = rebuild(record for record in records(valid_state) if record.id != "a1")
    assert len(wrong) == 3  # two partitions and a user
    _, wrong = rebuild(record for record in records(valid_state) if record.id != "ag03")
    assert len(wrong) == 1 + 2 + 2 + 1


@pytest.mark.parametrize(
    "corrupt",
    [
        lambda s: s.holders["ag01"].clear(),
        lambda s: s.occupied["cl0"].__setitem__(3, 1),
        lambda s: s.cluster_of.pop("ag04"),
        lambda s: s.position_of.update(ag04=0),
        lambda s: s.allocation_of.pop("ag01"),
        lambda s: s.allocations_in.pop("cl0"),
        lambda s: s.partitions_in["a1"].add("p9"),
        lambda s: s.users_of.clear(),
        lambda s: s.endpoints.clear(),
    ],
)
def test_wrong_indexes_are_reported(valid_state: State, corrupt: Callable[[State], object]) -> None:
    corrupt(valid_state)
    assert len(violations(valid_state)) == 1
