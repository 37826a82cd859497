# SPDX-License-Identifier: GPL-3.0-or-later
"""Partitions: sizes, places, routing, numbers, and what may be changed."""

from dataclasses import replace

import pytest

from openipu.vipu.domain import rules
from openipu.vipu.domain.model import (
    GwRouting,
    Kind,
    Operation,
    Partition,
    PlacedIpu,
    Put,
    ReadyState,
    Routing,
    SyncType,
    Topology,
)
from openipu.vipu.domain.rules import Code, Context
from openipu.vipu.domain.specs import AllocationSpec, Outcome, PartitionSpec, Removal
from openipu.vipu.domain.state import State
from tests.unit.vipu.domain.rules_support import (
    create,
    machines,
    names,
    partition,
    pod,
    rejected,
    rejected_change,
    upsert,
)


def test_defaults() -> None:
    state = pod(4)
    assert partition(state, "p1", 2) == Partition(
        id="p1",
        allocation="a1",
        cluster="cl0",
        ipus=(PlacedIpu(0, 0, 1, 0), PlacedIpu(0, 0, 0, 1)),
        routing=Routing.DNC,
        gw_routing=GwRouting.UNDEFINED,
        sync_type=SyncType.GS2_DEFAULT,
        num_gcds=1,
        num_replicas=1,
        num_segments=1,
        ready=ReadyState.PENDING,
        operation=Operation.CREATING,
        max_retries=3,
    )
    create(state, PartitionSpec("p2", 1, "a1"), Context(max_retries=7))
    assert state.partitions["p2"].max_retries == 7


@pytest.mark.parametrize("size", [0, -1, -4, 3, 6, 12, 2**31 + 1, 2**32 - 1])
def test_sizes_are_powers_of_two(size: int) -> None:
    code, message = rejected(pod(4), PartitionSpec("p", size, "a1"))
    assert code is Code.INVALID_ARGUMENT
    assert message == (
        f"Cannot create partition 'p': the size must be a power of two (1, 2, 4, 8, … IPUs), not {size}."
    )


@pytest.mark.parametrize("size", [32, 64, 2**31, 2**62])
def test_a_rejected_size_reports_the_free_ipus(size: int) -> None:
    state = pod(4)
    assert rejected(state, PartitionSpec("p", size, "a1")) == (
        Code.RESOURCE_EXHAUSTED,
        (
            "Cannot create partition 'p': allocation 'a1' has 16 free IPUs in blocks of at most 16. "
            "Request at most 16, or remove a partition."
        ),
    )


def test_an_exhausted_allocation_reports_its_fragmentation() -> None:
    state = pod(4)
    for id in ("p1", "p2", "p3"):
        partition(state, id, 4)
    partition(state, "p4", 1)
    assert rejected(state, PartitionSpec("p5", 4, "a1"))[1] == (
        "Cannot create partition 'p5': allocation 'a1' has 3 free IPUs in blocks of at most 2. "
        "Request at most 2, or remove a partition."
    )
    partition(state, "p5", 2)
    partition(state, "p6", 1)
    assert rejected(state, PartitionSpec("p7", 1, "a1"))[1] == (
        "Cannot create partition 'p7': allocation 'a1' has no free IPUs."
    )


def test_partitions_of_four_ipus_or_more_use_whole_machines() -> None:
    state = pod(8)
    partition(state, "p1", 8)
    assert machines(state, "p1") == [("ag01", n) for n in (3, 2, 1, 0)] + [("ag02", n) for n in (3, 2, 1, 0)]
    assert [ipu.routing_id for ipu in state.partitions["p1"].ipus] == list(range(8))
    partition(state, "p2", 1)
    partition(state, "p3", 2)
    assert {agent for agent, _ in machines(state, "p2") + machines(state, "p3")} == {"ag03"}
    partition(state, "p4", 16)
    assert {agent for agent, _ in machines(state, "p4")} == set(names(4, 5, 6, 7))
    assert rejected(state, PartitionSpec("p5", 8, "a1"))[0] is Code.RESOURCE_EXHAUSTED
    partition(state, "p5", 4)


