# SPDX-License-Identifier: GPL-3.0-or-later
"""Controllers for tests: in this process or in one of their own, always on free ports of 127.0.0.1."""

from __future__ import annotations

import asyncio
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
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin, virmgrpc
from waiting import until

from openipu.twin.rack import MachineSpec, Rack
from openipu.vipu import rules
from openipu.vipu.checks import Context
from openipu.vipu.initialise import initialise
from openipu.vipu.model import Change, Device, Kind, Operation, Partition, Put, Ready, State, Topology
from openipu.vipu.ports import AgentState, AgentStatus, DiscoveredAgent, LifecycleOptions, Records
from openipu.vipu.server import Server, Settings
from openipu.vipu.services import Listen
from openipu.vipu.specs import Removal

_DEVICE = Device("127.5.1.1", 8080, 18515, 0, 2, "chip", "2.0.5", "2.4.4", "v1.3.3")


class InstantLife:
    """A partition life whose machines answer at once: everything is ACTIVE as soon as it is durable.

    ``configures`` off leaves partitions PENDING; ``down`` are the agents that are Down.
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
            return AgentStatus(AgentState.DOWN, "no answer")
        return AgentStatus(AgentState.UP)

    def under_test(self) -> str:
        return ""

    def unavailable(self) -> frozenset[str]:
        return self.down

    def remove_partition(self, id: str, force: bool, allowed: frozenset[str] | None = None) -> Future[None]:
        def command(state: State) -> tuple[Sequence[Change], None]:
            return rules.remove(state, Removal(Kind.PARTITION, id, force), Context(self.down, allowed)), None

        return self.records.submit(command)

    def reset_partition(self, id: str, relocatable: bool, allowed: frozenset[str] | None = None) -> Future[None]:
        def command(state: State) -> tuple[Sequence[Change], None]:
            record = replace(state.partitions[id], ready=Ready.PENDING, operation=Operation.RESETTING)
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
                if record.ready is Ready.PENDING:
                    self.records.submit(lambda state, record=record: (self._active(state, record), None))

    def _active(self, state: State, record: Partition) -> list[Change]:
        if state.partitions.get(record.id) is not record:
            return []
        devices = tuple(replace(_DEVICE, device_id=ipu.ipu) for ipu in record.ipus)
        return [Put(replace(record, ready=Ready.ACTIVE, operation=Operation.IDLE, devices=devices))]


@dataclass
class Client:
    """Stubs on one channel; close it."""

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
    """A controller in this process, and a client of it."""

    def __init__(
        self,
        database: Path,
        life: Callable[[Records, LifecycleOptions], Any] | None = None,
        channel: grpc.ChannelCredentials | None = None,
        **settings: Any,
    ) -> None:
        """``life`` replaces the partition life; ``settings`` are fields of ``server.Settings``."""
        initialise(database)
        wanted = Settings(**{"database": database, "user": Listen("127.0.0.1", 0), **settings})
        self.server = Server(wanted) if life is None else Server(wanted, life)
        self.endpoints = self.server.start()
        super().__init__(str(self.endpoints[0]), channel)

    @property
    def life(self) -> Any:
        """The partition life of this controller."""
        return self.server.lifecycle

    def stop(self) -> None:
        """Close the client and end the controller."""
        self.close()
        self.server.stop(0)


class Process(Client):
    """A ``vipu-server`` process, and a client of it."""

    def __init__(self, *options: str, channel: grpc.ChannelCredentials | None = None, wait: float = 20.0) -> None:
        """Start it with these options (and a free port unless one is among them), and wait until it is ready."""
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
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Ask it to end; the exit status."""
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
    """The command line of a ``vipu-server``."""
    return [sys.executable, "-m", "openipu.vipu.server", *options]


def environment() -> dict[str, str]:
    """This process's environment without settings of servers."""
    return {name: value for name, value in os.environ.items() if not name.startswith("VIPU_")}


def run(*options: str, timeout: float = 20.0) -> subprocess.CompletedProcess[str]:
    """A ``vipu-server`` that is expected to end by itself."""
    return subprocess.run(command(*options), capture_output=True, text=True, timeout=timeout, env=environment())


class Machines:
    """A rack of IPU-Machines with their agents in a thread of this process, on loopback addresses of its own."""

    def __init__(self, count: int) -> None:
        """Start agents ag01… and wait until they listen."""
        specs = [MachineSpec(f"ag{n:02}", f"127.83.{n // 250}.{n % 250 + 1}", 0) for n in range(1, count + 1)]
        self._rack = Rack(specs, topology=Topology.TORUS)
        self.wiring = self._rack.wiring  # to be spoiled, and repaired
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rack")
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._rack.start(), self._loop).result(30)
        self.agents = [
            admin.AgentSpec(id=machine.id, host=machine.server.host, port=machine.server.port)
            for machine in self._rack.machines.values()
        ]

    def slow(self, id: str, seconds: float) -> None:
        """Let a machine take so much longer for each answer."""
        self._rack.machines[id].hardware.slowness = seconds

    def stop(self) -> None:
        """Stop all of them."""
        asyncio.run_coroutine_threadsafe(self._rack.stop(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


def pod(
    client: Client,
    machines: int | Machines = 16,
    allocations: dict[str, int] | None = None,
    **cluster: Any,
) -> Any:
    """Apply agents ag01…, cluster cl0 (a torus) and allocations by size (a1 with everything unless given).

    With a number of machines nothing listens at the addresses of their agents.
    """
    if isinstance(machines, Machines):
        agents = machines.agents
    else:
        agents = [admin.AgentSpec(id=f"ag{n:02}", host=f"127.2.1.{n}") for n in range(1, machines + 1)]
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
    return reply


def partition(id: str, size: int = 1, allocation: str = "a1", **fields: Any) -> Any:
    """A request to create a partition."""
    requirements = virmgrpc.PartitionRequirements(id=id, size=size, allocation_id=allocation, **fields)
    return virmgrpc.CreatePartitionRequest(requirements=requirements)


def ready_state(client: Client, id: str, **call: Any) -> int:
    """The ready state of a partition."""
    request = virmgrpc.GetPartitionStatusRequest(partition_id=id)
    state: int = client.user.GetPartitionStatus(request, **call).status.ready_state
    return state


def wait_active(client: Client, id: str, seconds: float = 10.0) -> None:
    """Wait until a partition is ACTIVE."""
    until(lambda: ready_state(client, id) == virmgrpc.PS_ACTIVE, seconds)
