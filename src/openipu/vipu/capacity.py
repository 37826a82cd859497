# SPDX-License-Identifier: GPL-3.0-or-later
"""What is free in an allocation: the records as placement sees them."""

from __future__ import annotations

from openipu.vipu import placement
from openipu.vipu.checks import Context, Refused, RuleError, invalid, is_power_of_two, not_there, shown
from openipu.vipu.model import IPUS_PER_MACHINE, Allocation, Kind, State


def room_of(state: State, allocation: Allocation, unavailable: frozenset[str] = frozenset()) -> placement.Room:
    """The machines of an allocation with their used IPUs; those of unavailable agents count as full."""
    first = state.position_of[allocation.agents[0]]
    occupied = state.occupied[allocation.cluster][first : first + len(allocation.agents)]
    if len(unavailable) > len(allocation.agents):
        unavailable = unavailable.intersection(allocation.agents)
    for agent in unavailable:
        if state.allocation_of.get(agent) == allocation.id:
            occupied[state.position_of[agent] - first] = placement.FULL
    return placement.Room(occupied, first, state.clusters[allocation.cluster].machines_per_ild)


def free_summary(state: State, allocation: str) -> tuple[int, list[int], int]:
    """Free IPUs, lengths of the free runs of whole machines (longest first), size of the largest partition.

    Runs end at the border of an IPU-Link domain. Machines whose agents are down count like the others.
    The allocation must exist.
    """
    room = room_of(state, state.allocations[allocation])
    runs = sorted(placement.free_runs(room), reverse=True)
    return placement.free_ipus(room), runs, placement.largest_block(room)


def fits(state: State, allocation: str, size: int, context: Context) -> int:
    """How many more partitions of ``size`` IPUs the allocation takes now, without using machines that are down.

    Raises RuleError: NOT_FOUND for an allocation that is not there for the caller, INVALID_ARGUMENT
    for a size that no partition can have.
    """
    try:
        record = find_allocation(state, allocation, context)
        check_size(size)
    except Refused as refusal:
        sentence = f"Cannot tell how many partitions fit in allocation {shown(allocation)}: {refusal.reason}."
        raise RuleError(refusal.code, sentence) from None
    room = room_of(state, record, context.unavailable)
    if size > len(room.occupied) * IPUS_PER_MACHINE:
        return 0
    return placement.count_fits(room, size, placement.segments_for(size, room.per_ild))


def find_allocation(state: State, id: str, context: Context) -> Allocation:
    """An allocation that is there for the caller; refused as NOT_FOUND otherwise."""
    allocation = state.allocations.get(id)
    if allocation is None or not context.may_use(id):
        raise not_there(Kind.ALLOCATION, id, context)
    return allocation


def check_size(size: int) -> None:
    """Refuse what cannot be a number of IPUs of a partition."""
    if not is_power_of_two(size):
        raise invalid(f"the size is a number of IPUs that is a power of two (1, 2, 4, 8, …), not {size}")
