# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules for creating and changing allocations.

``rules`` describes the interface of ``make_allocation`` and ``change_allocation``.
"""

from __future__ import annotations

from dataclasses import replace

from openipu.vipu.domain.allocation_placement import are_consecutive, best_run, free_runs
from openipu.vipu.domain.context import Context
from openipu.vipu.domain.errors import Code, RuleViolation, blocked_by, invalid, missing, quoted
from openipu.vipu.domain.model import Allocation, Cluster, Kind
from openipu.vipu.domain.specs import AllocationSpec
from openipu.vipu.domain.state import State
from openipu.vipu.domain.validation import check_distinct

_USE = ("uses machines that it would lose", "use machines that it would lose")  # one partition, and several


def make_allocation(state: State, spec: AllocationSpec, context: Context) -> Allocation:
    """Return an allocation of the listed agents, or of the requested number of consecutive agents, of a cluster."""
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
    first = best_run(free, spec.size, cluster.machines_per_ild)
    if first is None:
        longest = max((run for _, run in free_runs(free)), default=0)
        raise RuleViolation(
            Code.RESOURCE_EXHAUSTED,
            f"cluster {quoted(cluster.id)} has {sum(free)} free IPU-Machines, at most {longest} of them consecutive",
        )
    return Allocation(spec.id, cluster.id, cluster.agents[first : first + spec.size])


def change_allocation(state: State, current: Allocation, spec: AllocationSpec, context: Context) -> Allocation:
    """Return the changed allocation.

    It may grow and shrink. Its machines must remain consecutive and include those of its partitions.
    """
    if spec.cluster and spec.cluster != current.cluster:
        raise RuleViolation(
            Code.FAILED_PRECONDITION,
            f"it is in cluster {quoted(current.cluster)}. To move it, remove it and create it again",
        )
    cluster = state.clusters[current.cluster]
    if not spec.agents:
        if spec.size < 0:
            raise invalid(f"the size must be a number of IPU-Machines, not {spec.size}")
        if spec.size in (0, len(current.agents)):
            return current
        return replace(current, agents=_resized(state, cluster, current, spec.size))
    if spec.agents == current.agents and spec.size in (0, len(current.agents)):
        return current
    changed = _with_agents(state, cluster, spec)
    lost = set(current.agents).difference(changed.agents)
    holding = {partition for agent in lost for partition in state.holders.get(agent, {}).values()}
    if holding:
        raise blocked_by(Kind.PARTITION, holding, *_USE)
    return changed


def _with_agents(state: State, cluster: Cluster, spec: AllocationSpec) -> Allocation:
    agents = spec.agents
    if len(agents) > len(cluster.agents):
        raise invalid(
            f"it lists {len(agents)} agents, but cluster {quoted(cluster.id)} has only {len(cluster.agents)}. "
            "List fewer"
        )
    if spec.size and spec.size != len(agents):
        raise invalid(f"it lists {len(agents)} agents, but its size is {spec.size}. Give either the agents or the size")
    check_distinct("agent", agents)
    for agent in agents:
        if agent not in state.agents:
            raise missing(Kind.AGENT, agent)
        if state.cluster_of.get(agent) != cluster.id:
            raise RuleViolation(
                Code.FAILED_PRECONDITION,
                f"agent {quoted(agent)} is not in cluster {quoted(cluster.id)}. Choose another",
            )
        other = state.allocation_of.get(agent, spec.id)
        if other != spec.id:
            raise RuleViolation(
                Code.FAILED_PRECONDITION,
                f"agent {quoted(agent)} is already in allocation {quoted(other)}. Choose another",
            )
    if not are_consecutive([state.position_of[agent] for agent in agents]):
        raise invalid(f"its agents must be consecutive in cluster {quoted(cluster.id)}, and listed in that order")
    return Allocation(spec.id, cluster.id, tuple(agents))


def _resized(state: State, cluster: Cluster, current: Allocation, size: int) -> tuple[str, ...]:
    """Return the agents of an allocation of another size, changed at its upper end as far as possible."""
    first = state.position_of[current.agents[0]]
    end = first + len(current.agents)
    if size < len(current.agents):
        held = [index for index in range(first, end) if cluster.agents[index] in state.holders]
        start = max(first, held[-1] - size + 1) if held else first
        if held and start > held[0]:
            machines = f"machines that need a size of at least {held[-1] - held[0] + 1}"
            raise blocked_by(Kind.PARTITION, state.partitions_in[current.id], f"uses {machines}", f"use {machines}")
        return cluster.agents[start : start + size]
    low, high = first, end
    while high < len(cluster.agents) and high - low < size and cluster.agents[high] not in state.allocation_of:
        high += 1
    while low > 0 and high - low < size and cluster.agents[low - 1] not in state.allocation_of:
        low -= 1
    if high - low < size:
        raise RuleViolation(
            Code.RESOURCE_EXHAUSTED,
            f"it can grow to at most {high - low} consecutive IPU-Machines, not to {size}: "
            f"the adjacent IPU-Machines in cluster {quoted(cluster.id)} are not free",
        )
    return cluster.agents[low:high]
