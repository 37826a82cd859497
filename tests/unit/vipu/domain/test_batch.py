# SPDX-License-Identifier: GPL-3.0-or-later
"""Batches: all or none, in the order of dependency, with a result for each item, in linear time."""

import sys
from dataclasses import replace

import pytest

from openipu.vipu.domain.batch import Batch, BatchResult, apply_batch
from openipu.vipu.domain.invariants import violations
from openipu.vipu.domain.model import Agent, Cluster, Kind, Role, Topology
from openipu.vipu.domain.rules import Code, Context
from openipu.vipu.domain.specs import AllocationSpec, Outcome, PartitionSpec, Removal, UserSpec
from openipu.vipu.domain.state import State
from openipu.vipu.domain.validation import MAX_BATCH_ITEMS
from tests.unit.vipu.domain.rules_support import agents, create, names, partition, pod, rejection, user


def apply(state: State, batch: Batch, context: Context | None = None) -> BatchResult:
    """Apply a batch and its changes to the state. A batch without changes must leave the state equal."""
    before = state.copy()
    result = apply_batch(state, batch, context or Context())
    assert state == before
    assert result.applied or not result.changes
    state.apply(result.changes)
    assert violations(state) == []
    return result


def outcomes(result: BatchResult) -> list[tuple[str, str]]:
    return [(item.id, str(item.outcome)) for item in result.results]


def whole_pod(number: int = 0, machines: int = 16, partitions: int = 16) -> Batch:
    ids = tuple(f"pod{number}-ag{n:02}" for n in range(machines))
    return Batch(
        agents=tuple(Agent(id, f"10.{number}.2.{n + 1}") for n, id in enumerate(ids)),
        clusters=(Cluster(f"cl{number}", ids, topology=Topology.TORUS),),
        allocations=(AllocationSpec(f"a{number}", f"cl{number}", machines),),
        partitions=tuple(PartitionSpec(f"pod{number}-p{n}", 4, f"a{number}") for n in range(partitions)),
    )


def joined(*batches: Batch) -> Batch:
    return Batch(
        agents=tuple(item for batch in batches for item in batch.agents),
        clusters=tuple(item for batch in batches for item in batch.clusters),
        allocations=tuple(item for batch in batches for item in batch.allocations),
        partitions=tuple(item for batch in batches for item in batch.partitions),
    )


def test_a_repeated_batch_changes_nothing() -> None:
    state = State()
    batch = replace(whole_pod(), users=(user("alice", "a0"),))
    assert len(batch) == 35
    result = apply(state, batch)
    assert result.applied
    assert {item.outcome for item in result.results} == {Outcome.CREATED}
    assert [item.kind for item in result.results] == (
        [Kind.AGENT] * 16 + [Kind.CLUSTER, Kind.ALLOCATION] + [Kind.PARTITION] * 16 + [Kind.USER]
    )
    again = apply(state, batch)
    assert (again.applied, again.changes) == (True, [])
    assert {item.outcome for item in again.results} == {Outcome.UNCHANGED}
    assert apply(state, Batch()) == BatchResult([], [], True)


def test_one_invalid_item_rejects_the_batch() -> None:
    state = pod(4)
    batch = Batch(
        agents=(Agent("ag01", "10.1.2.1"), Agent("ag02", "elsewhere"), Agent("ag05", "new"), Agent("ag06", "x:y")),
        partitions=(PartitionSpec("p1", 3, "a1"), PartitionSpec("p2", 4, "a1")),
    )
    result = apply(state, batch)
    assert not result.applied
    assert outcomes(result) == [
        ("ag01", "unchanged"),
        ("ag02", "not_applied"),
        ("ag05", "not_applied"),
        ("ag06", "failed"),
        ("p1", "failed"),
        ("p2", "not_applied"),
    ]
    assert result.results[3].code is Code.INVALID_ARGUMENT
    assert result.results[3].error.startswith("Cannot create agent 'ag06': the host")
    assert result.results[2].error == ""
    assert set(state.agents) == set(names(1, 2, 3, 4))


def test_consequential_errors_are_not_reported() -> None:
    batch = whole_pod(machines=4, partitions=2)
    batch = replace(batch, agents=(*batch.agents[:3], Agent(batch.agents[3].id, "no host")))
    result = apply(State(), batch)
    assert [item.outcome for item in result.results] == [Outcome.NOT_APPLIED] * 3 + [Outcome.FAILED] + [
        Outcome.NOT_APPLIED
    ] * 4
    # An object that is missing anyway is an error of its own.
    result = apply(State(), replace(batch, agents=batch.agents[:3]))
    assert [item.outcome for item in result.results][3] is Outcome.FAILED
    assert result.results[3].error == "Cannot create cluster 'cl0': agent 'pod0-ag03' does not exist."


def test_removals_come_first_in_the_order_of_dependency() -> None:
    state = pod(2)
    create(state, user("alice", "a1"))
    partition(state, "p1", 4)
    removals = (
        Removal(Kind.AGENT, "ag01"),
        Removal(Kind.USER, "alice"),
        Removal(Kind.CLUSTER, "cl0"),
        Removal(Kind.PARTITION, "p1"),
        Removal(Kind.ALLOCATION, "a1"),
    )
    result = apply(state, Batch(removals=removals, agents=(Agent("ag03", "10.1.2.1"),)))
    assert outcomes(result) == [(removal.id, "removed") for removal in removals] + [("ag03", "created")]
    assert set(state.agents) == {"ag02", "ag03"}
    assert not state.users
    failed = apply(state, Batch(removals=(Removal(Kind.AGENT, "ag03"), Removal(Kind.AGENT, "ag99"))))
    assert outcomes(failed) == [("ag03", "not_applied"), ("ag99", "failed")]
    assert failed.results[1].code is Code.NOT_FOUND


