# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules for creating and changing partitions: placement, routing and numbering.

``make_partition`` and ``change_partition`` have the interface that ``rules`` describes.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

from openipu.shared.vipu.object_rules import is_power_of_two
from openipu.vipu.domain import explicit_placement, placement, routing
from openipu.vipu.domain.capacity import check_size, find_allocation, occupancy_of
from openipu.vipu.domain.context import Context
from openipu.vipu.domain.errors import Code, RuleViolation, invalid, listing, missing_or_hidden, quoted
from openipu.vipu.domain.model import (
    IPUS_PER_MACHINE,
    Allocation,
    Cluster,
    GwRouting,
    Kind,
    Operation,
    Partition,
    PlacedIpu,
    Routing,
    SyncType,
)
from openipu.vipu.domain.specs import C2_COMPATIBLE, PartitionSpec
from openipu.vipu.domain.state import State
from openipu.vipu.domain.validation import check_not_tested

DEFAULT_SYNC_TYPE = SyncType.GS2_DEFAULT

_Number = TypeVar("_Number", bound=enum.IntEnum)


def make_partition(state: State, spec: PartitionSpec, context: Context) -> Partition:
    """Return a PENDING partition, placed in an allocation that the caller may use, with defaults for omitted fields."""
    size = _size(spec)
    num_gcds, num_replicas = _shares(spec, size)
    sync_type = _sync_type(spec)
    allocation, segments, ipus = (
        explicit_placement.locate(state, spec, context) if spec.ipus else _find_place(state, spec, context)
    )
    check_not_tested(allocation.cluster, context)
    cluster = state.clusters[allocation.cluster]
    return Partition(
        id=spec.id,
        allocation=allocation.id,
        cluster=cluster.id,
        ipus=ipus,
        routing=_routing(spec, size, segments, cluster),
        gw_routing=_gw_routing(spec, segments),
        sync_type=sync_type,
        num_gcds=num_gcds,
        num_replicas=num_replicas,
        num_segments=segments,
        reconfigurable=spec.reconfigurable,
        disable_auto_reset=spec.disable_auto_reset,
        relocatable=spec.relocatable,
        max_retries=context.max_retries,
    )


def change_partition(state: State, current: Partition, spec: PartitionSpec, context: Context) -> Partition:
    """Return the changed partition.

    Only automatic reset and relocation may change. Fields that the spec omits keep their values.
    """
    if not context.may_use(current.allocation):
        raise RuleViolation(Code.ALREADY_EXISTS, "a partition with this id already exists. Choose another id")
    if current.operation is Operation.REMOVING:
        raise RuleViolation(Code.FAILED_PRECONDITION, "it is being removed. Try again after its removal")
    for difference in _differences(current, spec):
        raise RuleViolation(Code.FAILED_PRECONDITION, f"{difference}. Remove the partition and create it again")
    if (spec.disable_auto_reset, spec.relocatable) == (current.disable_auto_reset, current.relocatable):
        return current
    return replace(current, disable_auto_reset=spec.disable_auto_reset, relocatable=spec.relocatable)


def _differences(current: Partition, spec: PartitionSpec) -> Iterator[str]:
    """Yield a clause for each requested value that differs from the partition."""
    pairs: tuple[tuple[str, Any, Any], ...] = (
        ("size", spec.size, current.size),
        ("allocation", spec.allocation, current.allocation),
        ("cluster", spec.cluster, current.cluster),
        ("routing", spec.routing, current.routing),
        ("number of segments", spec.num_segments, current.num_segments),
        ("GW-Link routing", spec.gw_routing, current.gw_routing),
        ("sync type", spec.sync_type, current.sync_type),
        ("number of GCDs", spec.num_gcds, current.num_gcds),
        ("number of replicas", spec.num_replicas, current.num_replicas),
        ("reconfigurable", spec.reconfigurable, current.reconfigurable),
    )
    for name, requested, actual in pairs:
        if requested and requested != actual:
            yield f"its {name} is {_value(actual)} and cannot become {_value(requested)}"
    if spec.ipus and not _same_ipus(current, spec.ipus):
        yield "its list of IPUs cannot change"


def _value(value: object) -> str:
    if isinstance(value, enum.IntEnum):
        return value.name
    return quoted(value) if isinstance(value, str) else str(value)


def _same_ipus(current: Partition, ipus: tuple[PlacedIpu, ...]) -> bool:
    if len(ipus) != len(current.ipus):
        return False
    if explicit_placement.unnumbered(ipus):
        return {(ipu.ild, ipu.topology_id) for ipu in ipus} == {(ipu.ild, ipu.topology_id) for ipu in current.ipus}
    return set(ipus) == set(current.ipus)


