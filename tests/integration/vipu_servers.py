# SPDX-License-Identifier: GPL-3.0-or-later
"""Controllers for tests, in this process or a separate one, on free ports of 127.0.0.1."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import grpc

from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.twin.machine.machine import MachineSpec
from openipu.twin.rack.rack import Rack
from openipu.vipu.api.addresses import ListenAddress
from openipu.vipu.domain import rules
from openipu.vipu.domain.context import Allowed, Context
from openipu.vipu.domain.model import Change, Device, Kind, Operation, Partition, Put, ReadyState, Topology
from openipu.vipu.domain.specs import Removal
from openipu.vipu.domain.state import State
from openipu.vipu.fleet.status import AgentState, AgentStatus, DiscoveredAgent
from openipu.vipu.lifecycle.interface import LifecycleOptions
from openipu.vipu.server.controller import Server, Settings
from openipu.vipu.server.initialise import initialise
from openipu.vipu.storage.interface import Records
from tests.event_loop import LoopThread
from tests.waiting import until

# Limit for a vipu-server that starts, or ends by itself. It detects a hanging process only: busy machines are slow.
PROCESS_SECONDS = 60.0

_DEVICE = Device("127.5.1.1", 8080, 18515, 0, 2, "chip", "2.0.5", "2.4.4", "v1.3.3")


class InstantLife:
    """Partition life without agents: partitions are ACTIVE as soon as their record is durable.

    ``configures``: false leaves partitions PENDING. ``down``: agents that are Down.
    """

    configures = True

    def __init__(self, records: Records, options: LifecycleOptions) -> None:
        self.records = records
        self.down: frozenset[str] = frozenset()
        self.found: list[DiscoveredAgent] = []

    def start(self) -> None:
        self.records.subscribe(self._committed)

    def stop(self) -> None:
        pass

    def agent_status(self, agent_id: str) -> AgentStatus:
        if agent_id in self.down:
            return AgentStatus(AgentState.DOWN, "no response")
        return AgentStatus(AgentState.UP)

    def cluster_under_test(self) -> str:
        return ""

    def cluster_test(self) -> None:
        return None

    def cluster_test_results(self) -> dict[str, Any]:
        return {}

    def take_over(self, agent_ids: Any, other_agents: bool = False) -> Future[dict[str, Any]]:
        done: Future[dict[str, Any]] = Future()
        done.set_result({})
        return done

    def unavailable(self) -> frozenset[str]:
        return self.down

    def quarantined(self) -> dict[str, int]:
        return {}

    def quarantine(self) -> Future[list[Any]]:
        done: Future[list[Any]] = Future()
        done.set_result([])
        return done

    def release_quarantine(self, agent_id: str, partition_id: str) -> Future[list[Any]]:
        return self.quarantine()

    def remove_partition(self, id: str, force: bool, allowed: Allowed | None = None) -> Future[None]:
        def command(state: State) -> tuple[Sequence[Change], None]:
            return rules.remove(state, Removal(Kind.PARTITION, id, force), Context(self.down, allowed)), None

        return self.records.submit(command)

    def reset_partition(self, id: str, relocatable: bool, allowed: Allowed | None = None) -> Future[None]:
        def command(state: State) -> tuple[Sequence[Change], None]:
            record = replace(state.partitions[id], ready=ReadyState.PENDING, operation=Operation.RESETTING)
            return [Put(record)], None

        return self.records.submit(command)

    def ipu_attributes(self, agent_ids: Any) -> Future[dict[str, dict[int, dict[str, str]]]]:
        done: Future[dict[str, dict[int, dict[str, str]]]] = Future()
        up = [id for id in agent_ids if id not in self.down]
        done.set_result({id: {ipu: {"clock": "1330MHz", "ipu": str(ipu)} for ipu in range(4)} for id in up})
        return done

    def discovered(self) -> list[DiscoveredAgent]:
        return self.found

    def _committed(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if isinstance(change, Put) and isinstance(change.record, Partition) and self.configures:
                record = change.record
                if record.ready is ReadyState.PENDING:
                    self.records.submit(lambda state, record=record: (self._active(state, record), None))

    def _active(self, state: State, record: Partition) -> list[Change]:
        if state.partitions.get(record.id) is not record:
            return []
        devices = tuple(replace(_DEVICE, device_id=ipu.ipu) for ipu in record.ipus)
        return [Put(replace(record, ready=ReadyState.ACTIVE, operation=Operation.IDLE, devices=devices))]


@dataclass
class Client:
    """Stubs of all services on one channel. Call ``close`` at the end."""

    address: str
    credentials: grpc.ChannelCredentials | None = None
    channel: grpc.Channel = field(init=False)

    def __post_init__(self) -> None:
        options = [("grpc.max_receive_message_length", 64 << 20)]
        if self.credentials is None:
            self.channel = grpc.insecure_channel(self.address, options)
        else:
            self.channel = grpc.secure_channel(self.address, self.credentials, options)
        self.version = virmgrpc.stub(self.channel, "VersionService")
        self.user = virmgrpc.stub(self.channel, "UserService")
        self.admin = admin.stub(self.channel, "AdminService")
        self.tenant = admin.stub(self.channel, "TenantService")

    def close(self) -> None:
        self.channel.close()


class InProcess(Client):
    """Controller in this process, and its client."""

    def __init__(
        self,
        database: Path,
        life: Callable[[Records, LifecycleOptions], Any] | None = None,
        channel: grpc.ChannelCredentials | None = None,
        **settings: Any,
    ) -> None:
        """Start it. ``life`` replaces the partition life; ``settings``: fields of ``server.main.Settings``."""
        initialise(database)
        options = Settings(**{"database": database, "user": ListenAddress("127.0.0.1", 0), **settings})
        self.server = Server(options) if life is None else Server(options, life)
        self.endpoints = self.server.start()
        super().__init__(str(self.endpoints[0]), channel)

    @property
    def life(self) -> Any:
        """Partition life of this controller."""
        return self.server.lifecycle

    def stop(self) -> None:
        """Close the client and stop the controller."""
        self.close()
        self.server.stop(0)


class Process(Client):
    """Process ``vipu-server``, and its client."""

    def __init__(
        self, *options: str, channel: grpc.ChannelCredentials | None = None, wait: float = PROCESS_SECONDS
    ) -> None:
        """Start it with these options, on a free port by default, and wait until it is ready."""
        arguments = list(options) if "--port" in options else [*options, "--port", "0"]
        self.process = subprocess.Popen(
            command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
        )
        self.errors: list[str] = []
        lines: queue.Queue[str] = queue.Queue()
        readers = [
            threading.Thread(target=_pump, args=(self.process.stdout, lines.put), daemon=True),
            threading.Thread(target=_pump, args=(self.process.stderr, self.errors.append), daemon=True),
        ]
        for reader in readers:
            reader.start()
        try:
            self.ready = lines.get(timeout=wait)
        except queue.Empty:
            self.ready = ""
        if " listening on " not in self.ready:
            self.kill()
            readers[1].join()
            raise RuntimeError(f"vipu-server did not become ready: {''.join(self.errors)}")
        super().__init__(self.ready.split(" listening on ")[1].split(",")[0].strip(), channel)

    def kill(self) -> None:
        """Kill the process, as a power cut would."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Stop the process and return its exit status."""
        if hasattr(self, "channel"):
            self.close()
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(timeout=20)


