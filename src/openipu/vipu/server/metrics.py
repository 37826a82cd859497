# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of a leader or single controller that are read at each scrape: records, agents and cluster tests."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from openipu.vipu.cluster_test.results import Results
from openipu.vipu.domain import placement
from openipu.vipu.domain.certificates import expiry
from openipu.vipu.domain.model import (
    IPUS_PER_MACHINE,
    Agent,
    Allocation,
    Cluster,
    Kind,
    Operation,
    Partition,
    ReadyState,
    User,
)
from openipu.vipu.domain.state import State
from openipu.vipu.fleet.status import AgentState, AgentStatus
from openipu.vipu.lifecycle.interface import Lifecycle
from openipu.vipu.metrics.catalog import CONTROLLER
from openipu.vipu.metrics.meters import Samples
from openipu.vipu.server.certificates import SOON
from openipu.vipu.storage.writer import RecordWriter

_STATES = (ReadyState.PENDING, ReadyState.ACTIVE, ReadyState.ERROR)  # of partitions that have a record
_FILES = {"database": "", "wal": "-wal"}  # suffix after the path of the database

_METRICS = (
    "vipu_records",
    "vipu_agents",
    "vipu_agent_up",
    "vipu_agent_info",
    "vipu_agent_losses_total",
    "vipu_agent_in_service",
    "vipu_agent_quarantined_ipus",
    "vipu_discovered_agents",
    "vipu_cluster_ipus",
    "vipu_cluster_allocated_ipus",
    "vipu_cluster_used_ipus",
    "vipu_cluster_unreachable_ipus",
    "vipu_allocation_ipus",
    "vipu_allocation_used_ipus",
    "vipu_allocation_free_ipus",
    "vipu_allocation_out_of_service_ipus",
    "vipu_allocation_unreachable_ipus",
    "vipu_allocation_largest_partition_ipus",
    "vipu_allocation_partitions",
    "vipu_partitions",
    "vipu_partition_operations",
    "vipu_partition_error",
    "vipu_user_certificates",
    "vipu_store_revision",
    "vipu_store_waiting_commands",
    "vipu_store_size_bytes",
    "vipu_cluster_test_running",
    "vipu_cluster_test_runs_total",
    "vipu_cluster_test_last_run_timestamp_seconds",
    "vipu_cluster_test_ok",
    "vipu_cluster_test_checks",
    "vipu_cluster_test_checks_passed",
    "vipu_cluster_test_failures",
    "vipu_cluster_test_duration_seconds",
)


@dataclass(frozen=True, slots=True)
class Records:
    """Snapshot of the records. It is taken under the lock and evaluated afterwards."""

    agents: list[Agent]
    clusters: list[Cluster]
    allocations: list[Allocation]
    partitions: list[Partition]
    users: list[User]
    occupied: Mapping[str, bytes]  # see ``domain.state.State``

    @classmethod
    def of(cls, state: State) -> Records:
        """Return a copy of the lists. Other work would delay the writer, which waits for the lock."""
        return cls(
            list(state.agents.values()),
            list(state.clusters.values()),
            list(state.allocations.values()),
            list(state.partitions.values()),
            list(state.users.values()),
            {cluster: bytes(occupied) for cluster, occupied in state.occupied.items()},
        )


@dataclass(frozen=True, slots=True)
class _Places:
    """Cluster, position and allocation of each machine."""

    cluster: dict[str, Cluster] = field(default_factory=dict)
    position: dict[str, int] = field(default_factory=dict)
    allocation: dict[str, str] = field(default_factory=dict)