def _size(spec: PartitionSpec) -> int:
    if spec.ipus and spec.size not in (0, len(spec.ipus)):
        raise invalid(f"it lists {len(spec.ipus)} IPUs, but its size is {spec.size}. Omit the size")
    size = len(spec.ipus) or spec.size
    check_size(size)
    return size


def _shares(spec: PartitionSpec, size: int) -> tuple[int, int]:
    """Return the numbers of GCDs and replicas.

    The IPUs must divide evenly into replicas, and the replicas into GCDs.
    """
    gcds = spec.num_gcds or 1
    if gcds < 0 or size % gcds:
        raise invalid(f"{size} IPUs cannot be divided evenly into {gcds} GCDs. Change one of them")
    replicas = spec.num_replicas or gcds
    if replicas < 0 or size % replicas:
        raise invalid(f"{size} IPUs cannot be divided evenly into {replicas} replicas. Change one of them")
    if replicas % gcds:
        raise invalid(f"{replicas} replicas cannot be divided evenly into {gcds} GCDs. Change one of them")
    return gcds, replicas


def _number(values: type[_Number], number: int, label: str) -> _Number:
    try:
        return values(number)
    except ValueError:
        raise invalid(f"{number} is not a valid {label}. Omit it, or choose another") from None


def _sync_type(spec: PartitionSpec) -> SyncType:
    requested = _number(SyncType, spec.sync_type, "sync type")
    if spec.reconfigurable:
        if requested not in (SyncType.UNDEFINED, C2_COMPATIBLE):
            raise invalid("a reconfigurable partition needs the sync type c2-compatible. Omit the sync type")
        return C2_COMPATIBLE
    return requested or DEFAULT_SYNC_TYPE


def _routing(spec: PartitionSpec, size: int, segments: int, cluster: Cluster) -> Routing:
    requested = _number(Routing, spec.routing, "IPU-Link routing type")
    whole_ild = size // segments == IPUS_PER_MACHINE * cluster.machines_per_ild
    if requested is Routing.RINGSWNC and not routing.ring_possible(cluster.topology, whole_ild):
        raise invalid(
            "the routing RINGSWNC needs a whole IPU-Link domain of a torus "
            f"(cluster {quoted(cluster.id)} is a {cluster.topology} with "
            f"{cluster.machines_per_ild} machines per domain). Omit the routing"
        )
    return requested or routing.routing_for(size, cluster.topology, whole_ild)


def _gw_routing(spec: PartitionSpec, segments: int) -> GwRouting:
    requested = _number(GwRouting, spec.gw_routing, "GW-Link routing type")
    if requested and segments == 1:
        raise invalid("a partition in one IPU-Link domain has no GW-Link routing. Omit it")
    return requested or routing.gw_routing_for(segments)


def _segments(spec: PartitionSpec, cluster: Cluster) -> int:
    """Return the number of IPU-Link segments, by default as few as possible; each has whole machines."""
    if not spec.num_segments:
        return placement.segments_for(spec.size, cluster.machines_per_ild)
    segments = spec.num_segments
    if segments > 1 and not (is_power_of_two(segments) and spec.size >= segments * IPUS_PER_MACHINE):
        raise invalid(
            f"{spec.size} IPUs cannot be spread evenly over {segments} IPU-Link domains "
            f"with at least one IPU-Machine ({IPUS_PER_MACHINE} IPUs) in each"
        )
    if not 1 <= segments <= cluster.num_ilds:
        number = f"{cluster.num_ilds} IPU-Link domain{'' if cluster.num_ilds == 1 else 's'}"
        raise invalid(f"cluster {quoted(cluster.id)} has {number}, not {segments}")
    least = placement.segments_for(spec.size, cluster.machines_per_ild)
    if segments < least:
        ipus = IPUS_PER_MACHINE * cluster.machines_per_ild
        raise invalid(
            f"an IPU-Link domain of cluster {quoted(cluster.id)} has {ipus} IPUs, "
            f"so {spec.size} need at least {least} segments"
        )
    return segments


def _find_place(state: State, spec: PartitionSpec, context: Context) -> tuple[Allocation, int, tuple[PlacedIpu, ...]]:
    """Return the best fit among the candidates: the fewest segments, the smallest free block, then the first id."""
    candidates = _candidates(state, spec, context)
    best: tuple[tuple[int, int], Allocation, placement.Block] | None = None
    for allocation, segments in candidates:
        block = placement.place(
            occupancy_of(state, allocation, context.unavailable, context.quarantined), spec.size, segments
        )
        if block and (best is None or (segments, block.cut) < best[0]):
            best = (segments, block.cut), allocation, block
    if best is None:
        raise _placement_violation(state, spec, context, candidates)
    (segments, _), allocation, block = best
    return allocation, segments, block.placed()


