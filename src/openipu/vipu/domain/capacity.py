# SPDX-License-Identifier: GPL-3.0-or-later
"""Free IPUs of allocations, in the form that placement searches."""

from __future__ import annotations

from collections.abc import Mapping

from openipu.shared.vipu.object_rules import is_power_of_two
from openipu.vipu.domain import placement
from openipu.vipu.domain.context import Context
from openipu.vipu.domain.errors import RuleError, RuleViolation, invalid, missing_or_hidden, quoted
from openipu.vipu.domain.model import IPUS_PER_MACHINE, Allocation, Kind
from openipu.vipu.domain.state import State


def occupancy_of(
    state: State,
    allocation: Allocation,
    unavailable: frozenset[str] = frozenset(),
    quarantined: Mapping[str, int] | None = None,
    *,
    in_service: bool = True,
) -> placement.Occupancy:
    """Return the machines of an allocation with their used IPUs.

    Machines of unavailable agents count as full, IPUs in quarantine as used (see ``Context``). With ``in_service``,
    machines that are out of service count as full too.
    """
    first = state.position_of[allocation.agents[0]]
    occupied = state.occupied[allocation.cluster][first : first + len(allocation.agents)]
    if len(unavailable) > len(allocation.agents):
        unavailable = unavailable.intersection(allocation.agents)
    for agent in unavailable.union(state.out_of_service) if in_service else unavailable:
        if state.allocation_of.get(agent) == allocation.id:
            occupied[state.position_of[agent] - first] = placement.FULL
    for agent, ipus in (quarantined or {}).items():
        if state.allocation_of.get(agent) == allocation.id:
            occupied[state.position_of[agent] - first] |= ipus
    return placement.Occupancy(occupied, first, state.clusters[allocation.cluster].machines_per_ild)


def free_summary(state: State, allocation: str) -> tuple[int, list[int], int]:
    """Return the free IPUs, the lengths of runs of free machines (longest first), and the largest partition size.

    Runs end at the boundary of an IPU-Link domain. Machines that are out of service count as full. Machines whose
    agents are down, and IPUs in quarantine, count like others. The allocation must exist.
    """
    occupancy = occupancy_of(state, state.allocations[allocation])
    runs = sorted(placement.free_runs(occupancy), reverse=True)
    return placement.free_ipus(occupancy), runs, placement.largest_block(occupancy)


def fits(state: State, allocation: str, size: int, context: Context) -> int:
    """Return the number of further partitions of ``size`` IPUs that fit, without machines that are down or out of
    service, and IPUs in quarantine.

    Raises RuleError: NOT_FOUND for an allocation that is missing or hidden from the caller,
    INVALID_ARGUMENT for a size that no partition can have.
    """
    try:
        record = find_allocation(state, allocation, context)
        check_size(size)
    except RuleViolation as violation:
        message = f"Cannot count partitions that fit in allocation {quoted(allocation)}: {violation.reason}."
        raise RuleError(violation.code, message) from None
    occupancy = occupancy_of(state, record, context.unavailable, context.quarantined)
    if size > len(occupancy.occupied) * IPUS_PER_MACHINE:
        return 0
    return placement.count_fits(occupancy, size, placement.segments_for(size, occupancy.per_ild))


def find_allocation(state: State, id: str, context: Context) -> Allocation:
    """Return an allocation that the caller may use; raises RuleViolation with NOT_FOUND otherwise."""
    allocation = state.allocations.get(id)
    if allocation is None or not context.may_use(id):
        raise missing_or_hidden(Kind.ALLOCATION, id, context)
    return allocation


def check_size(size: int) -> None:
    """Raise RuleViolation unless the number is a valid partition size."""
    if not is_power_of_two(size):
        raise invalid(f"the size must be a power of two (1, 2, 4, 8, … IPUs), not {size}")