class ControllerMetrics(Collector):
    """Collector that reads the controller at each scrape, in the thread of the scrape. It never blocks."""

    def __init__(self, controller: RecordWriter, lifecycle: Lifecycle, database: Path | None) -> None:
        """``database``: file of the records, None for another store."""
        self._controller = controller
        self._lifecycle = lifecycle
        self._database = database

    def collect(self) -> Iterator[Family]:
        """Return all metrics that no instrument counts."""
        with self._controller.reading() as state:
            records = Records.of(state)
        statuses = {agent.id: self._lifecycle.agent_status(agent.id) for agent in records.agents}
        samples = Samples(CONTROLLER, _METRICS)
        samples.add("vipu_discovered_agents", len(self._lifecycle.discovered()))
        add_records(samples, records, statuses)
        add_certificates(samples, records.users, time.time())
        quarantined = self._lifecycle.quarantined()
        for agent in records.agents:
            samples.add("vipu_agent_quarantined_ipus", quarantined.get(agent.id, 0).bit_count(), agent.id)
        self._add_store(samples)
        add_tests(
            samples, records.clusters, self._lifecycle.cluster_under_test(), self._lifecycle.cluster_test_results()
        )
        return samples.families()

    def _add_store(self, samples: Samples) -> None:
        samples.add("vipu_store_revision", self._controller.events.revision)
        samples.add("vipu_store_waiting_commands", self._controller.waiting)
        for name, suffix in _FILES.items() if self._database else ():
            try:
                size = Path(f"{self._database}{suffix}").stat().st_size
            except OSError:
                continue
            samples.add("vipu_store_size_bytes", size, name)


def add_records(samples: Samples, records: Records, statuses: Mapping[str, AgentStatus]) -> None:
    """Add the metrics of agents, clusters, allocations and partitions."""
    places = _Places()
    for cluster in records.clusters:
        for position, agent in enumerate(cluster.agents):
            places.cluster[agent], places.position[agent] = cluster, position
    for allocation in records.allocations:
        places.allocation.update(dict.fromkeys(allocation.agents, allocation.id))
    counts = {
        Kind.AGENT: len(records.agents),
        Kind.CLUSTER: len(records.clusters),
        Kind.ALLOCATION: len(records.allocations),
        Kind.PARTITION: len(records.partitions),
        Kind.USER: len(records.users),
    }
    for kind, count in counts.items():
        samples.add("vipu_records", count, kind)
    up = {agent for agent, status in statuses.items() if status.state is AgentState.UP}
    _add_agents(samples, records, statuses, places)
    _add_clusters(samples, records, up)
    _add_allocations(samples, records, up, places)
    _add_partitions(samples, records)


def _add_agents(samples: Samples, records: Records, statuses: Mapping[str, AgentStatus], places: _Places) -> None:
    states = Counter(status.state for status in statuses.values())
    for state in AgentState:
        samples.add("vipu_agents", states[state], state)
    for agent in records.agents:
        status = statuses[agent.id]
        cluster = places.cluster.get(agent.id)
        samples.add("vipu_agent_up", status.state is AgentState.UP, agent.id)
        samples.add("vipu_agent_in_service", not agent.out_of_service, agent.id)
        samples.add("vipu_agent_losses_total", status.losses, agent.id)
        samples.add(
            "vipu_agent_info",
            1,
            agent.id,
            agent.host,
            str(agent.port),
            cluster.id if cluster else "",
            places.allocation.get(agent.id, ""),
        )


def _add_clusters(samples: Samples, records: Records, up: set[str]) -> None:
    allocated = Counter[str]()
    for allocation in records.allocations:
        allocated[allocation.cluster] += len(allocation.agents)
    for cluster in records.clusters:
        used = sum(machine.bit_count() for machine in records.occupied[cluster.id])
        samples.add("vipu_cluster_ipus", len(cluster.agents) * IPUS_PER_MACHINE, cluster.id)
        samples.add("vipu_cluster_allocated_ipus", allocated[cluster.id] * IPUS_PER_MACHINE, cluster.id)
        samples.add("vipu_cluster_used_ipus", used, cluster.id)
        samples.add("vipu_cluster_unreachable_ipus", _unreachable(cluster.agents, up), cluster.id)