def test_allocation_and_cluster_exist_and_agree() -> None:
    state = pod(4)
    create(state, PartitionSpec("p1", 1, "a1", "cl0"))
    assert rejected(state, PartitionSpec("p", 1, "a1", "cl9")) == (
        Code.INVALID_ARGUMENT,
        "Cannot create partition 'p': allocation 'a1' is in cluster 'cl0', not in 'cl9'. Omit the cluster.",
    )
    assert rejected(state, PartitionSpec("p", 1, "a9")) == (
        Code.NOT_FOUND,
        "Cannot create partition 'p': allocation 'a9' does not exist.",
    )
    assert rejected(state, PartitionSpec("p", 1, cluster="cl9"))[0] is Code.NOT_FOUND
    assert rejected(pod(4, allocations={}), PartitionSpec("p", 1, cluster="cl0")) == (
        Code.FAILED_PRECONDITION,
        "Cannot create partition 'p': cluster 'cl0' has no allocation. Create one first.",
    )


def test_a_cluster_selects_its_best_fitting_allocation() -> None:
    state = pod(8, allocations={"a1": 5, "a2": 2, "a3": 1})
    for id, size, allocation in (("p1", 4, "a3"), ("p2", 8, "a2"), ("p3", 1, "a1"), ("p4", 8, "a1")):
        create(state, PartitionSpec(id, size, cluster="cl0"))
        assert state.partitions[id].allocation == allocation
    assert rejected(state, PartitionSpec("p5", 16, cluster="cl0"))[1] == (
        "Cannot create partition 'p5': the allocations 'a1', 'a2', 'a3' have 11 free IPUs in blocks of at most 8. "
        "Request at most 8, or remove a partition."
    )
    # A fragmented machine fits better than a whole one.
    create(state, PartitionSpec("p5", 1, cluster="cl0"))
    assert machines(state, "p5")[0][0] == machines(state, "p3")[0][0]


def test_a_partition_stays_in_its_allocation() -> None:
    state = pod(4, allocations={"a1": 2, "a2": 2})
    partition(state, "p1", 8, "a1")
    assert rejected(state, PartitionSpec("p2", 1, "a1"))[0] is Code.RESOURCE_EXHAUSTED
    partition(state, "p2", 8, "a2")


@pytest.mark.parametrize(
    ("gcds", "replicas", "expected"),
    [(0, 0, (1, 1)), (2, 0, (2, 2)), (2, 4, (2, 4)), (0, 8, (1, 8)), (8, 8, (8, 8)), (1, 2, (1, 2))],
)
def test_gcds_and_replicas(gcds: int, replicas: int, expected: tuple[int, int]) -> None:
    made = partition(pod(2), "p", 8, num_gcds=gcds, num_replicas=replicas)
    assert (made.num_gcds, made.num_replicas) == expected


@pytest.mark.parametrize(
    ("gcds", "replicas", "reason"),
    [
        (3, 0, "8 IPUs cannot be divided evenly into 3 GCDs"),
        (16, 0, "8 IPUs cannot be divided evenly into 16 GCDs"),
        (2**32 - 1, 0, "cannot be divided evenly into 4294967295 GCDs"),
        (-1, 0, "into -1 GCDs"),
        (1, -1, "into -1 replicas"),
        (1, 5, "8 IPUs cannot be divided evenly into 5 replicas"),
        (4, 2, "2 replicas cannot be divided evenly into 4 GCDs"),
    ],
)
def test_gcds_and_replicas_divide_evenly(gcds: int, replicas: int, reason: str) -> None:
    code, message = rejected(pod(2), PartitionSpec("p", 8, "a1", num_gcds=gcds, num_replicas=replicas))
    assert code is Code.INVALID_ARGUMENT
    assert reason in message


