# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of partitions: from what is asked for to a record with its place, routing and numbers.

``make_partition`` and ``change_partition`` as in ``entities``.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

from openipu.vipu import explicit, placement, routing
from openipu.vipu.capacity import check_size, find_allocation, room_of
from openipu.vipu.checks import (
    Code,
    Context,
    Refused,
    check_not_tested,
    invalid,
    is_power_of_two,
    listing,
    not_there,
    shown,
)
from openipu.vipu.model import (
    IPUS_PER_MACHINE,
    Allocation,
    Cluster,
    GwRouting,
    Kind,
    Operation,
    Partition,
    PlacedIpu,
    Routing,
    State,
    SyncType,
)
from openipu.vipu.specs import C2_COMPATIBLE, PartitionSpec

DEFAULT_SYNC_TYPE = SyncType.GS2_DEFAULT

_Number = TypeVar("_Number", bound=enum.IntEnum)


def make_partition(state: State, spec: PartitionSpec, context: Context) -> Partition:
    """A partition, PENDING: placed in its allocation, with every choice made that was left open."""
    size = _size(spec)
    num_gcds, num_replicas = _shares(spec, size)
    sync_type = _sync_type(spec)
    allocation, segments, ipus = (
        explicit.locate(state, spec, context) if spec.ipus else _find_place(state, spec, context)
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
    """Only the automatic reset and the relocation may change; what the spec leaves open is as it is."""
    if not context.may_use(current.allocation):
        raise Refused(Code.ALREADY_EXISTS, "there is a partition of that id already")
    if current.operation is Operation.REMOVING:
        raise Refused(Code.FAILED_PRECONDITION, "it is being removed; try again when it is gone")
    for name, asked, actual in _differences(current, spec):
        raise Refused(
            Code.FAILED_PRECONDITION,
            f"its {name} is {actual} and cannot become {asked}; remove the partition and create it again",
        )
    if (spec.disable_auto_reset, spec.relocatable) == (current.disable_auto_reset, current.relocatable):
        return current
    return replace(current, disable_auto_reset=spec.disable_auto_reset, relocatable=spec.relocatable)


def _differences(current: Partition, spec: PartitionSpec) -> Iterator[tuple[str, str, str]]:
    """Name, asked and actual value of whatever a spec asks for that the partition is not."""
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
    for name, asked, actual in pairs:
        if asked and asked != actual:
            yield name, _value(asked), _value(actual)
    if spec.ipus and not _same_ipus(current, spec.ipus):
        yield "list of IPUs", "another one", "what it is"


def _value(value: object) -> str:
    if isinstance(value, enum.IntEnum):
        return value.name
    return shown(value) if isinstance(value, str) else str(value)


def _same_ipus(current: Partition, ipus: tuple[PlacedIpu, ...]) -> bool:
    if len(ipus) != len(current.ipus):
        return False
    if explicit.unnumbered(ipus):
        return {(ipu.ild, ipu.topology_id) for ipu in ipus} == {(ipu.ild, ipu.topology_id) for ipu in current.ipus}
    return set(ipus) == set(current.ipus)


def _size(spec: PartitionSpec) -> int:
    if spec.ipus and spec.size not in (0, len(spec.ipus)):
        raise invalid(f"it lists {len(spec.ipus)} IPUs and asks for {spec.size}")
    size = len(spec.ipus) or spec.size
    check_size(size)
    return size


def _shares(spec: PartitionSpec, size: int) -> tuple[int, int]:
    """GCDs and replicas: the IPUs divide evenly into replicas, and the replicas into GCDs."""
    gcds = spec.num_gcds or 1
    if gcds < 0 or size % gcds:
        raise invalid(f"{size} IPUs cannot be divided evenly into {gcds} GCDs")
    replicas = spec.num_replicas or gcds
    if replicas < 0 or size % replicas:
        raise invalid(f"{size} IPUs cannot be divided evenly into {replicas} replicas")
    if replicas % gcds:
        raise invalid(f"{replicas} replicas cannot be divided evenly into {gcds} GCDs")
    return gcds, replicas


def _number(values: type[_Number], number: int, what: str) -> _Number:
    try:
        return values(number)
    except ValueError:
        raise invalid(f"there is no {what} number {number}") from None


def _sync_type(spec: PartitionSpec) -> SyncType:
    asked = _number(SyncType, spec.sync_type, "sync type")
    if spec.reconfigurable:
        if asked not in (SyncType.UNDEFINED, C2_COMPATIBLE):
            raise invalid("a reconfigurable partition needs the sync type c2-compatible; leave the sync type out")
        return C2_COMPATIBLE
    return asked or DEFAULT_SYNC_TYPE


def _routing(spec: PartitionSpec, size: int, segments: int, cluster: Cluster) -> Routing:
    asked = _number(Routing, spec.routing, "IPU-Link routing type")
    whole_ild = size // segments == IPUS_PER_MACHINE * cluster.machines_per_ild
    if asked is Routing.RINGSWNC and not routing.ring_possible(cluster.topology, whole_ild):
        raise invalid(
            "the routing RINGSWNC needs a whole IPU-Link domain of a torus "
            f"(cluster {shown(cluster.id)} is a {cluster.topology} of {cluster.machines_per_ild} machines per domain); "
            "leave the routing out"
        )
    return asked or routing.routing_for(size, cluster.topology, whole_ild)


def _gw_routing(spec: PartitionSpec, segments: int) -> GwRouting:
    asked = _number(GwRouting, spec.gw_routing, "GW-Link routing type")
    if asked and segments == 1:
        raise invalid("a partition in one IPU-Link domain has no GW-Link routing; leave it out")
    return asked or routing.gw_routing_for(segments)


def _segments(spec: PartitionSpec, cluster: Cluster) -> int:
    """IPU-Link segments: as few as the size needs unless asked for, each of whole machines."""
    if not spec.num_segments:
        return placement.segments_for(spec.size, cluster.machines_per_ild)
    segments = spec.num_segments
    if segments > 1 and not (is_power_of_two(segments) and spec.size >= segments * IPUS_PER_MACHINE):
        raise invalid(
            f"{spec.size} IPUs cannot be spread evenly over {segments} IPU-Link domains "
            f"with at least one IPU-Machine ({IPUS_PER_MACHINE} IPUs) in each"
        )
    if not 1 <= segments <= cluster.num_ilds:
        raise invalid(f"cluster {shown(cluster.id)} has {cluster.num_ilds} IPU-Link domains, not {segments}")
    least = placement.segments_for(spec.size, cluster.machines_per_ild)
    if segments < least:
        ipus = IPUS_PER_MACHINE * cluster.machines_per_ild
        raise invalid(
            f"an IPU-Link domain of cluster {shown(cluster.id)} has {ipus} IPUs, "
            f"so {spec.size} need at least {least} segments"
        )
    return segments


def _find_place(state: State, spec: PartitionSpec, context: Context) -> tuple[Allocation, int, tuple[PlacedIpu, ...]]:
    """The best fit in the allocation, or in any allocation of the cluster that the caller may use."""
    if bool(spec.allocation) == bool(spec.cluster):
        raise invalid("it needs an allocation, or (deprecated) a cluster, and not both")
    if spec.allocation:
        allocations = [find_allocation(state, spec.allocation, context)]
        cluster = state.clusters[allocations[0].cluster]
    else:
        allocations = _usable(state, spec.cluster, context)
        cluster = state.clusters[spec.cluster]
    segments = _segments(spec, cluster)
    best: tuple[int, Allocation, placement.Block] | None = None
    for allocation in allocations:
        block = placement.place(room_of(state, allocation, context.unavailable), spec.size, segments)
        if block and (best is None or block.cut < best[0]):
            best = block.cut, allocation, block
    if best is None:
        raise _no_place(state, spec, context, allocations, segments)
    return best[1], segments, best[2].placed()


def _usable(state: State, cluster: str, context: Context) -> list[Allocation]:
    ids = sorted(id for id in state.allocations_in.get(cluster, ()) if context.may_use(id))
    if not ids:
        if cluster not in state.clusters or context.allowed is not None:
            raise not_there(Kind.CLUSTER, cluster, context)
        raise Refused(Code.FAILED_PRECONDITION, f"cluster {shown(cluster)} has no allocation; create one first")
    return [state.allocations[id] for id in ids]


def _no_place(
    state: State, spec: PartitionSpec, context: Context, allocations: list[Allocation], segments: int
) -> Refused:
    """The refusal for want of room: how much is free, and which machines that are down are in the way."""
    rooms = [room_of(state, allocation, context.unavailable) for allocation in allocations]
    free = sum(map(placement.free_ipus, rooms))
    largest = max(map(placement.largest_block, rooms))
    many = len(allocations) > 1
    where = (
        f"the allocations {listing(a.id for a in allocations)}" if many else f"allocation {shown(allocations[0].id)}"
    )
    reason = f"{where} {'have' if many else 'has'} {free or 'no'} free IPU{'' if free == 1 else 's'}"
    if largest >= spec.size:
        reason += f", but not {spec.size // segments} at the same positions of {segments} consecutive IPU-Link domains"
    elif free:
        reason += f" in blocks of at most {largest}"
    for allocation in allocations if context.unavailable else ():
        block = placement.place(room_of(state, allocation), spec.size, segments)
        if block:
            cluster = state.clusters[allocation.cluster]
            agents = {cluster.agents[position] for position in block.positions(cluster.machines_per_ild)}
            down = agents.intersection(context.unavailable)
            reason += f"; the place that would fit is on {listing(down)}, which {'are' if len(down) > 1 else 'is'} down"
            break
    return Refused(Code.RESOURCE_EXHAUSTED, reason)
