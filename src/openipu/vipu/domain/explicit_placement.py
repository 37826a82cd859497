# SPDX-License-Identifier: GPL-3.0-or-later
"""Placement and numbering of partitions whose IPUs the caller lists."""

from __future__ import annotations

from collections import defaultdict

from openipu.vipu.domain.context import Context
from openipu.vipu.domain.errors import Code, RuleViolation, invalid, missing, missing_or_hidden, quoted
from openipu.vipu.domain.model import IPUS_PER_MACHINE, Allocation, Cluster, Kind, PlacedIpu
from openipu.vipu.domain.specs import PartitionSpec
from openipu.vipu.domain.state import State


def locate(state: State, spec: PartitionSpec, context: Context) -> tuple[Allocation, int, tuple[PlacedIpu, ...]]:
    """Return the allocation, the number of segments, and the IPUs by segment and routing id.

    The caller has checked that the list has the size of the partition. Machines that are down may be
    listed. Raises RuleViolation.
    """
    if not spec.cluster:
        raise invalid("a list of IPUs needs a cluster")
    if not context.administrator:
        _check_usable(state, spec, context)
    cluster = state.clusters.get(spec.cluster)
    if cluster is None:
        raise missing(Kind.CLUSTER, spec.cluster)
    if context.administrator and len(spec.ipus) > IPUS_PER_MACHINE * len(cluster.agents):
        raise invalid(
            f"it lists {len(spec.ipus)} IPUs, but cluster {quoted(cluster.id)} has only "
            f"{IPUS_PER_MACHINE * len(cluster.agents)}. List fewer"
        )
    _check_numbers(cluster, spec.ipus)
    allocation = _allocation(state, cluster, spec)
    for ipu in spec.ipus:
        agent = cluster.agents[ipu.position(cluster.machines_per_ild)]
        holder = state.holders.get(agent, {}).get(ipu.ipu)
        if holder is not None:
            raise RuleViolation(
                Code.FAILED_PRECONDITION,
                f"IPU {ipu.ipu} of agent {quoted(agent)} is in partition {quoted(holder)}. Choose another",
            )
        if agent in state.out_of_service and not context.is_placed:
            raise RuleViolation(
                Code.FAILED_PRECONDITION,
                f"agent {quoted(agent)} is out of service. Choose IPUs of other agents, or ask an administrator",
            )
        if context.quarantined.get(agent, 0) >> ipu.ipu & 1:
            raise RuleViolation(
                Code.FAILED_PRECONDITION,
                f"IPU {ipu.ipu} of agent {quoted(agent)} is in quarantine. An administrator can release it",
            )
    domains: defaultdict[int, list[PlacedIpu]] = defaultdict(list)
    for ipu in spec.ipus:
        domains[ipu.ild].append(ipu)
    _check_shape(domains)
    if spec.num_segments not in (0, len(domains)):
        raise invalid(
            f"its number of segments is {spec.num_segments}, but the number of its IPU-Link domains is {len(domains)}. "
            "Make them equal"
        )
    return allocation, len(domains), _numbered(domains)


def unnumbered(ipus: tuple[PlacedIpu, ...]) -> bool:
    """Return whether all routing ids are zero, which leaves their choice to the controller."""
    return not any(ipu.routing_id or ipu.ild_routing_id for ipu in ipus)


def _check_usable(state: State, spec: PartitionSpec, context: Context) -> None:
    """Raise RuleViolation unless all IPUs are in allocations that a user may use.

    It does not reveal whether another IPU exists, nor the name of its agent.
    """
    if not any(map(context.may_use, state.allocations_in.get(spec.cluster, ()))):
        raise missing_or_hidden(Kind.CLUSTER, spec.cluster, context)
    cluster = state.clusters[spec.cluster]
    for index, ipu in enumerate(spec.ipus):
        agent = cluster.agents[ipu.position(cluster.machines_per_ild)] if _is_in(cluster, ipu) else ""
        id = state.allocation_of.get(agent)
        if id is None or not context.may_use(id):
            raise RuleViolation(
                Code.NOT_FOUND,
                f"IPU {ipu.topology_id} of IPU-Link domain {ipu.ild} (index {index} of the list) is in no allocation "
                "that you may use. Choose another",
            )


def _is_in(cluster: Cluster, ipu: PlacedIpu) -> bool:
    return 0 <= ipu.ild < cluster.num_ilds and 0 <= ipu.topology_id < _ipus_per_ild(cluster)


def _ipus_per_ild(cluster: Cluster) -> int:
    return IPUS_PER_MACHINE * cluster.machines_per_ild


