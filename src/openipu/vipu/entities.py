# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of agents, clusters, allocations and users: what may be made, and what may be changed into what.

``make_*`` gives the record for something new; ``change_*`` the record in place of an existing one,
the very same object when nothing changes. Both raise Refused. Ids are checked by the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from openipu.vipu.checks import (
    MAX_AGENTS_PER_CLUSTER,
    MAX_ALLOCATIONS_PER_USER,
    MAX_ILDS_PER_CLUSTER,
    Code,
    Context,
    Refused,
    check_distinct,
    check_host,
    check_not_tested,
    in_the_way,
    invalid,
    missing,
    shown,
)
from openipu.vipu.model import Agent, Allocation, Cluster, GwTopology, Kind, Role, State, Topology, User
from openipu.vipu.specs import AllocationSpec, UserSpec


def make_agent(state: State, spec: Agent, context: Context) -> Agent:
    """An agent: a valid end-point that no other agent has."""
    check_host(spec.host)
    if not 1 <= spec.port <= 65535:
        raise invalid(f"the port is 1 to 65535, not {spec.port}")
    other = state.endpoints.get((spec.host.lower(), spec.port), spec.id)
    if other != spec.id:
        raise Refused(Code.ALREADY_EXISTS, f"agent {shown(other)} has {spec.host}:{spec.port} already")
    return spec


def change_agent(state: State, current: Agent, spec: Agent, context: Context) -> Agent:
    """The end-point may change at any time: the machine keeps its place in its cluster."""
    return current if spec == current else make_agent(state, spec, context)


def make_cluster(state: State, spec: Cluster, context: Context) -> Cluster:
    """A cluster: existing agents of no other cluster, in as many equal IPU-Link domains as it says.

    One machine is enough for a torus: its ports loop back to itself.
    """
    if not spec.agents:
        raise invalid("it needs at least one agent")
    if len(spec.agents) > MAX_AGENTS_PER_CLUSTER:
        raise invalid(f"it has {len(spec.agents)} agents; a cluster has at most {MAX_AGENTS_PER_CLUSTER}")
    check_distinct("agent", spec.agents)
    if spec.num_ilds > MAX_ILDS_PER_CLUSTER:
        raise invalid(f"a cluster has at most {MAX_ILDS_PER_CLUSTER} IPU-Link domains, not {spec.num_ilds}")
    if spec.num_ilds < 1 or len(spec.agents) % spec.num_ilds:
        raise invalid(f"{len(spec.agents)} agents cannot be divided evenly into {spec.num_ilds} IPU-Link domains")
    if spec.topology not in list(Topology):
        raise invalid(f"the IPU-Link topology is 'mesh' or 'torus', not {shown(spec.topology)}")
    if spec.gw_topology not in list(GwTopology):
        raise invalid(f"the GW-Link topology is 'looped', not {shown(spec.gw_topology)}")
    for agent in spec.agents:
        if agent not in state.agents:
            raise missing(Kind.AGENT, agent)
        other = state.cluster_of.get(agent, spec.id)
        if other != spec.id:
            raise Refused(Code.FAILED_PRECONDITION, f"agent {shown(agent)} is in cluster {shown(other)} already")
    return spec


def change_cluster(state: State, current: Cluster, spec: Cluster, context: Context) -> Cluster:
    """Anything may change while no partition is in it, as long as its allocations stay whole and consecutive."""
    if spec == current:
        return current
    check_not_tested(current.id, context)
    allocations = state.allocations_in.get(current.id, ())
    partitions = [partition for id in allocations for partition in state.partitions_in.get(id, ())]
    if partitions:
        raise in_the_way(Kind.PARTITION, partitions, "is in it", "are in it")
    changed = make_cluster(state, spec, context)
    position_of = {agent: position for position, agent in enumerate(changed.agents)}
    for id in sorted(allocations):
        if not _consecutive([position_of.get(agent, -1) for agent in state.allocations[id].agents]):
            raise Refused(
                Code.FAILED_PRECONDITION,
                f"the agents of allocation {shown(id)} would not be consecutive in it any more; remove that first",
            )
    return changed