def test_a_removed_and_desired_object_is_created_again() -> None:
    state = pod(4)
    create(state, user("alice", "a1"))
    create(state, user("bob", "a1"))
    old = partition(state, "p1", 4)
    result = apply(
        state,
        Batch(partitions=(PartitionSpec("p1", 8, "a1"),), removals=(Removal(Kind.PARTITION, "p1"),)),
    )
    assert outcomes(result) == [("p1", "removed"), ("p1", "created")]
    assert (old.size, state.partitions["p1"].size) == (4, 8)
    # An allocation that is created again keeps its users; a removed one does not.
    batch = Batch(allocations=(AllocationSpec("a1", "cl0", 2),), removals=(Removal(Kind.ALLOCATION, "a1", force=True),))
    assert outcomes(apply(state, batch)) == [("a1", "removed"), ("a1", "created")]
    assert not state.partitions
    assert state.users["alice"].allocations == ("a1",)
    assert apply(state, Batch(removals=(Removal(Kind.ALLOCATION, "a1"),))).applied
    assert state.users["bob"].allocations == ()


def test_a_whole_cluster_is_created_again() -> None:
    state = pod(4)
    create(state, user("alice", "a1"))
    partition(state, "p1", 16)
    batch = Batch(
        clusters=(Cluster("cl0", names(1, 2, 3, 4), 2),),
        allocations=(AllocationSpec("a1", "cl0", 4),),
        partitions=(PartitionSpec("p1", 16, "a1"),),
        removals=(Removal(Kind.CLUSTER, "cl0", force=True),),
    )
    assert apply(state, batch).applied
    assert state.partitions["p1"].num_segments == 2
    assert state.users["alice"].allocations == ("a1",)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (
            Batch(agents=(*agents(3), Agent("ag02", "else"))),
            "Cannot apply agent 'ag02': it is listed in agents[1] and agents[3]. List it once.",
        ),
        (
            Batch(removals=(Removal(Kind.AGENT, "ag01"), Removal(Kind.USER, "u"), Removal(Kind.AGENT, "ag01"))),
            "Cannot apply agent 'ag01': it is listed in removals[0] and removals[2]. List it once.",
        ),
    ],
)
def test_nothing_is_listed_twice(batch: Batch, message: str) -> None:
    state = pod(1, allocations={})
    create(state, user("u"))
    result = apply(state, batch)
    assert not result.applied
    assert result.results[-1 if batch.agents else 2].error == message


def test_two_kinds_may_use_the_same_id() -> None:
    batch = Batch(
        agents=(Agent("x", "h"),), clusters=(Cluster("x", ("x",)),), allocations=(AllocationSpec("x", "x", 1),)
    )
    assert apply(State(), batch).applied


def test_known_users_need_no_key() -> None:
    state = pod(1)
    create(state, user("alice"))
    batch = Batch(users=(UserSpec("alice", Role.USER, ("a1",)),))
    assert outcomes(apply(state, batch)) == [("alice", "changed")]
    failed = apply(state, Batch(users=(UserSpec("bob", Role.USER),)))
    assert outcomes(failed) == [("bob", "failed")]


def test_batches_are_bounded() -> None:
    batch = Batch(agents=(Agent("ag01", "h"),) * (MAX_BATCH_ITEMS + 1))
    code, message = rejection(lambda: apply_batch(State(), batch, Context()))
    assert code is Code.INVALID_ARGUMENT
    assert str(MAX_BATCH_ITEMS) in message


def calls(state: State, batch: Batch) -> int:
    """Return the number of function calls of a batch: a measure of its cost that is equal on all hosts."""
    count = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        assert apply_batch(state, batch, Context()).applied
    finally:
        sys.setprofile(None)
    return count


def test_the_cost_grows_with_the_number_of_pods_only() -> None:
    eight, sixty_four = (joined(*(whole_pod(number) for number in range(count))) for count in (8, 64))
    assert len(sixty_four) == 64 * 34
    assert calls(State(), sixty_four) < 8 * 1.1 * calls(State(), eight)
    # The cost of a change to one POD does not depend on the others.
    state = State()
    state.apply(apply_batch(state, sixty_four, Context()).changes)
    small = Batch(agents=(Agent("pod0-ag00", "moved"),), removals=(Removal(Kind.PARTITION, "pod1-p1"),))
    assert calls(state, small) < 400


def test_a_large_batch_that_fails_has_a_result_for_every_item() -> None:
    batch = joined(*(whole_pod(number) for number in range(64)))
    batch = replace(batch, agents=tuple(replace(agent, host="no host") for agent in batch.agents))
    result = apply_batch(State(), batch, Context())
    assert {item.outcome for item in result.results[:1024]} == {Outcome.FAILED}
    assert {item.outcome for item in result.results[1024:]} == {Outcome.NOT_APPLIED}


def test_administrators_are_exchanged_in_one_batch_but_not_lost() -> None:
    state = pod(4, allocations={})
    create(state, user("root", role=Role.ADMIN))
    create(state, user("alice"))
    removal = Removal(Kind.USER, "root")
    assert not apply(state, Batch(removals=(removal,))).applied
    assert not apply(state, Batch(users=(UserSpec("root", Role.USER), UserSpec("alice", Role.USER)))).applied
    assert apply(state, Batch(users=(UserSpec("root", Role.USER), UserSpec("alice", Role.ADMIN)))).applied
    assert apply(state, Batch(removals=(Removal(Kind.USER, "alice"),), users=(user("alice", role=Role.ADMIN),))).applied
    assert [(id, each.role) for id, each in sorted(state.users.items())] == [("alice", Role.ADMIN), ("root", Role.USER)]