def _check_numbers(cluster: Cluster, ipus: tuple[PlacedIpu, ...]) -> None:
    seen: dict[tuple[int, int], int] = {}
    for index, ipu in enumerate(ipus):
        if not _is_in(cluster, ipu):
            raise invalid(
                f"IPU {ipu.topology_id} of IPU-Link domain {ipu.ild} (index {index} of the list) is not in cluster "
                f"{quoted(cluster.id)}, which has {cluster.num_ilds} domains of {_ipus_per_ild(cluster)} IPUs. "
                "Choose another"
            )
        first = seen.setdefault((ipu.ild, ipu.topology_id), index)
        if first != index:
            raise invalid(
                f"IPU {ipu.topology_id} of IPU-Link domain {ipu.ild} is listed twice, at {first} and {index} "
                "(counted from 0). List it once"
            )


def _allocation(state: State, cluster: Cluster, spec: PartitionSpec) -> Allocation:
    """Return the allocation of all the IPUs; NOT_FOUND when one is in none."""
    ids: set[str] = set()
    for position in sorted({ipu.position(cluster.machines_per_ild) for ipu in spec.ipus}):
        agent = cluster.agents[position]
        id = state.allocation_of.get(agent)
        if id is None:
            raise RuleViolation(
                Code.NOT_FOUND, f"agent {quoted(agent)} is in no allocation that you may use. Choose another"
            )
        ids.add(id)
    if spec.allocation and ids != {spec.allocation}:
        raise RuleViolation(
            Code.FAILED_PRECONDITION, f"not all of its IPUs are in allocation {quoted(spec.allocation)}. Choose others"
        )
    if len(ids) > 1:
        first, second = sorted(ids)[:2]
        raise RuleViolation(
            Code.FAILED_PRECONDITION,
            f"its IPUs are in allocations {quoted(first)} and {quoted(second)}. Only one is allowed",
        )
    return state.allocations[ids.pop()]


def _check_shape(domains: dict[int, list[PlacedIpu]]) -> None:
    """Raise RuleViolation unless the IPUs have the shape of a partition.

    The shape is either the same whole, consecutive machines in consecutive domains, or an aligned block of
    one machine.
    """
    ilds = sorted(domains)
    if ilds != list(range(ilds[0], ilds[0] + len(ilds))):
        raise invalid("its IPU-Link domains are not consecutive. Choose others")
    ids = sorted(ipu.topology_id for ipu in domains[ilds[0]])
    if any(sorted(ipu.topology_id for ipu in domains[ild]) != ids for ild in ilds[1:]):
        raise invalid("its IPUs are not at the same positions of all its IPU-Link domains. Choose others")
    consecutive = ids == list(range(ids[0], ids[0] + len(ids)))
    if len(ids) >= IPUS_PER_MACHINE or len(ilds) > 1:
        if not consecutive or ids[0] % IPUS_PER_MACHINE or len(ids) % IPUS_PER_MACHINE:
            raise invalid("with four or more IPUs, or several segments, it must use whole, consecutive IPU-Machines")
    elif not consecutive or ids[0] % len(ids):
        raise invalid("two IPUs must be IPU 0 and 1, or 2 and 3, of one IPU-Machine")


def _numbered(domains: dict[int, list[PlacedIpu]]) -> tuple[PlacedIpu, ...]:
    """Return the IPUs by segment and routing id, numbered by the controller where all ids are zero."""
    ilds = sorted(domains)
    segments = {ild: {ipu.ild_routing_id for ipu in ipus} for ild, ipus in domains.items()}
    if all(ids == {0} for ids in segments.values()):
        segment_of = {ild: ild - ilds[0] for ild in ilds}
    elif sorted(map(sorted, segments.values())) == [[segment] for segment in range(len(ilds))]:
        segment_of = {ild: ids.pop() for ild, ids in segments.items()}
    else:
        raise invalid(f"the routing ids of its IPU-Link domains must be 0 to {len(ilds) - 1}, one for each domain")
    choose = not any(ipu.routing_id for ipus in domains.values() for ipu in ipus)
    numbered = []
    for ild in sorted(ilds, key=segment_of.__getitem__):
        ipus = domains[ild]
        if choose:
            ipus.sort(key=lambda ipu: (ipu.topology_id // IPUS_PER_MACHINE, -ipu.topology_id))
        else:
            ipus.sort(key=lambda ipu: ipu.routing_id)
            if [ipu.routing_id for ipu in ipus] != list(range(len(ipus))):
                raise invalid(f"the routing ids in a segment must be 0 to {len(ipus) - 1}, one for each IPU")
        numbered += [
            PlacedIpu(ild, segment_of[ild], ipu.topology_id, routing_id) for routing_id, ipu in enumerate(ipus)
        ]
    return tuple(numbered)