def make_allocation(state: State, spec: AllocationSpec, context: Context) -> Allocation:
    """An allocation: the agents it lists, or as many consecutive ones as it asks for, of an existing cluster."""
    if not spec.cluster:
        raise invalid("it needs a cluster")
    cluster = state.clusters.get(spec.cluster)
    if cluster is None:
        raise missing(Kind.CLUSTER, spec.cluster)
    if spec.agents:
        return _with_agents(state, cluster, spec)
    if spec.size < 1:
        raise invalid("it needs a size of at least one IPU-Machine, or a list of agents")
    free = [agent not in state.allocation_of for agent in cluster.agents]
    first = _best_run(free, spec.size, cluster.machines_per_ild)
    if first is None:
        longest = max((run for _, run in _free_runs(free)), default=0)
        raise Refused(
            Code.RESOURCE_EXHAUSTED,
            f"cluster {shown(cluster.id)} has {sum(free)} free IPU-Machines, at most {longest} of them consecutive",
        )
    return Allocation(spec.id, cluster.id, cluster.agents[first : first + spec.size])


def change_allocation(state: State, current: Allocation, spec: AllocationSpec, context: Context) -> Allocation:
    """It may grow and shrink, as long as its machines stay consecutive and those of its partitions stay in."""
    if spec.cluster and spec.cluster != current.cluster:
        raise Refused(
            Code.FAILED_PRECONDITION,
            f"it is in cluster {shown(current.cluster)}; remove it and create it again to have it elsewhere",
        )
    cluster = state.clusters[current.cluster]
    if not spec.agents:
        if spec.size < 0:
            raise invalid(f"the size is a number of IPU-Machines, not {spec.size}")
        if spec.size in (0, len(current.agents)):
            return current
        return replace(current, agents=_resized(state, cluster, current, spec.size))
    if spec.agents == current.agents and spec.size in (0, len(current.agents)):
        return current
    changed = _with_agents(state, cluster, spec)
    lost = set(current.agents).difference(changed.agents)
    holding = {partition for agent in lost for partition in state.holders.get(agent, {}).values()}
    if holding:
        raise in_the_way(Kind.PARTITION, holding, "uses machines it would lose", "use machines it would lose")
    return changed


def make_user(state: State, spec: UserSpec | User, context: Context) -> User:
    """A user, with the hash of an access key, and rights to existing allocations only."""
    if not isinstance(spec, User):
        raise invalid("a new user needs an access key")
    return replace(spec, role=_role(spec), allocations=_rights(state, spec))


def change_user(state: State, current: User, spec: UserSpec | User, context: Context) -> User:
    """Role and rights may change; the access key stays."""
    role, allocations = _role(spec), _rights(state, spec)
    if role == current.role and set(allocations) == set(current.allocations):
        return current
    if role is not Role.ADMIN:
        check_admin_stays(state, current, context)
    return replace(current, role=role, allocations=allocations)


def check_admin_stays(state: State, user: User, context: Context) -> None:
    """Refuse to take away the last administrator: nobody could make another one on a running, secure controller."""
    if user.role is not Role.ADMIN or context.admin_follows:
        return
    if not any(other.role is Role.ADMIN and other.id != user.id for other in state.users.values()):
        raise Refused(Code.FAILED_PRECONDITION, "it is the last administrator; make another user administrator first")


def _role(spec: UserSpec | User) -> Role:
    try:
        return Role(spec.role)
    except ValueError:
        raise invalid(f"the role is 'user' or 'admin', not {shown(str(spec.role))}") from None


def _rights(state: State, spec: UserSpec | User) -> tuple[str, ...]:
    if len(spec.allocations) > MAX_ALLOCATIONS_PER_USER:
        raise invalid(f"a user has at most {MAX_ALLOCATIONS_PER_USER} allocations, not {len(spec.allocations)}")
    check_distinct("allocation", spec.allocations)
    for id in spec.allocations:
        if id not in state.allocations:
            raise missing(Kind.ALLOCATION, id)
    return tuple(spec.allocations)


