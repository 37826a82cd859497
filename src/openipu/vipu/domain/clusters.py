# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules for creating and changing clusters.

``rules`` describes the interface of ``make_cluster`` and ``change_cluster``.
"""

from __future__ import annotations

from openipu.vipu.domain.allocation_placement import are_consecutive
from openipu.vipu.domain.context import Context
from openipu.vipu.domain.errors import Code, RuleViolation, blocked_by, invalid, missing, quoted
from openipu.vipu.domain.model import Cluster, GwTopology, Kind, Topology
from openipu.vipu.domain.state import State
from openipu.vipu.domain.validation import (
    MAX_AGENTS_PER_CLUSTER,
    MAX_ILDS_PER_CLUSTER,
    check_distinct,
    check_not_tested,
)


def make_cluster(state: State, spec: Cluster, context: Context) -> Cluster:
    """Return a cluster of existing agents that are in no other cluster, in equal IPU-Link domains.

    One machine is enough for a torus: its ports loop back to itself.
    """
    if not spec.agents:
        raise invalid("it needs at least one agent")
    if len(spec.agents) > MAX_AGENTS_PER_CLUSTER:
        raise invalid(f"a cluster can have at most {MAX_AGENTS_PER_CLUSTER} agents, not {len(spec.agents)}")
    check_distinct("agent", spec.agents)
    if spec.num_ilds > MAX_ILDS_PER_CLUSTER:
        raise invalid(f"a cluster can have at most {MAX_ILDS_PER_CLUSTER} IPU-Link domains, not {spec.num_ilds}")
    if spec.num_ilds < 1 or len(spec.agents) % spec.num_ilds:
        raise invalid(
            f"{len(spec.agents)} agents cannot be divided evenly into {spec.num_ilds} IPU-Link domains. "
            "Change one of the numbers"
        )
    if spec.topology not in list(Topology):
        raise invalid(f"the IPU-Link topology must be 'mesh' or 'torus', not {quoted(spec.topology)}")
    if spec.gw_topology not in list(GwTopology):
        raise invalid(f"the GW-Link topology must be 'looped', not {quoted(spec.gw_topology)}")
    for agent in spec.agents:
        if agent not in state.agents:
            raise missing(Kind.AGENT, agent)
        other = state.cluster_of.get(agent, spec.id)
        if other != spec.id:
            raise RuleViolation(
                Code.FAILED_PRECONDITION, f"agent {quoted(agent)} is already in cluster {quoted(other)}. Choose another"
            )
    return spec


def change_cluster(state: State, current: Cluster, spec: Cluster, context: Context) -> Cluster:
    """Return the changed cluster.

    It must have no partitions, and its allocations must remain complete and consecutive.
    """
    if spec == current:
        return current
    check_not_tested(current.id, context)
    allocations = state.allocations_in.get(current.id, ())
    partitions = [partition for id in allocations for partition in state.partitions_in.get(id, ())]
    if partitions:
        raise blocked_by(Kind.PARTITION, partitions, "is in it", "are in it")
    changed = make_cluster(state, spec, context)
    position_of = {agent: position for position, agent in enumerate(changed.agents)}
    for id in sorted(allocations):
        if not are_consecutive([position_of.get(agent, -1) for agent in state.allocations[id].agents]):
            raise RuleViolation(
                Code.FAILED_PRECONDITION,
                f"the agents of allocation {quoted(id)} would no longer be consecutive. Remove the allocation first",
            )
    return changed