def test_reconfigurable_implies_its_sync_type() -> None:
    state = pod(2)
    assert partition(state, "p1", 1, reconfigurable=True).sync_type is SyncType.GS2_DEFAULT
    assert partition(state, "p2", 1, reconfigurable=True, sync_type=SyncType.GS2_DEFAULT).reconfigurable
    assert rejected(
        state, PartitionSpec("p3", 1, "a1", reconfigurable=True, sync_type=SyncType.POD_NATIVE_DEFAULT)
    ) == (
        Code.INVALID_ARGUMENT,
        "Cannot create partition 'p3': a reconfigurable partition needs the sync type c2-compatible. "
        "Omit the sync type.",
    )
    made = partition(state, "p3", 1, sync_type=SyncType.POD_NATIVE_DEFAULT)
    assert (made.sync_type, made.reconfigurable) == (SyncType.POD_NATIVE_DEFAULT, False)


@pytest.mark.parametrize(
    ("topology", "size", "routing"),
    [
        (Topology.TORUS, 64, Routing.RINGSWNC),
        (Topology.TORUS, 32, Routing.SWNC),
        (Topology.TORUS, 16, Routing.DNC),
        (Topology.MESH, 64, Routing.SWNC),
        (Topology.MESH, 32, Routing.SWNC),
        (Topology.MESH, 1, Routing.DNC),
    ],
)
def test_routing_is_chosen(topology: Topology, size: int, routing: Routing) -> None:
    assert partition(pod(16, topology=topology), "p", size).routing is routing


def test_requested_routing() -> None:
    state = pod(4)
    assert partition(state, "p1", 4, routing=Routing.BTNC).routing is Routing.BTNC
    code, message = rejected(state, PartitionSpec("p2", 8, "a1", routing=Routing.RINGSWNC))
    assert code is Code.INVALID_ARGUMENT
    assert "needs a whole IPU-Link domain of a torus (cluster 'cl0' is a torus with 4 machines per domain)" in message
    assert partition(pod(4), "p", 16, routing=Routing.RINGSWNC).routing is Routing.RINGSWNC
    assert rejected(pod(4, topology=Topology.MESH), PartitionSpec("p", 16, "a1", routing=Routing.RINGSWNC))[0] is (
        Code.INVALID_ARGUMENT
    )


@pytest.mark.parametrize("field", ["routing", "gw_routing", "sync_type"])
@pytest.mark.parametrize("number", [-1, 9, 2**31])
def test_unknown_numbers_of_the_api_are_rejected(field: str, number: int) -> None:
    code, message = rejected(pod(4), replace(PartitionSpec("p", 4, "a1"), **{field: number}))
    assert code is Code.INVALID_ARGUMENT
    assert f"{number} is not a valid" in message


def test_partitions_across_domains() -> None:
    state = pod(8, ilds=4, topology=Topology.TORUS)
    made = partition(state, "p1", 16)  # a domain has 8 IPUs
    assert (made.num_segments, made.gw_routing, made.routing) == (2, GwRouting.RING, Routing.DNC)
    assert [agent for agent, _ in machines(state, "p1")[::4]] == list(names(1, 2, 3, 4))
    assert [(ipu.ild_routing_id, ipu.routing_id) for ipu in made.ipus] == [(s, r) for s in (0, 1) for r in range(8)]
    made = partition(state, "p2", 8, num_segments=2, gw_routing=GwRouting.SWRING)
    assert (made.num_segments, made.gw_routing) == (2, GwRouting.SWRING)
    assert {agent for agent, _ in machines(state, "p2")} == set(names(5, 7))
    assert [ipu.ild for ipu in made.ipus] == [2] * 4 + [3] * 4
    assert rejected(state, PartitionSpec("p3", 16, "a1"))[1] == (
        "Cannot create partition 'p3': allocation 'a1' has 8 free IPUs in blocks of at most 4. "
        "Request at most 4, or remove a partition."
    )
    partition(state, "p3", 4)
    assert rejected(state, PartitionSpec("p4", 8, "a1", num_segments=2))[0] is Code.RESOURCE_EXHAUSTED
    assert partition(pod(8, ilds=2), "p", 32).routing is Routing.RINGSWNC