def _candidates(state: State, spec: PartitionSpec, context: Context) -> list[tuple[Allocation, int]]:
    """Return the allocations that the caller may use, sorted by id, each with the number of segments in it.

    These are the allocation of the spec, those of its cluster, or else all allocations.
    """
    if spec.allocation:
        allocation = find_allocation(state, spec.allocation, context)
        if spec.cluster not in ("", allocation.cluster):
            raise invalid(
                f"allocation {quoted(allocation.id)} is in cluster {quoted(allocation.cluster)}, "
                f"not in {quoted(spec.cluster)}. Omit the cluster"
            )
        return [(allocation, _segments(spec, state.clusters[allocation.cluster]))]
    if spec.cluster:
        allocations = _usable(state, spec.cluster, context)
        segments = _segments(spec, state.clusters[spec.cluster])
        return [(allocation, segments) for allocation in allocations]
    return _candidates_in_all_clusters(state, spec, context)


def _candidates_in_all_clusters(state: State, spec: PartitionSpec, context: Context) -> list[tuple[Allocation, int]]:
    """Return the allocations whose clusters can have such a partition and are not under test.

    Raises RuleViolation when there is none, for the reason of the first one that the caller may use.
    """
    found: list[tuple[Allocation, int]] = []
    violations: list[RuleViolation] = []
    for id in sorted(filter(context.may_use, state.allocations)):
        allocation = state.allocations[id]
        cluster = state.clusters[allocation.cluster]
        try:
            check_not_tested(cluster.id, context)
            segments = _segments(spec, cluster)
            _routing(spec, spec.size, segments, cluster)
            _gw_routing(spec, segments)
        except RuleViolation as violation:
            violations.append(violation)
        else:
            found.append((allocation, segments))
    if found:
        return found
    if violations:
        raise violations[0]
    if not context.administrator:
        raise RuleViolation(Code.NOT_FOUND, "there is no allocation that you may use. Ask an administrator")
    raise RuleViolation(Code.FAILED_PRECONDITION, "there is no allocation. Create one first")


def _usable(state: State, cluster: str, context: Context) -> list[Allocation]:
    ids = sorted(id for id in state.allocations_in.get(cluster, ()) if context.may_use(id))
    if not ids:
        if cluster not in state.clusters or not context.administrator:
            raise missing_or_hidden(Kind.CLUSTER, cluster, context)
        raise RuleViolation(Code.FAILED_PRECONDITION, f"cluster {quoted(cluster)} has no allocation. Create one first")
    return [state.allocations[id] for id in ids]


def _placement_violation(
    state: State, spec: PartitionSpec, context: Context, candidates: list[tuple[Allocation, int]]
) -> RuleViolation:
    """Return the violation by a lack of free IPUs: how many are free, and which machines cannot be used."""
    allocations = [allocation for allocation, _ in candidates]
    occupancies = [
        occupancy_of(state, allocation, context.unavailable, context.quarantined) for allocation in allocations
    ]
    free = sum(map(placement.free_ipus, occupancies))
    largest = max(map(placement.largest_block, occupancies))
    many = len(allocations) > 1
    where = (
        f"the allocations {listing(a.id for a in allocations)}" if many else f"allocation {quoted(allocations[0].id)}"
    )
    reason = f"{where} {'have' if many else 'has'} {free or 'no'} free IPU{'' if free == 1 else 's'}"
    if largest >= spec.size:
        segments = candidates[0][1]  # only a requested number, the same for all, leaves a block of this size unused
        reason += f", but not {spec.size // segments} at the same positions of {segments} consecutive IPU-Link domains"
    elif free:
        reason += f" in blocks of at most {largest}. Request at most {largest}, or remove a partition"
    unusable = context.unavailable or context.quarantined or state.out_of_service
    for allocation, segments in candidates if unusable else ():
        block = placement.place(occupancy_of(state, allocation, in_service=False), spec.size, segments)
        if block:
            cluster = state.clusters[allocation.cluster]
            agents = {cluster.agents[position] for position in block.positions(cluster.machines_per_ild)}
            reason += f". A block that would fit is on {_obstacles(state, agents, context)}"
            break
    return RuleViolation(Code.RESOURCE_EXHAUSTED, reason)


def _obstacles(state: State, agents: set[str], context: Context) -> str:
    """Return which of these agents are down, or else are out of service, or else have IPUs in quarantine."""
    if found := agents.intersection(context.unavailable):
        return f"{listing(found)}, which {'are' if len(found) > 1 else 'is'} down"
    if found := agents & state.out_of_service:
        return f"{listing(found)}, which {'are' if len(found) > 1 else 'is'} out of service"
    found = agents.intersection(context.quarantined)
    return f"{listing(found)}, which {'have' if len(found) > 1 else 'has'} IPUs in quarantine"