def _pump(stream: Any, take: Callable[[str], None]) -> None:
    for line in stream:
        take(line)
    take("")  # the end


def command(*options: str) -> list[str]:
    """Return the command line of a ``vipu-server``."""
    return [sys.executable, "-m", "openipu.vipu.server.main", *options]


def environment() -> dict[str, str]:
    """Return the environment of this process without settings of servers."""
    return {name: value for name, value in os.environ.items() if not name.startswith("VIPU_")}


def run(*options: str, timeout: float = PROCESS_SECONDS) -> subprocess.CompletedProcess[str]:
    """Run a ``vipu-server`` that ends by itself."""
    return subprocess.run(command(*options), capture_output=True, text=True, timeout=timeout, env=environment())


class Machines:
    """Rack of IPU-Machines whose agents run in a thread of this process, on separate loopback addresses."""

    def __init__(self, count: int) -> None:
        """Start agents ag01… and wait until they listen."""
        specs = [MachineSpec(f"ag{n:02}", f"127.83.{n // 250}.{n % 250 + 1}", 0) for n in range(1, count + 1)]
        self._rack = Rack(specs, topology=Topology.TORUS)
        self.wiring = self._rack.wiring  # tests make and repair faults in it
        self._loop = LoopThread()
        self._loop.run(self._rack.start())
        self.agents = [
            admin.AgentSpec(id=machine.id, host=machine.server.host, port=machine.server.port, take_over=True)
            for machine in self._rack.machines.values()
        ]

    def slow(self, id: str, seconds: float) -> None:
        """Delay each response of a machine."""
        self._rack.machines[id].hardware.response_delay = seconds

    def hang(self, id: str) -> None:
        """Stop the responses of a machine, which keeps its partitions."""
        self._loop.call(self._rack.machines[id].hardware.hang)

    def heal(self, id: str) -> None:
        """Resume the responses of a machine."""
        self._loop.call(self._rack.machines[id].hardware.heal)

    def stop(self) -> None:
        """Stop all agents."""
        self._loop.run(self._rack.stop())
        self._loop.stop()