def test_a_missing_common_position_is_reported() -> None:
    state = pod(4, ilds=2, allocations={"a1": 1, "a2": 3})
    partition(state, "p1", 4, "a2")  # the one machine of the first domain, or a flush one of the second
    assert rejected(state, PartitionSpec("p2", 8, "a2", num_segments=2)) == (
        Code.RESOURCE_EXHAUSTED,
        "Cannot create partition 'p2': allocation 'a2' has 8 free IPUs, but not 4 at the same positions of "
        "2 consecutive IPU-Link domains.",
    )
    partition(state, "p2", 8, "a2")


@pytest.mark.parametrize(
    ("size", "segments", "reason"),
    [
        (8, 3, "8 IPUs cannot be spread evenly over 3 IPU-Link domains"),
        (8, 4, "with at least one IPU-Machine (4 IPUs) in each"),
        (2, 2, "cannot be spread evenly"),
        (16, -1, "has 2 IPU-Link domains, not -1"),
        (16, 4, "has 2 IPU-Link domains, not 4"),
        (16, 2**31, "cannot be spread evenly"),
        (32, 1, "an IPU-Link domain of cluster 'cl0' has 16 IPUs, so 32 need at least 2 segments"),
    ],
)
def test_invalid_segments(size: int, segments: int, reason: str) -> None:
    code, message = rejected(pod(8, ilds=2), PartitionSpec("p", size, "a1", num_segments=segments))
    assert code is Code.INVALID_ARGUMENT
    assert reason in message


def test_gw_routing_needs_several_domains() -> None:
    assert rejected(pod(8, ilds=2), PartitionSpec("p", 16, "a1", gw_routing=GwRouting.RING)) == (
        Code.INVALID_ARGUMENT,
        "Cannot create partition 'p': a partition in one IPU-Link domain has no GW-Link routing. Omit it.",
    )


def test_machines_that_are_down_are_not_chosen() -> None:
    state = pod(4)
    down = Context(unavailable=frozenset(names(1, 9)))
    create(state, PartitionSpec("p1", 8, "a1"), down)
    assert {agent for agent, _ in machines(state, "p1")} == set(names(2, 3))
    create(state, PartitionSpec("p2", 4, "a1"), down)
    assert rejected(state, PartitionSpec("p3", 4, "a1"), down) == (
        Code.RESOURCE_EXHAUSTED,
        "Cannot create partition 'p3': allocation 'a1' has no free IPUs. A block that would fit is on 'ag01', "
        "which is down.",
    )
    all_down = Context(unavailable=frozenset(f"ag{n:02}" for n in range(100)))
    assert "'ag01', which is down" in rejected(state, PartitionSpec("p3", 1, "a1"), all_down)[1]
    assert "is down" not in rejected(state, PartitionSpec("p3", 8, "a1"), all_down)[1]
    create(state, PartitionSpec("p3", 4, "a1"))


def test_callers_see_their_own_allocations_only() -> None:
    state = pod(4, allocations={"a1": 1, "a2": 1, "a3": 2})
    tenant = Context(allowed=frozenset({"a1", "gone"}))
    partition(state, "p2", 4, "a2")
    create(state, PartitionSpec("p1", 1, "a1"), tenant)
    hidden = rejected(state, PartitionSpec("p3", 1, "a2"), tenant)
    absent = rejected(state, PartitionSpec("p3", 1, "a9"), tenant)
    assert hidden == (absent[0], absent[1].replace("a9", "a2"))
    assert absent == (
        Code.NOT_FOUND,
        "Cannot create partition 'p3': allocation 'a9' does not exist, or you may not use it. Check the id.",
    )
    assert rejected(state, PartitionSpec("p2", 1, "a1"), tenant)[0] is Code.ALREADY_EXISTS
    assert rejected_change(state, PartitionSpec("p2", 0, relocatable=True), tenant)[0] is Code.ALREADY_EXISTS
    # By cluster: the best fit would be in a3, but the caller may use only a1.
    create(state, PartitionSpec("p3", 2, cluster="cl0"), tenant)
    assert state.partitions["p3"].allocation == "a1"
    code, message = rejected(state, PartitionSpec("p4", 4, cluster="cl0"), tenant)
    assert (code, "a3" in message) == (Code.RESOURCE_EXHAUSTED, False)
    without_allocations = Context(allowed=frozenset())
    for cluster in ("cl0", "cl9"):
        assert rejected(state, PartitionSpec("p4", 1, cluster=cluster), without_allocations)[0] is Code.NOT_FOUND