def _add_allocations(samples: Samples, records: Records, up: set[str], places: _Places) -> None:
    partitions = Counter(partition.allocation for partition in records.partitions)
    out_of_service = {agent.id for agent in records.agents if agent.out_of_service}
    for allocation in records.allocations:
        labels = allocation.cluster, allocation.id
        first, count = places.position[allocation.agents[0]], len(allocation.agents)
        occupied = bytearray(records.occupied[allocation.cluster][first : first + count])
        occupancy = placement.Occupancy(occupied, first, places.cluster[allocation.agents[0]].machines_per_ild)
        total, unused = count * IPUS_PER_MACHINE, placement.free_ipus(occupancy)
        for position, agent in enumerate(allocation.agents):
            if agent in out_of_service:
                occupied[position] = placement.FULL
        free = placement.free_ipus(occupancy)
        samples.add("vipu_allocation_ipus", total, *labels)
        samples.add("vipu_allocation_used_ipus", total - unused, *labels)
        samples.add("vipu_allocation_free_ipus", free, *labels)
        samples.add("vipu_allocation_out_of_service_ipus", unused - free, *labels)
        samples.add("vipu_allocation_unreachable_ipus", _unreachable(allocation.agents, up), *labels)
        samples.add("vipu_allocation_largest_partition_ipus", placement.largest_block(occupancy), *labels)
        samples.add("vipu_allocation_partitions", partitions[allocation.id], *labels)


def _unreachable(agents: tuple[str, ...], up: set[str]) -> int:
    return sum(agent not in up for agent in agents) * IPUS_PER_MACHINE


def _add_partitions(samples: Samples, records: Records) -> None:
    states = Counter(partition.ready for partition in records.partitions)
    for state in _STATES:
        samples.add("vipu_partitions", states[state], state.name.lower())
    operations = Counter(partition.operation for partition in records.partitions)
    for operation in Operation:
        samples.add("vipu_partition_operations", operations[operation], operation.name.lower())
    for partition in records.partitions:
        if partition.ready is ReadyState.ERROR:
            samples.add("vipu_partition_error", 1, partition.id, partition.cluster, partition.allocation)


def add_certificates(samples: Samples, users: list[User], now: float) -> None:
    """Add the numbers of users by the state of their certificates. Names of users are not in metrics."""
    states = Counter(_certificate_state(expiry(user), now) for user in users)
    for state in ("valid", "expiring", "expired", "none"):
        samples.add("vipu_user_certificates", states[state], state)


def _certificate_state(end: int | None, now: float) -> str:
    if end is None:
        return "none"
    return "expired" if end <= now else "expiring" if end <= now + SOON.total_seconds() else "valid"


def add_tests(
    samples: Samples, clusters: list[Cluster], cluster_under_test: str, results: Mapping[str, Results]
) -> None:
    """Add the metrics of cluster tests. Results are omitted when the cluster has changed since its test."""
    for cluster in clusters:
        samples.add("vipu_cluster_test_running", cluster.id == cluster_under_test, cluster.id)
        known = results.get(cluster.id)
        if known is None or known.cluster != cluster:
            continue
        for outcome, count in sorted(known.outcomes.items()):
            samples.add("vipu_cluster_test_runs_total", count, cluster.id, outcome.lower())
        samples.add("vipu_cluster_test_last_run_timestamp_seconds", known.ended, cluster.id)
        for test, verdict in known.verdicts.items():
            samples.add("vipu_cluster_test_ok", verdict.ok, cluster.id, test)
            samples.add("vipu_cluster_test_checks", verdict.total, cluster.id, test)
            samples.add("vipu_cluster_test_checks_passed", verdict.passed, cluster.id, test)
            samples.add("vipu_cluster_test_duration_seconds", verdict.duration, cluster.id, test)
            for kind, count in sorted(Counter(failure.kind for failure in verdict.failures).items()):
                samples.add("vipu_cluster_test_failures", count, cluster.id, test, kind)
