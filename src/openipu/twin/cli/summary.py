# SPDX-License-Identifier: GPL-3.0-or-later
"""Summary of the objects of a controller, as text or JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from tabulate import tabulate

from openipu.shared.vipu import names
from openipu.shared.vipu.client import Client, partition_status
from openipu.shared.vipu.contract import admin, virmgrpc

_SHOWN_AGENTS = 5  # maximum number of listed agents that are not up


@dataclass(frozen=True)
class Agent:
    """An agent of the controller."""

    id: str
    endpoint: str
    state: str
    reason: str


@dataclass(frozen=True)
class Cluster:
    """A cluster."""

    id: str
    machines: int
    ilds: int
    topology: str


@dataclass(frozen=True)
class Allocation:
    """An allocation; ``free_runs`` has the lengths of its free runs of whole machines, longest first."""

    id: str
    cluster: str
    machines: int
    free_ipus: int
    free_runs: tuple[int, ...]


@dataclass(frozen=True)
class Partition:
    """A partition; ``operation`` is the current operation of the controller on it."""

    id: str
    allocation: str
    ipus: int
    gcds: int
    routing: str
    reconfigurable: bool
    state: str
    operation: str
    errors: tuple[str, ...]


@dataclass(frozen=True)
class Summary:
    """All objects of one controller."""

    controller: str
    version: str
    agents: tuple[Agent, ...]
    clusters: tuple[Cluster, ...]
    allocations: tuple[Allocation, ...]
    partitions: tuple[Partition, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the summary as plain data."""
        return asdict(self)

    def text(self) -> str:
        """Return the summary as text for a terminal."""
        up = [agent for agent in self.agents if agent.state == "Up"]
        lines = [
            f"V-IPU controller  {self.controller}  (version {self.version})",
            f"Agents            {len(up)} of {len(self.agents)} up",
        ]
        down = [agent for agent in self.agents if agent.state != "Up"]
        for agent in down[:_SHOWN_AGENTS]:
            reason = f": {agent.reason}" if agent.reason else ""
            lines.append(f"                  {agent.id} ({agent.endpoint}) is {agent.state}{reason}")
        if len(down) > _SHOWN_AGENTS:
            lines.append(f"                  and {len(down) - _SHOWN_AGENTS} more")
        lines += [
            "",
            _table(
                ["Cluster", "IPU-Machines", "ILDs", "IPU-Links"],
                [(c.id, c.machines, c.ilds, c.topology) for c in self.clusters],
            ),
            "",
            _table(
                ["Allocation", "Cluster", "IPU-Machines", "IPUs", "Free IPUs", "Free runs of machines"],
                [
                    (a.id, a.cluster, a.machines, a.machines * 4, a.free_ipus, " ".join(map(str, a.free_runs)) or "-")
                    for a in self.allocations
                ],
            ),
            "",
            _table(
                ["Partition", "Allocation", "IPUs", "GCDs", "Routing", "Reconfigurable", "State"],
                [
                    (p.id, p.allocation, p.ipus, p.gcds, p.routing, "yes" if p.reconfigurable else "no", _state(p))
                    for p in self.partitions
                ],
            ),
        ]
        lines += [f"{p.id}: {error}" for p in self.partitions for error in p.errors]
        return "\n".join(lines)


def _state(partition: Partition) -> str:
    return partition.state if partition.operation in ("IDLE", "") else f"{partition.state} ({partition.operation})"


def _table(headers: list[str], rows: list[tuple[Any, ...]]) -> str:
    return tabulate(rows, headers=headers, tablefmt="simple") if rows else f"No {headers[0].lower()}s."


def read(client: Client) -> Summary:
    """Read all objects of a controller. Raises VipuError."""
    version = client.call(client.version.GetVersion, virmgrpc.VersionRequest(), "get the version").version
    agents = client.call(client.admin.ListAgents, admin.ListAgentsRequest(), "list agents").agents
    clusters = client.call(client.admin.ListClusters, admin.ListClustersRequest(), "list clusters").clusters
    request = admin.ListAllocationsRequest()
    allocations = client.call(client.tenant.ListAllocations, request, "list allocations").allocations
    partitions = client.call(client.user.ListPartitions, virmgrpc.ListPartitionsRequest(), "list partitions").partitions
    return Summary(
        controller=client.connection.address,
        version=version,
        agents=tuple(_agent(agent) for agent in agents),
        clusters=tuple(_cluster(cluster.spec) for cluster in clusters),
        allocations=tuple(_allocation(allocation) for allocation in allocations),
        partitions=tuple(_partition(client, partition) for partition in partitions),
    )


def _agent(agent: Any) -> Agent:
    endpoint = f"{agent.spec.host}:{agent.spec.port}"
    return Agent(agent.spec.id, endpoint, names.AGENT_STATE.text(agent.state), agent.reason)


def _cluster(spec: Any) -> Cluster:
    return Cluster(spec.id, len(spec.agent_ids), spec.num_ilds or 1, names.TOPOLOGY.text(spec.ipu_link_topology))


def _allocation(allocation: Any) -> Allocation:
    spec = allocation.spec
    runs = tuple(allocation.free_machines)
    return Allocation(spec.id, spec.cluster_id, len(spec.agent_ids), allocation.free_ipus, runs)


def _partition(client: Client, partition: Any) -> Partition:
    spec = partition.spec
    operation, errors = "", ()
    if partition.ready_state != virmgrpc.PS_ACTIVE:  # an active partition has no operation and no errors
        status = partition_status(client, partition.id)
        operation, errors = names.OPERATION.text(status.operation_state), tuple(status.errors)
    return Partition(
        id=partition.id,
        allocation=spec.allocation_id,
        ipus=len(spec.ipus),
        gcds=spec.num_gcds,
        routing=names.ROUTING.text(spec.ipulink_routing_type).upper(),
        reconfigurable=spec.reconfigurable,
        state=names.READY.text(partition.ready_state),
        operation=operation,
        errors=errors,
    )
