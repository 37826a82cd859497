# SPDX-License-Identifier: GPL-3.0-or-later
"""A rack twin in a separate process, and a controller with its partition life in this process."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import grpc

from openipu.twin.rack.contract import twin
from openipu.vipu.domain import rules
from openipu.vipu.domain.errors import RuleError
from openipu.vipu.domain.model import Agent, Cluster, Operation, Partition, Put, ReadyState, Topology
from openipu.vipu.domain.specs import AllocationSpec, PartitionSpec
from openipu.vipu.domain.state import State
from openipu.vipu.fleet.status import AgentState
from openipu.vipu.lifecycle.interface import LifecycleOptions
from openipu.vipu.lifecycle.service import LifecycleService
from openipu.vipu.storage.store import Store
from openipu.vipu.storage.writer import RecordWriter
from tests.waiting import until

Start = Callable[..., "subprocess.Popen[str]"]  # a virm-agent with these arguments

HEARTBEAT = 0.3  # seconds; shorter than in production to make tests fast


class RackProcess:
    """Process of ``openipu.twin.rack.main`` on loopback addresses with free ports."""

    def __init__(
        self, folder: Path, count: int, *, program: Sequence[str] = ("openipu.twin.rack.main",), **settings: Any
    ) -> None:
        """``program``: another module that runs the rack, with arguments before those of the rack."""
        self.socket = folder / "rack.sock"
        config = folder / "rack.json"
        machines = [
            {"agent_id": f"ag{number:02d}", "host": f"127.81.{number // 250}.{number % 250 + 1}", "port": 0}
            for number in range(1, count + 1)
        ]
        config.write_text(json.dumps({"topology": "torus", "machines": machines, **settings}))
        self.process = subprocess.Popen(
            [sys.executable, "-m", *program, "--config", str(config), "--socket", str(self.socket)],
            stdout=subprocess.DEVNULL,
        )
        until(lambda: self.process.poll() is not None or self.socket.is_socket(), 30, "the rack is up")
        assert self.process.poll() is None, "the rack process ended during its start"
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
        """Make faults; ``openipu.twin.rack.faults`` describes the syntax."""
        self._stub.MakeFaults(twin.MakeFaultsRequest(faults=lines), timeout=10)

    def close(self) -> None:
        self._channel.close()
        self.process.terminate()
        assert self.process.wait(10) == 0


class EventCounter:
    """Number of handled events by agent; every heartbeat is an event."""

    def __init__(self, lifecycle: LifecycleService) -> None:
        self.handled: Counter[str] = Counter()
        driver: Any = lifecycle._driver
        handle = driver.agent_event

        def counted(link: Any, event: Any) -> None:
            handle(link, event)
            self.handled[link.id] += 1

        driver.agent_event = counted

    def wait(self, agent_id: str, count: int) -> None:
        """Wait until ``count`` more events of an agent were handled, as time for unwanted changes to show."""
        target = self.handled[agent_id] + count
        until(lambda: self.handled[agent_id] >= target, what=f"{count} events of {agent_id}")


class Plane:
    """A controller with a database, and its partition life."""

    def __init__(self, database: Path, rack: RackProcess, **options: Any) -> None:
        fresh = not database.exists()
        self.rack = rack
        self.controller = RecordWriter(Store(database, create=True))
        self.lifecycle = LifecycleService(
            self.controller,
            LifecycleOptions(**{"heartbeat": HEARTBEAT, "partition_timeout": 3.0, "relocation_delay": 0.0, **options}),
        )
        self.closed = False
        self._events = EventCounter(self.lifecycle)
        self.events = self._events.handled
        self.history: list[tuple[str, ReadyState, Operation]] = []
        self.controller.subscribe(self._record)
        self.controller.start()
        if fresh:
            ids = tuple(agent.id for agent in rack.agents)
            self.put(*rack.agents, Cluster("cl0", ids, topology=Topology.TORUS))
            self.change(AllocationSpec("a0", "cl0", agents=ids))
        self.lifecycle.start()
        if fresh:  # an earlier database owns the agents of a shared rack
            self.lifecycle.take_over(agent.id for agent in rack.agents).result(20)
            for agent_id in {share.agent_id for share in self.lifecycle.quarantine().result(20)}:
                with contextlib.suppress(RuleError):  # of an agent that lies
                    self.lifecycle.release_quarantine(agent_id, "").result(20)

    def wait_events(self, agent_id: str, count: int) -> None:
        """Wait until ``count`` more events of an agent were handled, as time for unwanted changes to show."""
        self._events.wait(agent_id, count)

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
        until(lambda: self.partition(id).ready is ReadyState.ACTIVE, seconds, f"{id} active")

    def wait_error(self, id: str, seconds: float = 20.0) -> Partition:
        """Wait for the state ERROR, and return the record that had it: an automatic reset soon replaces it."""

        def failed() -> Partition | None:
            partition = self.partition(id)
            return partition if partition.ready is ReadyState.ERROR else None

        return until(failed, seconds, f"{id} in error")

    def wait_up(self, *ids: str) -> None:
        expected = ids or tuple(self.state.agents)
        until(lambda: all(self.status(id) is AgentState.UP for id in expected), 20, "agents up")

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
