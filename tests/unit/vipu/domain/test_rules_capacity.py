# SPDX-License-Identifier: GPL-3.0-or-later
"""Capacity of allocations: free IPUs, and partitions that fit."""

from openipu.vipu.domain import rules
from openipu.vipu.domain.capacity import occupancy_of
from openipu.vipu.domain.placement import FULL
from openipu.vipu.domain.rules import Code, Context
from openipu.vipu.domain.specs import PartitionSpec
from tests.unit.vipu.domain.rules_support import (
    create,
    machines,
    names,
    partition,
    pod,
    rejection,
)


def test_number_of_partitions_that_fit() -> None:
    state = pod(8, ilds=2, allocations={"a1": 6, "a2": 2})
    partition(state, "p1", 1)
    assert rules.free_summary(state, "a1") == (23, [4, 1], 16)
    tenant = Context(allowed=frozenset({"a1"}))
    sizes = (1, 2, 4, 8, 16, 32, 64, 2**62)
    assert [rules.fits(state, "a1", size, tenant) for size in sizes] == [23, 11, 5, 2, 1, 0, 0, 0]
    down = Context(unavailable=frozenset(names(1, 6)))
    assert [rules.fits(state, "a1", size, down) for size in sizes] == [15, 7, 3, 1, 0, 0, 0, 0]
    assert rejection(lambda: rules.fits(state, "a2", 1, tenant)) == (
        Code.NOT_FOUND,
        "Cannot count partitions that fit in allocation 'a2': allocation 'a2' does not exist, or you may not use it. "
        "Check the id.",
    )
    assert rejection(lambda: rules.fits(state, "a9", 1, Context()))[0] is Code.NOT_FOUND
    for size in (0, -1, 3, 2**32 - 1):
        assert rejection(lambda size=size: rules.fits(state, "a1", size, down))[0] is Code.INVALID_ARGUMENT  # type: ignore[misc]


def test_a_partition_of_the_whole_allocation_fits_once() -> None:
    state = pod(8, ilds=2)  # a domain has 16 IPUs
    assert [rules.fits(state, "a1", size, Context()) for size in (4, 16, 32, 64)] == [8, 2, 1, 0]
    partition(state, "p1", 1)
    assert rules.fits(state, "a1", 32, Context()) == 0


def test_machines_that_are_down_count_in_their_own_allocation() -> None:
    state = pod(8, allocations={"a1": 4, "a2": 4})
    down = Context(unavailable=frozenset(names(5)))
    assert [rules.fits(state, id, 4, down) for id in ("a1", "a2")] == [4, 3]
    create(state, PartitionSpec("p1", 8, "a2"), down)
    assert {agent for agent, _ in machines(state, "p1")} == set(names(6, 7))


def test_a_whole_cluster_of_domains_is_one_block() -> None:
    state = pod(8, ilds=4)
    assert rules.free_summary(state, "a1") == (32, [2, 2, 2, 2], 32)
    partition(state, "p1", 1)
    assert rules.free_summary(state, "a1") == (31, [2, 2, 2, 1], 16)


def test_machines_out_of_service_count_as_full_unless_they_are_included() -> None:
    state = pod(4)
    state.out_of_service.update(names(2))
    assert rules.free_summary(state, "a1") == (12, [2, 1], 8)
    allocation = state.allocations["a1"]
    assert list(occupancy_of(state, allocation).occupied) == [0, FULL, 0, 0]
    assert list(occupancy_of(state, allocation, in_service=False).occupied) == [0, 0, 0, 0]
