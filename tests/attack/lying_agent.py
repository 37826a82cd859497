# SPDX-License-Identifier: GPL-3.0-or-later
"""Agents that speak the protocol faithfully, except for one lie."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from openipu.vipu.agent_api import identity
from openipu.vipu.agent_api.contract import agent as contract
from openipu.vipu.domain.model import Agent
from openipu.vipu.fleet import supervisor
from tests.integration.agents.agents_support import Plane

HEARTBEAT = 0.2  # seconds

Lie = Callable[[Any], None]
"""Function that changes the message which an honest agent would send."""


def held_share(share: Any, context: Any) -> Any:
    """Return the report of a configured share."""
    controller = identity.caller(context.invocation_metadata())
    assert controller is not None
    return contract.HeldShare(
        partition_id=share.partition_id,
        ipus=[placed.ipu for placed in share.ipus],
        deployment=controller.deployment,
        epoch=controller.epoch,
    )


class LyingAgent:
    """Agent with the IPUs 0 to 3 of one machine. ``lies``: name of a message -> lie."""

    def __init__(self, id: str, host: str) -> None:
        self.lies: dict[str, Lie] = {}
        self.held: dict[str, Any] = {}  # partition -> its HeldShare message
        self.calls: list[str] = []
        self._host = host
        self._boot_id = f"boot-{id}"
        self._revision = 0
        self._stopped = threading.Event()
        self._server = grpc.server(ThreadPoolExecutor(16), options=[("grpc.so_reuseport", 0)])
        self._server.add_generic_rpc_handlers([contract.handler("AgentService", self)])
        self.agent = Agent(id, host, self._server.add_insecure_port(f"{host}:0"))
        self._server.start()

    def stop(self) -> None:
        self._stopped.set()
        self._server.stop(None).wait(10)

    def _send(self, message: Any) -> Any:
        self.calls.append(type(message).__name__)
        if lie := self.lies.get(type(message).__name__):
            lie(message)
        return message

    def Watch(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        while context.is_active() and not self._stopped.is_set():
            event = contract.AgentEvent(boot_id=self._boot_id, shares=list(self.held.values()), revision=self._revision)
            yield self._send(event)
            self._stopped.wait(0 if "flood" in self.lies else request.heartbeat_milliseconds / 1000)

    def GetInfo(self, request: Any, context: Any) -> Any:  # noqa: N802
        fact = contract.Fact(name="Platform", value="ipum-p2")
        ipus = [contract.IpuInfo(ipu=ipu, facts=[fact]) for ipu in range(4)]
        versions = {"GWSW": "2.0.5"}
        return self._send(
            contract.MachineInfo(boot_id=self._boot_id, num_ipus=4, facts=[fact], ipus=ipus, versions=versions)
        )

    def TakeOver(self, request: Any, context: Any) -> Any:  # noqa: N802
        return contract.TakeOverReply()

    def GiveUp(self, request: Any, context: Any) -> Any:  # noqa: N802
        return contract.GiveUpReply()

    def ListIpuAttributes(self, request: Any, context: Any) -> Any:  # noqa: N802
        reply = contract.ListIpuAttributesReply()
        for ipu in range(4):
            reply.ipus[ipu].attributes["clock"] = "1330MHz"
        return self._send(reply)

    def Configure(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._revision += 1
        reply = contract.ConfigureReply(boot_id=self._boot_id, revision=self._revision)
        for share in request.shares:
            self.held[share.partition_id] = held_share(share, context)
            result = reply.results.add(partition_id=share.partition_id, ipuof_server_version="v1.3.3")
            for placed in share.ipus:
                result.devices.add(
                    ip=self._host,
                    server_port=10100 + placed.ipu,
                    rdma_port=10200 + placed.ipu,
                    device_id=placed.ipu,
                    ipu_id=placed.ipu,
                    ipu_arch_id=2,
                    chip_id="chip",
                )
        return self._send(reply)

    def Release(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._revision += 1
        reply = contract.ReleaseReply(boot_id=self._boot_id, revision=self._revision)
        for id in request.partition_ids:
            self.held.pop(id, None)
            reply.results.add(partition_id=id)
        return self._send(reply)

    def ReadCables(self, request: Any, context: Any) -> Any:  # noqa: N802
        reply = contract.ReadCablesReply()
        reply.ports.add(kind="IPU_LINK", port=1, serial="cable-1")
        return self._send(reply)

    def TrainLinks(self, request: Any, context: Any) -> Any:  # noqa: N802
        reply = contract.TrainLinksReply()
        for number in range(16):
            reply.links.add(link=f"internal{number}", up=True)
        return self._send(reply)

    def ClearSync(self, request: Any, context: Any) -> Any:  # noqa: N802
        return contract.ClearSyncReply()

    def PulseSync(self, request: Any, context: Any) -> Any:  # noqa: N802
        return contract.PulseSyncReply()

    def ReadSync(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._send(contract.ReadSyncReply())

    def RunTraffic(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._send(contract.RunTrafficReply())

    def ReadPfc(self, request: Any, context: Any) -> Any:  # noqa: N802
        reply = contract.ReadPfcReply()
        reply.interfaces["eth0"].classes.extend(range(8))
        return self._send(reply)


class LyingRack(SimpleNamespace):
    """Rack of two agents. ``agents`` has the interface of ``agents_support.RackProcess``."""

    def __init__(self) -> None:
        self.liar = LyingAgent("ag01", "127.84.0.1")
        self.honest = LyingAgent("ag02", "127.84.0.2")
        super().__init__(agents=[self.liar.agent, self.honest.agent])

    def stop(self) -> None:
        self.liar.stop()
        self.honest.stop()


@pytest.fixture
def rack(monkeypatch: pytest.MonkeyPatch) -> Iterator[LyingRack]:
    """Yield a rack. Its agents are never silent, however busy the test machine is."""
    monkeypatch.setattr(supervisor, "MAX_SILENT_INTERVALS", 100)
    made = LyingRack()
    yield made
    made.stop()


@pytest.fixture
def plane(tmp_path: Path, rack: LyingRack) -> Iterator[Plane]:
    """Yield the controller of a rack."""
    made = Plane(tmp_path / "vipu.db", rack, heartbeat=HEARTBEAT)
    yield made
    made.close()
