# SPDX-License-Identifier: GPL-3.0-or-later
"""Partitions without an allocation: the best fit among the allocations that the caller may use."""

from __future__ import annotations

import pytest

from openipu.vipu.domain.model import Agent, Cluster, GwRouting, Routing, Topology
from openipu.vipu.domain.rules import Code, Context
from openipu.vipu.domain.specs import AllocationSpec, Outcome, PartitionSpec
from openipu.vipu.domain.state import State
from tests.unit.vipu.domain.rules_support import UNRESTRICTED, create, pod, rejected, upsert


def pods(sizes: dict[str, int], *, ilds: int = 1, topology: Topology = Topology.MESH) -> State:
    """Return a state with one cluster per allocation, ``c-ID``, which has exactly its machines.

    ``ilds`` and ``topology`` are those of the last cluster.
    """
    state = State()
    for number, (id, size) in enumerate(sizes.items()):
        last = number == len(sizes) - 1
        agents = [Agent(f"{id}-{n}", f"10.1.{number}.{n}") for n in range(1, size + 1)]
        for agent in agents:
            create(state, agent)
        names = tuple(agent.id for agent in agents)
        cluster = Cluster(f"c-{id}", names, ilds, topology) if last else Cluster(f"c-{id}", names)
        create(state, cluster)
        create(state, AllocationSpec(id, f"c-{id}", size))
    return state


def place(state: State, id: str, size: int, context: Context = UNRESTRICTED, **fields: object) -> str:
    """Create a partition without an allocation, and return the one that it got."""
    create(state, PartitionSpec(id, size, **fields), context)  # type: ignore[arg-type]
    return state.partitions[id].allocation


def test_the_smallest_free_block_of_all_clusters_is_used() -> None:
    state = pods({"a": 8, "b": 2, "c": 4})
    assert [place(state, f"p{n}", size) for n, size in enumerate((8, 8, 16, 4, 1))] == ["b", "c", "a", "c", "c"]


def test_equal_fits_use_the_first_id() -> None:
    for order in (("a", "b"), ("b", "a")):
        state = pods(dict.fromkeys(order, 2))
        assert [place(state, id, 8) for id in ("p1", "p2")] == ["a", "b"]


def test_few_ipu_link_domains_are_better_than_a_small_block() -> None:
    state = pods({"wide": 8, "split": 4}, ilds=2)
    assert place(state, "p1", 16) == "wide"
    create(state, PartitionSpec("p2", 16, "wide"))
    assert place(state, "p3", 16) == "split"
    assert state.partitions["p3"].num_segments == 2


def test_only_allocations_that_the_caller_may_use_count() -> None:
    state = pods({"foreign": 1, "own": 2, "small": 1})
    tenant = Context(allowed=frozenset({"own", "removed"}))
    assert place(state, "p1", 4, tenant) == "own"
    assert rejected(state, PartitionSpec("p2", 8), tenant) == (
        Code.RESOURCE_EXHAUSTED,
        "Cannot create partition 'p2': allocation 'own' has 4 free IPUs in blocks of at most 4. "
        "Request at most 4, or remove a partition.",
    )


@pytest.mark.parametrize("allowed", [frozenset[str](), frozenset({"removed"})])
def test_users_without_allocations_learn_nothing(allowed: frozenset[str]) -> None:
    tenant = Context(allowed=allowed, cluster_under_test="c-foreign")
    for state in (State(), pods({"foreign": 1})):
        for spec in (PartitionSpec("p", 1), PartitionSpec("p", 1, routing=Routing.RINGSWNC)):
            assert rejected(state, spec, tenant) == (
                Code.NOT_FOUND,
                "Cannot create partition 'p': there is no allocation that you may use. Ask an administrator.",
            )


def test_a_controller_without_allocations() -> None:
    assert rejected(pod(4, allocations={}), PartitionSpec("p", 1)) == (
        Code.FAILED_PRECONDITION,
        "Cannot create partition 'p': there is no allocation. Create one first.",
    )


def test_the_rejection_reports_all_usable_allocations() -> None:
    state = pods({"a": 2, "b": 1, "hidden": 8})
    tenant = Context(frozenset({"a-2"}), frozenset({"a", "b"}))
    assert rejected(state, PartitionSpec("p", 8), tenant) == (
        Code.RESOURCE_EXHAUSTED,
        "Cannot create partition 'p': the allocations 'a', 'b' have 8 free IPUs in blocks of at most 4. "
        "Request at most 4, or remove a partition. A block that would fit is on 'a-2', which is down.",
    )


@pytest.mark.parametrize(
    ("size", "fields"),
    [(8, {"num_segments": 2}), (8, {"routing": Routing.RINGSWNC}), (16, {"gw_routing": GwRouting.RING})],
)
def test_clusters_that_cannot_have_the_partition_are_skipped(size: int, fields: dict[str, object]) -> None:
    state = pods({"a": 4, "torus": 4}, ilds=2, topology=Topology.TORUS)
    assert place(state, "p", size, **fields) == "torus"


def test_the_rejection_has_the_reason_of_the_first_allocation() -> None:
    assert rejected(pods({"a": 2}), PartitionSpec("p", 8, num_segments=2)) == (
        Code.INVALID_ARGUMENT,
        "Cannot create partition 'p': cluster 'c-a' has 1 IPU-Link domain, not 2.",
    )


def test_a_cluster_under_test_is_skipped() -> None:
    state = pods({"a": 1, "b": 1})
    tested = Context(cluster_under_test="c-a")
    assert place(state, "p1", 4, tested) == "b"
    alone = Context(allowed=frozenset({"a"}), cluster_under_test="c-a")
    assert rejected(state, PartitionSpec("p2", 4), alone) == (
        Code.FAILED_PRECONDITION,
        "Cannot create partition 'p2': a test of cluster 'c-a' is in progress. Wait for its end, or stop it.",
    )


def test_an_existing_partition_stays_where_it_is() -> None:
    state = pods({"a": 2, "b": 1})
    create(state, PartitionSpec("p", 4, "a"))
    assert upsert(state, PartitionSpec("p", 4)) is Outcome.UNCHANGED
    assert upsert(state, PartitionSpec("p", 4, relocatable=True)) is Outcome.CHANGED
    assert state.partitions["p"].allocation == "a"
