# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's tests against the twin's machines by way of the agent service, without a network between."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from openipu.twin.rack import MachineSpec, Rack
from openipu.vipu.agent.contract import agent as contract
from openipu.vipu.agent.service import AgentService
from openipu.vipu.cluster_test.conduct import Conductor
from openipu.vipu.cluster_test.plan import Test, Verdict, skipped
from openipu.vipu.model import Cluster, Topology


class Stub:
    """The calls of an agent, through messages as on the wire."""

    def __init__(self, service: AgentService) -> None:
        self.service = service

    def __getattr__(self, method: str) -> Any:
        handler = getattr(self.service, method)

        async def call(request: Any, timeout: float) -> Any:
            reply = await handler(type(request).FromString(request.SerializeToString()), None)
            return type(reply).FromString(reply.SerializeToString())

        return call


class DirectLink:
    """What ``agents.Link`` is to the conductor."""

    def __init__(self, id: str, hardware: Any) -> None:
        self.id = id
        self.hardware = hardware
        self.stub = Stub(AgentService(hardware))

    async def while_up(self, ask: Any) -> Any:
        if not self.hardware.alive:
            raise ConnectionError("it is stopped")
        return await ask(self)


class Bench:
    """A rack of the twin and its cluster."""

    def __init__(self, machines: int, ilds: int = 1, topology: Topology = Topology.MESH) -> None:
        ids = [f"ag{number:02}" for number in range(1, machines * ilds + 1)]
        self.cluster = Cluster("cl0", tuple(ids), ilds, topology)
        self.rack = Rack([MachineSpec(id, "127.0.0.1", 0) for id in ids], topology=topology, ilds=ilds)
        self.wiring = self.rack.wiring
        self._links = {id: DirectLink(id, machine.hardware) for id, machine in self.rack.machines.items()}

    def hardware(self, id: str) -> Any:
        return self.rack.machines[id].hardware

    def answer(self, id: str, method: str, reply: Any) -> None:
        """Let an agent answer a call with ``reply(stub, request, timeout)``."""
        stub = self._links[id].stub
        self._links[id].stub = type("Odd", (type(stub),), {method: reply})(stub.service)

    def run(self, tests: Iterable[Test]) -> dict[Test, Verdict]:
        """All of these tests in one run."""
        asked = tuple(tests)
        conductor = Conductor(self.cluster, self._links)  # type: ignore[arg-type]

        async def conduct() -> list[Verdict]:
            done: list[Verdict] = []
            for test in asked:
                done.append(skipped(test, asked, done, ()) or await conductor.conduct(test))
            return done

        return {verdict.test: verdict for verdict in asyncio.run(conduct())}


__all__ = ["Bench", "contract"]