def _with_agents(state: State, cluster: Cluster, spec: AllocationSpec) -> Allocation:
    agents = spec.agents
    if len(agents) > len(cluster.agents):
        raise invalid(f"it lists {len(agents)} agents, and cluster {shown(cluster.id)} has only {len(cluster.agents)}")
    if spec.size and spec.size != len(agents):
        raise invalid(f"it lists {len(agents)} agents and asks for {spec.size}; give one of the two")
    check_distinct("agent", agents)
    for agent in agents:
        if agent not in state.agents:
            raise missing(Kind.AGENT, agent)
        if state.cluster_of.get(agent) != cluster.id:
            raise Refused(Code.FAILED_PRECONDITION, f"agent {shown(agent)} is not in cluster {shown(cluster.id)}")
        other = state.allocation_of.get(agent, spec.id)
        if other != spec.id:
            raise Refused(Code.FAILED_PRECONDITION, f"agent {shown(agent)} is in allocation {shown(other)} already")
    if not _consecutive([state.position_of[agent] for agent in agents]):
        raise invalid(f"its agents must be consecutive in cluster {shown(cluster.id)}, and listed in that order")
    return Allocation(spec.id, cluster.id, tuple(agents))


def _resized(state: State, cluster: Cluster, current: Allocation, size: int) -> tuple[str, ...]:
    """The agents of an allocation at another size: changed at its upper end as far as possible."""
    first = state.position_of[current.agents[0]]
    end = first + len(current.agents)
    if size < len(current.agents):
        held = [index for index in range(first, end) if cluster.agents[index] in state.holders]
        start = max(first, held[-1] - size + 1) if held else first
        if held and start > held[0]:
            machines = f"machines that are not among {size} consecutive ones"
            raise in_the_way(Kind.PARTITION, state.partitions_in[current.id], f"uses {machines}", f"use {machines}")
        return cluster.agents[start : start + size]
    low, high = first, end
    while high < len(cluster.agents) and high - low < size and cluster.agents[high] not in state.allocation_of:
        high += 1
    while low > 0 and high - low < size and cluster.agents[low - 1] not in state.allocation_of:
        low -= 1
    if high - low < size:
        raise Refused(
            Code.RESOURCE_EXHAUSTED,
            f"it can grow to {high - low} consecutive IPU-Machines at most, not to {size}, "
            f"with what is free around it in cluster {shown(cluster.id)}",
        )
    return cluster.agents[low:high]


def _consecutive(positions: Sequence[int]) -> bool:
    """Whether each is the one before plus 1 (a negative one is never in place)."""
    return min(positions) >= 0 and list(positions) == list(range(positions[0], positions[0] + len(positions)))


def _free_runs(free: Sequence[bool]) -> list[tuple[int, int]]:
    """Start and length of every run of free machines."""
    runs: list[tuple[int, int]] = []
    start = 0
    for position, is_free in enumerate([*free, False]):
        if not is_free:
            if position > start:
                runs.append((start, position - start))
            start = position + 1
    return runs


def _best_run(free: Sequence[bool], size: int, per_ild: int) -> int | None:
    """Where to cut ``size`` consecutive machines.

    Partitions live inside of IPU-Link domains, so it touches as few domains as possible and has as
    many of them whole as possible; then comes the best fit, at an end of the smallest free run.
    """
    best: tuple[int, int, int, int] | None = None
    for start, run in _free_runs(free):
        end = start + run
        borders = range(-(-start // per_ild) * per_ild, end + 1, per_ild)
        starts = {start, end - size, *borders, *(border - size for border in borders)}
        for first in starts:
            if start <= first <= end - size:
                domains = (first + size - 1) // per_ild - first // per_ild + 1
                whole = max(0, (first + size) // per_ild - -(-first // per_ild))
                inside = min(end, (first // per_ild + domains) * per_ild) - max(start, first // per_ild * per_ild)
                candidate = (domains, -whole, inside, first)
                if best is None or candidate < best:
                    best = candidate
    return None if best is None else best[3]
