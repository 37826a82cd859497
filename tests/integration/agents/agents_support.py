# SPDX-License-Identifier: GPL-3.0-or-later
"""A rack twin in a process of its own, and a controller with its partition life in this one."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import grpc
from waiting import until

from openipu.twin.contract import twin
from openipu.vipu import rules
from openipu.vipu.controller import Controller
from openipu.vipu.lifecycle import Lifecycle
from openipu.vipu.model import Agent, Cluster, Operation, Partition, Put, Ready, State, Topology
from openipu.vipu.ports import AgentState, LifecycleOptions
from openipu.vipu.specs import AllocationSpec, PartitionSpec
from openipu.vipu.store import Store

Start = Callable[..., "subprocess.Popen[str]"]  # a virm-agent with these arguments

HEARTBEAT = 0.3  # seconds: what takes seconds in production takes tenths of them here


def free_port(host: str, kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


class RackProcess:
    """``python -m openipu.twin.rack`` on loopback addresses with free ports."""

    def __init__(self, folder: Path, count: int, **settings: Any) -> None:
        self.socket = folder / "rack.sock"
        config = folder / "rack.json"
        machines = [
            {"agent_id": f"ag{number:02d}", "host": f"127.81.{number // 250}.{number % 250 + 1}", "port": 0}
            for number in range(1, count + 1)
        ]
        config.write_text(json.dumps({"topology": "torus", "machines": machines, **settings}))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "openipu.twin.rack", "--config", str(config), "--socket", str(self.socket)],
            stdout=subprocess.DEVNULL,
        )
        until(lambda: self.process.poll() is not None or self.socket.is_socket(), 30, "rack is up")
        assert self.process.poll() is None, "the rack ended at once"
        self._channel = grpc.insecure_channel(f"unix:{self.socket}")
        self._stub = twin.stub(self._channel, "TwinService")
        self.agents = [Agent(machine.agent_id, machine.host, machine.port) for machine in self.machines()]

    def machines(self) -> list[Any]:
        return list(self._stub.ListMachines(twin.ListMachinesRequest(), timeout=10, wait_for_ready=True).machines)

    def held(self, agent_id: str) -> list[str]:
        return next(list(machine.partition_ids) for machine in self.machines() if machine.agent_id == agent_id)

    def stop_machines(self, *ids: str) -> None:
        self._stub.StopMachines(twin.MachineRequest(agent_ids=ids), timeout=10)

    def start_machines(self, *ids: str) -> None:
        self._stub.StartMachines(twin.MachineRequest(agent_ids=ids), timeout=10)

    def fault(self, *lines: str) -> None:
        """Make faults, see ``openipu.twin.faults``."""
        self._stub.MakeFaults(twin.MakeFaultsRequest(faults=lines), timeout=10)

    def close(self) -> None:
        self._channel.close()
        self.process.terminate()
        assert self.process.wait(10) == 0


class Plane:
    """A controller on a database, and its partition life."""

    def __init__(self, database: Path, rack: RackProcess, **options: Any) -> None:
        fresh = not database.exists()
        self.rack = rack
        self.controller = Controller(Store(database, create=True))
        self.lifecycle = Lifecycle(
            self.controller, LifecycleOptions(**{"heartbeat": HEARTBEAT, "partition_timeout": 3.0, **options})
        )
        self.closed = False
        self.heard: Counter[str] = Counter()  # events by agent, of which every heartbeat is one
        self._count_events()
        self.history: list[tuple[str, Ready, Operation]] = []
        self.controller.subscribe(self._record)
        self.controller.start()
        if fresh:
            ids = tuple(agent.id for agent in rack.agents)
            self.put(*rack.agents, Cluster("cl0", ids, topology=Topology.TORUS))
            self.change(AllocationSpec("a0", "cl0", agents=ids))
        self.lifecycle.start()

    def _count_events(self) -> None:
        driver: Any = self.lifecycle._driver
        take = driver.agent_event

        def counted(link: Any, event: Any) -> None:
            take(link, event)
            self.heard[link.id] += 1

        driver.agent_event = counted

    def hear(self, agent_id: str, heartbeats: int) -> None:
        """Wait until so many more events of an agent were dealt with: time for what must not happen."""
        wanted = self.heard[agent_id] + heartbeats
        until(lambda: self.heard[agent_id] >= wanted, what=f"{agent_id} is heard")

    def _record(self, changes: Sequence[Any]) -> None:
        self.history += [
            (change.record.id, change.record.ready, change.record.operation)
            for change in changes
            if isinstance(change, Put) and isinstance(change.record, Partition)
        ]

    def put(self, *records: Any) -> None:
        self.controller.submit(lambda state: ([Put(record) for record in records], None)).result(10)

    def change(self, spec: Any) -> None:
        context = rules.Context(unavailable=self.lifecycle.unavailable())
        self.controller.submit(lambda state: (rules.create(state, spec, context), None)).result(10)

    def create(self, id: str, size: int, **options: Any) -> None:
        self.change(PartitionSpec(id, size, allocation="a0", **options))

    @property
    def state(self) -> State:
        return self.controller.state

    def partition(self, id: str) -> Partition:
        return self.state.partitions[id]

    def agents_of(self, id: str) -> list[str]:
        with self.controller.reading() as state:
            return sorted({agent for agent, _ in state.machines_of(state.partitions[id])})

    def wait_active(self, id: str, seconds: float = 20.0) -> None:
        until(lambda: self.partition(id).ready is Ready.ACTIVE, seconds, f"{id} active")

    def wait_error(self, id: str, seconds: float = 20.0) -> Partition:
        until(lambda: self.partition(id).ready is Ready.ERROR, seconds, f"{id} in error")
        return self.partition(id)

    def wait_up(self, *ids: str) -> None:
        wanted = ids or tuple(self.state.agents)
        until(lambda: all(self.status(id) is AgentState.UP for id in wanted), 20, "agents up")

    def wait_down(self, id: str) -> None:
        until(lambda: self.status(id) is AgentState.DOWN, 20, f"{id} down")

    def status(self, id: str) -> AgentState:
        return self.lifecycle.agent_status(id).state

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self.lifecycle.stop()
        self.controller.stop()
