# SPDX-License-Identifier: GPL-3.0-or-later
"""Cluster tests of machines of the twin, through the agent service but without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from openipu.twin.machine.machine import MachineSpec
from openipu.twin.rack.rack import Rack
from openipu.vipu.agent.ownership import Ownership
from openipu.vipu.agent.service import AgentService
from openipu.vipu.agent_api.contract import agent as contract
from openipu.vipu.cluster_test.execute import TestExecutor
from openipu.vipu.cluster_test.model import Test, Verdict
from openipu.vipu.cluster_test.selection import skip_verdict
from openipu.vipu.domain.model import Cluster, Topology


class Stub:
    """Calls of an agent, with serialised messages."""

    def __init__(self, service: AgentService) -> None:
        self.service = service

    def __getattr__(self, method: str) -> Any:
        handler = getattr(self.service, method)

        async def call(request: Any, timeout: float) -> Any:
            reply = await handler(type(request).FromString(request.SerializeToString()), None)
            return type(reply).FromString(reply.SerializeToString())

        return call


class DirectConnection:
    """Replacement of ``fleet.connection.AgentConnection`` for the executor."""

    def __init__(self, id: str, hardware: Any) -> None:
        self.id = id
        self.hardware = hardware
        self.stub = Stub(AgentService(hardware, Ownership()))

    async def call_if_up(self, ask: Any) -> Any:
        if not self.hardware.alive:
            raise ConnectionError("it is stopped")
        return await ask(self)


class Bench:
    """Rack of the twin and its cluster."""

    def __init__(self, machines: int, ilds: int = 1, topology: Topology = Topology.MESH) -> None:
        ids = [f"ag{number:02}" for number in range(1, machines * ilds + 1)]
        self.cluster = Cluster("cl0", tuple(ids), ilds, topology)
        self.rack = Rack([MachineSpec(id, "127.0.0.1", 0) for id in ids], topology=topology, ilds=ilds)
        self.wiring = self.rack.wiring
        self._connections = {id: DirectConnection(id, machine.hardware) for id, machine in self.rack.machines.items()}

    def hardware(self, id: str) -> Any:
        return self.rack.machines[id].hardware

    def set_reply(self, id: str, method: str, reply: Any) -> None:
        """Set the reply of an agent to a call: ``reply(stub, request, timeout)``."""
        stub = self._connections[id].stub
        self._connections[id].stub = type("Odd", (type(stub),), {method: reply})(stub.service)

    def run(self, tests: Iterable[Test]) -> dict[Test, Verdict]:
        """Run the tests in one run."""
        requested = tuple(tests)
        executor = TestExecutor(self.cluster, self._connections)  # type: ignore[arg-type]

        async def execute() -> list[Verdict]:
            done: list[Verdict] = []
            for test in requested:
                done.append(skip_verdict(test, requested, done, ()) or await executor.execute(test))
            return done

        return {verdict.test: verdict for verdict in asyncio.run(execute())}


__all__ = ["Bench", "contract"]
