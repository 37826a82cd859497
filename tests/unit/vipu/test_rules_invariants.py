# SPDX-License-Identifier: GPL-3.0-or-later
"""Records that do not make sense are told apart, one sentence each; the look-ups are checked too."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from rules_support import create, names, partition, pod, user

from openipu.vipu.invariants import rebuild, violations
from openipu.vipu.model import (
    Agent,
    Allocation,
    Cluster,
    Device,
    Kind,
    Operation,
    PlacedIpu,
    Put,
    Ready,
    Record,
    Routing,
    State,
    SyncType,
)

DEVICE = Device("127.5.1.1", 1, 2, 0, 0, "chip", "2.6.0", "1.0", "1.3.3")


def records(state: State) -> list[Record]:
    return [record for kind in Kind for record in state.table(kind).values()]


@pytest.fixture
def sound() -> State:
    state = pod(4, allocations={"a1": 2, "a2": 1})
    create(state, user("alice", "a1"))
    p1 = partition(state, "p1", 2)
    state.apply([Put(replace(p1, ready=Ready.ACTIVE, operation=Operation.IDLE, devices=(DEVICE,) * 2, retries=2))])
    partition(state, "p2", 4)
    return state


def test_sound_records_are_sound(sound: State) -> None:
    rebuilt, wrong = rebuild(reversed(records(sound)))
    assert wrong == []
    assert rebuilt == sound
    assert violations(sound) == []


def ipus(*ids: int) -> tuple[PlacedIpu, ...]:
    return tuple(PlacedIpu(0, 0, id, number) for number, id in enumerate(ids))


WRONG: list[tuple[Callable[[State], Record], str]] = [
    (lambda s: Agent("..", "h"), "agent '..' is wrong: the id of an agent"),
    (lambda s: Agent("ag05", "10.1.2.1"), "agent 'ag05' is wrong: agent 'ag01' has 10.1.2.1:8080 already"),
    (lambda s: Agent("ag01", "other"), "agent 'ag01' is wrong: there are two of that id"),
    (lambda s: Cluster("c", ("ag01",)), "cluster 'c' is wrong: agent 'ag01' is in cluster 'cl0' already"),
    (lambda s: Cluster("c", ("ag09",)), "cluster 'c' is wrong: agent 'ag09' does not exist"),
    (lambda s: Cluster("c", ()), "cluster 'c' is wrong: it needs at least one agent"),
    (lambda s: Allocation("a", "cl0", names(2)), "allocation 'a' is wrong: agent 'ag02' is in allocation 'a1' already"),
    (lambda s: Allocation("a", "cl0", ()), "allocation 'a' is wrong"),
    (lambda s: Allocation("a", "cl9", names(4)), "allocation 'a' is wrong: cluster 'cl9' does not exist"),
    (lambda s: replace(s.partitions["p1"], id="p"), "IPU 1 of agent 'ag01' is in partition 'p1'"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=ipus(12)), "partition 'p' is wrong: agent 'ag04' is in no all"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=ipus(8)), "not all of its IPUs are in allocation 'a1'"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=ipus(*range(99))), "power of two"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=()), "it has no IPUs"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=ipus(2)), "it has 1 IPUs and 2 devices"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=ipus(2, 3), num_gcds=3), "into 3 GCDs"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=ipus(2, 3), num_gcds=0), "would not make it as it is"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=ipus(2, 3)[::-1]), "would not make it as it is"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=ipus(2, 3), num_segments=2), "asks for 2 segments"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=ipus(2, 3), routing=Routing.RINGSWNC), "RINGSWNC"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=ipus(2, 3), allocation="a9"), "allocation 'a9'"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=ipus(2, 3), allocation=""), "would not make it as it is"),
    (lambda s: replace(s.partitions["p1"], id="p", ipus=ipus(2, 3), cluster="cl9"), "cluster 'cl9' does not exist"),
    (
        lambda s: replace(
            s.partitions["p1"], id="p", ipus=ipus(2, 3), reconfigurable=True, sync_type=SyncType.POD_NATIVE_DEFAULT
        ),
        "c2-compatible",
    ),
    (lambda s: user("bob", "a9"), "user 'bob' is wrong: allocation 'a9' does not exist"),
]


@pytest.mark.parametrize(("record", "sentence"), WRONG)
def test_a_wrong_record_is_told_and_left_out(sound: State, record: Callable[[State], Record], sentence: str) -> None:
    rebuilt, wrong = rebuild([*records(sound), record(sound)])
    assert len(wrong) == 1
    assert sentence in wrong[0]
    assert rebuilt == sound


def test_what_needs_a_wrong_record_is_wrong_too(sound: State) -> None:
    _, wrong = rebuild(record for record in records(sound) if record.id != "a1")
    assert len(wrong) == 3  # two partitions and a user
    _, wrong = rebuild(record for record in records(sound) if record.id != "ag03")
    assert len(wrong) == 1 + 2 + 2 + 1


@pytest.mark.parametrize(
    "spoil",
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
def test_look_ups_that_disagree_are_told(sound: State, spoil: Callable[[State], object]) -> None:
    spoil(sound)
    assert len(violations(sound)) == 1
