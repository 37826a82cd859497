# SPDX-License-Identifier: GPL-3.0-or-later
"""Model of a controller: expected records as dictionaries, and expected status codes of requests.

Every method returns the status codes with which the controller may reject the request. An empty set means
that it must succeed; the method then updates the dictionaries. The model follows the documentation of the
rules and shares no code with the controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from grpc import StatusCode

INVALID, MISSING, EXISTS = StatusCode.INVALID_ARGUMENT, StatusCode.NOT_FOUND, StatusCode.ALREADY_EXISTS
FULL, WAIT = StatusCode.RESOURCE_EXHAUSTED, StatusCode.FAILED_PRECONDITION

Place = frozenset[tuple[str, int]]  # (agent, number of the IPU on its machine)


@dataclass(frozen=True)
class ClusterModel:
    """Agents of a cluster, ordered by IPU-Link domain."""

    agents: tuple[str, ...]
    ilds: int


@dataclass
class Model:
    """The records of a controller."""

    agents: dict[str, tuple[str, int]] = field(default_factory=dict)
    clusters: dict[str, ClusterModel] = field(default_factory=dict)
    allocations: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)  # cluster, agents
    partitions: dict[str, tuple[str, int]] = field(default_factory=dict)  # allocation, size
    places: dict[str, Place] = field(default_factory=dict)  # of the partitions listed so far

    def copy(self) -> Model:
        """Return an independent copy."""
        return Model(
            dict(self.agents), dict(self.clusters), dict(self.allocations), dict(self.partitions), dict(self.places)
        )

    def create_agent(self, id: str, host: str, port: int) -> set[StatusCode]:
        rejections = {EXISTS} if id in self.agents or (host, port) in self.agents.values() else set()
        if not rejections:
            self.agents[id] = host, port
        return rejections

    def create_cluster(self, id: str, agents: Sequence[str], ilds: int) -> set[StatusCode]:
        taken = {agent for cluster in self.clusters.values() for agent in cluster.agents}
        rejections = {EXISTS} if id in self.clusters else set()
        if not agents or len(set(agents)) < len(agents) or len(agents) % ilds:
            rejections.add(INVALID)
        if not self.agents.keys() >= set(agents):
            rejections.add(MISSING)
        if taken & set(agents):
            rejections.add(WAIT)
        if not rejections:
            self.clusters[id] = ClusterModel(tuple(agents), ilds)
        return rejections

    def create_allocation(self, id: str, cluster: str, agents: Sequence[str]) -> set[StatusCode]:
        taken = {agent for _, held in self.allocations.values() for agent in held}
        rejections = {EXISTS} if id in self.allocations else set()
        if cluster not in self.clusters:
            return rejections | {MISSING}
        order = list(self.clusters[cluster].agents)
        if not self.agents.keys() >= set(agents):
            rejections.add(MISSING)
        if not set(order) >= set(agents) & self.agents.keys():
            rejections.add(WAIT)
        if taken & set(agents):
            rejections.add(WAIT)
        if not agents or not any(order[first : first + len(agents)] == list(agents) for first in range(len(order))):
            rejections.add(INVALID)
        if not rejections:
            self.allocations[id] = cluster, tuple(agents)
        return rejections

    def create_partition(self, id: str, allocation: str, size: int) -> set[StatusCode]:
        rejections = {EXISTS} if id in self.partitions else set()
        if size < 1 or size & (size - 1):
            rejections.add(INVALID)
        if allocation not in self.allocations:
            rejections.add(MISSING)
        if not rejections and not self.fits(allocation, size):
            rejections.add(FULL)
        if not rejections:
            self.partitions[id] = allocation, size
        return rejections

    def remove(self, kind: str, id: str, force: bool) -> set[StatusCode]:
        table = getattr(self, f"{kind}s")
        if id not in table:
            return {MISSING}
        dependents = self._dependents(kind, id)
        if dependents and not force:
            return {WAIT}
        for lower, name in dependents:
            self.remove(lower, name, force=True)
        del table[id]
        if kind == "partition":
            self.places.pop(id, None)
        return set()

    def _dependents(self, kind: str, id: str) -> list[tuple[str, str]]:
        if kind == "agent":
            return [("cluster", name) for name, cluster in self.clusters.items() if id in cluster.agents]
        if kind == "cluster":
            return [("allocation", name) for name, (cluster, _) in self.allocations.items() if cluster == id]
        if kind == "allocation":
            return [("partition", name) for name, (allocation, _) in self.partitions.items() if allocation == id]
        return []

    def fits(self, allocation: str, size: int) -> bool:
        """Return whether a partition fits: in an aligned block of one machine, or in consecutive whole machines."""
        cluster_id, members = self.allocations[allocation]
        cluster = self.clusters[cluster_id]
        used = {ipu for place in self.places.values() for ipu in place}

        def free(agent: str, ipus: Sequence[int]) -> bool:
            return agent in members and not any((agent, ipu) in used for ipu in ipus)

        if size < 4:
            return any(free(agent, range(first, first + size)) for agent in members for first in range(0, 4, size))
        per_ild, segments = len(cluster.agents) // cluster.ilds, 1
        while size > segments * per_ild * 4:
            segments *= 2
        machines = size // 4 // segments
        return any(
            all(
                free(cluster.agents[(ild + segment) * per_ild + first + machine], range(4))
                for segment in range(segments)
                for machine in range(machines)
            )
            for ild in range(cluster.ilds - segments + 1)
            for first in range(per_ild - machines + 1)
        )