def pod(
    client: Client,
    machines: int | Machines = 16,
    allocations: dict[str, int] | None = None,
    **cluster: Any,
) -> Any:
    """Apply agents ag01…, cluster cl0 (a torus) and allocations by size (default: a1 with all machines).

    With a number of machines, no agents listen at their addresses.
    """
    if isinstance(machines, Machines):
        agents = machines.agents
    else:
        agents = [admin.AgentSpec(id=f"ag{n:02}", host=f"127.0.9.{n}") for n in range(1, machines + 1)]
    names = [agent.id for agent in agents]
    sizes = {"a1": len(agents)} if allocations is None else allocations
    reply = client.admin.Apply(
        admin.ApplyRequest(
            agents=agents,
            clusters=[admin.ClusterSpec(**{"id": "cl0", "agent_ids": names, "ipu_link_topology": 2, **cluster})],
            allocations=[admin.AllocationSpec(id=id, cluster_id="cl0", size=size) for id, size in sizes.items()],
        )
    )
    assert reply.applied, reply.results
    release_shares(client)
    return reply


def listed(client: Client) -> set[str]:
    """Return the partitions of a controller."""
    reply = client.user.ListPartitions(virmgrpc.ListPartitionsRequest(), timeout=10)
    return {each.id for each in reply.partitions}


def release_shares(client: Client, **call: Any) -> None:
    """Release the shares that earlier deployments left on shared machines."""
    held = client.admin.ListQuarantine(admin.ListQuarantineRequest(), **call).shares
    for agent in {share.agent_id for share in held}:
        client.admin.ReleaseQuarantine(admin.ReleaseQuarantineRequest(agent_id=agent), **call)


def partition(id: str, size: int = 1, allocation: str = "a1", **fields: Any) -> Any:
    """Return a request to create a partition."""
    requirements = virmgrpc.PartitionRequirements(id=id, size=size, allocation_id=allocation, **fields)
    return virmgrpc.CreatePartitionRequest(requirements=requirements)


def ready_state(client: Client, id: str, **call: Any) -> int:
    """Return the ready state of a partition."""
    request = virmgrpc.GetPartitionStatusRequest(partition_id=id)
    state: int = client.user.GetPartitionStatus(request, **call).status.ready_state
    return state


def wait_active(client: Client, id: str, seconds: float = 10.0, **call: Any) -> None:
    """Wait until a partition is ACTIVE."""
    until(lambda: ready_state(client, id, **call) == virmgrpc.PS_ACTIVE, seconds)
