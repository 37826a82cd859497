# SPDX-License-Identifier: GPL-3.0-or-later
"""Random histories: records stay consistent for any request, and batches equal single steps."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from openipu.vipu.domain import rules
from openipu.vipu.domain.batch import Batch, apply_batch
from openipu.vipu.domain.context import ALL_ALLOCATIONS
from openipu.vipu.domain.invariants import violations
from openipu.vipu.domain.model import (
    Agent,
    Cluster,
    GwRouting,
    Kind,
    PlacedIpu,
    Role,
    Routing,
    SyncType,
    Topology,
    User,
)
from openipu.vipu.domain.rules import Context, RuleError
from openipu.vipu.domain.specs import AgentSpec, AllocationSpec, Outcome, PartitionSpec, Removal, Spec
from openipu.vipu.domain.state import State

# Few names and small numbers, so that requests conflict.
AGENTS = [f"ag{n}" for n in range(8)]


def some(names: str) -> st.SearchStrategy[str]:
    return st.sampled_from(names.split())


agent_specs = st.builds(
    AgentSpec,
    st.sampled_from(AGENTS),
    some("h0 h1 h2 h3 h4 h5 h6 h7 h8"),
    st.just(8080),
    st.sampled_from([None, None, False, True]),
)
runs = st.builds(lambda first, count: tuple(AGENTS[first : first + count]), st.integers(0, 7), st.integers(1, 8))
lists = st.one_of(runs, runs, st.lists(st.sampled_from(AGENTS), max_size=3).map(tuple))
cluster_specs = st.builds(Cluster, some("c0 c1"), lists, st.integers(1, 3), st.sampled_from(Topology))
allocation_specs = st.builds(
    AllocationSpec, some("a0 a1 a2"), some("c0 c0 c1"), st.integers(0, 5), st.one_of(st.just(()), lists)
)
placed = st.builds(PlacedIpu, st.integers(0, 2), st.just(0), st.integers(0, 15), st.just(0))
blocks = st.builds(
    lambda ild, first, count: tuple(PlacedIpu(ild, 0, first + n, 0) for n in range(count)),
    st.integers(0, 1),
    st.sampled_from([0, 2, 4, 8]),
    st.sampled_from([1, 2, 4, 8]),
)
chosen = st.builds(
    PartitionSpec,
    some("p0 p1 p2 p3 p4 p5 p6 p7"),
    st.sampled_from([1, 1, 2, 2, 4, 4, 8, 8, 16, 3, 0]),
    some("a0 a1 a2"),
    routing=st.sampled_from([Routing.UNDEFINED] * 4 + [Routing.RINGSWNC, Routing.SWNC]),
    num_segments=st.sampled_from([0, 0, 0, 1, 2]),
    gw_routing=st.sampled_from([GwRouting.UNDEFINED] * 4 + [GwRouting.SWRING]),
    sync_type=st.sampled_from([SyncType.UNDEFINED, SyncType.UNDEFINED, SyncType.POD_NATIVE_DEFAULT]),
    num_gcds=st.sampled_from([0, 0, 1, 2]),
    num_replicas=st.sampled_from([0, 0, 2]),
    reconfigurable=st.booleans(),
    relocatable=st.booleans(),
)
listed = st.builds(
    PartitionSpec,
    some("p0 p1 p2 p3"),
    st.just(0),
    cluster=some("c0 c1"),
    ipus=st.one_of(blocks, st.lists(placed, min_size=1, max_size=4).map(tuple)),
)
by_cluster = st.builds(PartitionSpec, some("p4 p5 p6"), st.sampled_from([1, 2, 4]), cluster=some("c0 c1"))
partition_specs = st.one_of(chosen, chosen, listed, by_cluster)
user_specs = st.builds(
    User,
    some("u0 u1"),
    st.sampled_from(Role),
    st.lists(some("a0 a1 a2"), max_size=2).map(tuple),
    some("h"),
    some("s"),
    all_allocations=st.booleans(),
)
specs = st.one_of(agent_specs, cluster_specs, allocation_specs, partition_specs, partition_specs, user_specs)
removals = st.one_of(
    st.builds(Removal, st.just(Kind.PARTITION), some("p0 p0 p1 p2 p3 p4"), st.booleans()),
    st.builds(Removal, st.just(Kind.ALLOCATION), some("a0 a0 a1"), st.booleans()),
    st.builds(Removal, st.just(Kind.CLUSTER), some("c0 c0 c1"), st.booleans()),
    st.builds(Removal, st.just(Kind.AGENT), st.sampled_from(AGENTS), st.booleans()),
    st.builds(Removal, st.just(Kind.USER), some("u0 u1"), st.booleans()),
)
batches = st.builds(
    lambda desired, removed: Batch(
        agents=tuple(spec for spec in desired if isinstance(spec, AgentSpec)),
        clusters=tuple(spec for spec in desired if isinstance(spec, Cluster)),
        allocations=tuple(spec for spec in desired if isinstance(spec, AllocationSpec)),
        partitions=tuple(spec for spec in desired if isinstance(spec, PartitionSpec)),
        users=tuple(spec for spec in desired if isinstance(spec, User)),
        removals=tuple(removed),
    ),
    st.lists(specs, max_size=5, unique_by=lambda spec: (spec.kind, spec.id)),
    st.lists(removals, max_size=3, unique_by=lambda removal: (removal.kind, removal.id)),
)
contexts = st.builds(
    Context,
    unavailable=st.frozensets(st.sampled_from(AGENTS), max_size=2),
    allowed=st.sampled_from([None] * 6 + [frozenset({"a0"}), frozenset({"a1", "a2"}), ALL_ALLOCATIONS]),
)


def check(state: State) -> None:
    """Check the invariants of the rules, and the most important ones again by other means."""
    assert violations(state) == []
    held: Counter[tuple[str, int]] = Counter()
    for partition in state.partitions.values():
        allocation = state.allocations[partition.allocation]
        machines = list(state.machines_of(partition))
        held.update(machines)
        assert {agent for agent, _ in machines} <= set(allocation.agents)
        assert partition.size & (partition.size - 1) == 0
        if partition.size >= 4:
            assert set(Counter(agent for agent, _ in machines).values()) == {4}
    assert set(held.values()) <= {1}
    assert {(agent, ipu) for agent, ipus in state.holders.items() for ipu in ipus} == set(held)
    members = Counter(agent for allocation in state.allocations.values() for agent in allocation.agents)
    assert set(members.values()) <= {1}
    for allocation in state.allocations.values():
        positions = [state.clusters[allocation.cluster].agents.index(agent) for agent in allocation.agents]
        assert all(after == before + 1 for before, after in pairwise(positions))
    in_clusters = Counter(agent for cluster in state.clusters.values() for agent in cluster.agents)
    assert set(in_clusters.values()) <= {1}
    assert set(in_clusters) <= set(state.agents)


def has_admin(state: State) -> bool:
    return any(user.role is Role.ADMIN for user in state.users.values())


def one_by_one(state: State, batch: Batch, context: Context) -> list[Outcome] | None:
    """Return the outcomes of the items of a batch applied one by one, None when an item is rejected."""
    order = [Kind.PARTITION, Kind.ALLOCATION, Kind.CLUSTER, Kind.AGENT, Kind.USER]
    outcomes = [Outcome.REMOVED] * len(batch.removals)
    kept = frozenset(spec.id for spec in batch.allocations)
    context = replace(context, keeps_admin=any(spec.role is Role.ADMIN for spec in batch.users))
    desired: list[Spec] = [spec for specs in batch.specs() for spec in specs]
    try:
        for removal in sorted(batch.removals, key=lambda removal: order.index(removal.kind)):
            state.apply(rules.remove(state, removal, context, kept))
        for spec in desired:
            outcome, changes = rules.upsert(state, spec, context)
            state.apply(changes)
            outcomes.append(outcome)
    except RuleError:
        return None
    return outcomes


# Histories start with a POD; otherwise most requests would refer to missing objects.
START = Batch(
    agents=tuple(Agent(id, f"h{n}") for n, id in enumerate(AGENTS)),
    clusters=(Cluster("c0", tuple(AGENTS[:6]), 2, Topology.TORUS),),
    allocations=(AllocationSpec("a0", "c0", 4),),
    partitions=(PartitionSpec("p0", 1, "a0"),),
    users=(User("u0", Role.USER, ("a0",), "h", "s"),),
)

steps = st.one_of(st.tuples(st.sampled_from(["create", "upsert"]), specs), st.tuples(st.just("remove"), removals))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(steps, contexts), max_size=25))
def test_records_are_valid_after_any_sequence_of_changes(history: list) -> None:  # type: ignore[type-arg]
    state = State()
    state.apply(apply_batch(state, START, Context()).changes)
    for (verb, item), context in history:
        before = state.copy()
        existed = item.id in state.table(item.kind)
        try:
            if verb == "upsert":
                outcome, changes = rules.upsert(state, item, context)
                assert outcome is not Outcome.CREATED or not existed
            else:
                changes = getattr(rules, verb)(state, item, context)
                assert existed == (verb == "remove")
        except RuleError as error:
            assert error.message.endswith(".")
            changes = []
        assert state == before  # the rules do not change it
        undo = state.apply(changes)
        check(state)
        assert has_admin(state) or not has_admin(before)
        if verb == "upsert" and changes:
            assert rules.upsert(state, item, context) == (Outcome.UNCHANGED, [])
        other = state.copy()
        other.apply(undo)
        assert other == before


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(batches, contexts), max_size=8))
def test_a_batch_equals_its_single_items_or_changes_nothing(history: list[tuple[Batch, Context]]) -> None:
    state = State()
    state.apply(apply_batch(state, START, Context()).changes)
    for batch, context in history:
        before, single = state.copy(), state.copy()
        expected = one_by_one(single, batch, context)
        result = apply_batch(state, batch, context)
        assert state == before
        assert result.applied == (expected is not None)
        state.apply(result.changes)
        if expected is None:
            assert state == before
            assert Outcome.FAILED in {item.outcome for item in result.results}
            assert {item.outcome for item in result.results} <= {
                Outcome.FAILED,
                Outcome.NOT_APPLIED,
                Outcome.UNCHANGED,
            }
        else:
            assert [item.outcome for item in result.results] == expected
            assert state == single
            check(state)
            assert has_admin(state) or not has_admin(before)


@settings(max_examples=100, deadline=None)
@given(st.lists(chosen, max_size=8), st.sampled_from([1, 2, 4, 8, 16]), contexts)
def test_the_counted_number_of_partitions_can_be_created(
    before: list[PartitionSpec], size: int, context: Context
) -> None:
    state = State()
    state.apply(apply_batch(state, START, Context()).changes)
    for spec in before:
        try:
            state.apply(rules.create(state, spec, Context()))
        except RuleError:
            continue
    tenant = Context(unavailable=context.unavailable)
    count = rules.fits(state, "a0", size, tenant)
    for number in range(count):
        state.apply(rules.create(state, PartitionSpec(f"new{number}", size, "a0"), tenant))
    assert rules.fits(state, "a0", size, tenant) == 0
    try:
        rules.create(state, PartitionSpec("more", size, "a0"), tenant)
    except RuleError as error:
        assert error.code is rules.Code.RESOURCE_EXHAUSTED
    else:
        raise AssertionError("one more fits than was promised")
    check(state)