def test_omitted_fields_stay_unchanged() -> None:
    state = pod(8)
    made = partition(state, "p1", 8, num_gcds=2, routing=Routing.SWNC, reconfigurable=True)
    for spec in (
        PartitionSpec("p1", 0),
        PartitionSpec("p1", 8, "a1"),
        PartitionSpec("p1", 8, cluster="cl0", num_gcds=2, num_replicas=2, routing=Routing.SWNC, num_segments=1),
        PartitionSpec("p1", 8, "a1", reconfigurable=True, sync_type=SyncType.GS2_DEFAULT),
        PartitionSpec("p1", 8, "a1", "cl0", ipus=made.ipus),
        PartitionSpec("p1", 0, ipus=tuple(PlacedIpu(0, 0, n, 0) for n in range(8))),
    ):
        assert upsert(state, spec) is Outcome.UNCHANGED, spec


def test_only_reset_and_relocation_may_change() -> None:
    state = pod(8)
    partition(state, "p1", 8)
    live = replace(state.partitions["p1"], ready=ReadyState.ACTIVE, operation=Operation.IDLE, retries=1)
    state.apply([Put(live)])
    assert upsert(state, PartitionSpec("p1", 8, "a1", relocatable=True, disable_auto_reset=True)) is Outcome.CHANGED
    assert state.partitions["p1"] == replace(live, relocatable=True, disable_auto_reset=True)
    assert upsert(state, PartitionSpec("p1", 8)) is Outcome.CHANGED
    assert state.partitions["p1"] == live
    assert rejected_change(state, PartitionSpec("p1", 16, "a1")) == (
        Code.FAILED_PRECONDITION,
        "Cannot change partition 'p1': its size is 8 and cannot become 16. Remove the partition and create it again.",
    )
    for fields, reason in (
        ({"allocation": "a2"}, "its allocation is 'a1' and cannot become 'a2'"),
        ({"allocation": "x" * 9999}, "its allocation is 'a1'"),
        ({"cluster": "cl1"}, "its cluster is 'cl0' and cannot become 'cl1'"),
        ({"routing": Routing.SWNC}, "its routing is DNC and cannot become SWNC"),
        ({"num_segments": 2}, "number of segments"),
        ({"gw_routing": GwRouting.RING}, "GW-Link routing"),
        ({"sync_type": SyncType.POD_NATIVE_DEFAULT}, "sync type"),
        ({"num_gcds": 2}, "number of GCDs is 1 and cannot become 2"),
        ({"num_replicas": 2}, "number of replicas"),
        ({"reconfigurable": True}, "reconfigurable"),
        ({"ipus": tuple(PlacedIpu(0, 0, n, 0) for n in range(8, 16))}, "list of IPUs"),
        ({"ipus": tuple(PlacedIpu(0, 0, n, n) for n in range(8))}, "list of IPUs"),
    ):
        code, message = rejected_change(state, PartitionSpec("p1", 8, **fields))  # type: ignore[arg-type]
        assert (code, reason in message) == (Code.FAILED_PRECONDITION, True), message


def test_a_partition_under_removal_is_not_changed() -> None:
    state = pod(2)
    made = partition(state, "p1", 4)
    state.apply([Put(replace(made, operation=Operation.REMOVING))])
    assert rejected_change(state, PartitionSpec("p1", 4)) == (
        Code.FAILED_PRECONDITION,
        "Cannot change partition 'p1': it is being removed. Try again after its removal.",
    )


def test_the_rules_do_not_change_the_state() -> None:
    state: State = pod(4)
    before = state.copy()
    rules.create(state, PartitionSpec("p1", 4, "a1"), Context())
    rules.upsert(state, AllocationSpec("a1", "cl0", 2), Context())
    rules.remove(state, Removal(Kind.AGENT, "ag01", force=True), Context())
    assert state == before
