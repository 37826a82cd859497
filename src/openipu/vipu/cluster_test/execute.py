# SPDX-License-Identifier: GPL-3.0-or-later
"""Execution of cluster tests on the agents of a cluster, in the event loop of their connections."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import grpc

from openipu.shared.pod.topology import CableKind
from openipu.vipu.agent_api.contract import agent as contract
from openipu.vipu.cluster_test import cable_verdicts, link_verdicts, machine_verdicts
from openipu.vipu.cluster_test.model import Test, Verdict
from openipu.vipu.cluster_test.readings import Cables, Links, Pulses, Readings, Unreachable
from openipu.vipu.domain.model import Cluster
from openipu.vipu.fleet import agent_messages
from openipu.vipu.fleet.agent_messages import InvalidMessageError
from openipu.vipu.fleet.connection import AgentConnection, describe

CALLS = 64  # parallel calls to agents
READ_TIMEOUT = 60.0  # seconds for calls that read
WORK_TIMEOUT = 900.0  # seconds for calls that train links or run traffic; a lost agent ends them at once

_Response = TypeVar("_Response")
_Call = Callable[[AgentConnection], Awaitable[_Response]]


class TestExecutor:
    """Executor of the tests of one cluster.

    ``connections`` maps agents to their connections. An agent without a connection is Unreachable.
    """

    def __init__(self, cluster: Cluster, connections: Mapping[str, AgentConnection]) -> None:
        self._cluster = cluster
        self._connections = connections
        self._slots = asyncio.Semaphore(CALLS)
        self._tests: Mapping[Test, Callable[[], Awaitable[Verdict]]] = {
            Test.SYNC_LINK: self._sync,
            Test.CABLING: self._cabling,
            Test.IPU_LINK: self._ipu_link,
            Test.TRAFFIC: self._traffic,
            Test.GW_LINK: self._gw_link,
            Test.VERSION: self._versions,
            Test.PFC_SETTINGS: self._pfc_settings,
        }

    async def execute(self, test: Test) -> Verdict:
        """Run one test and return its verdict."""
        start = time.monotonic()
        verdict = await self._tests[test]()
        return verdict.with_duration(time.monotonic() - start)

    async def _sync(self) -> Verdict:
        ports: dict[str, list[Any]] = {agent: [] for agent in self._cluster.agents}
        for end, count in cable_verdicts.pulse_counts(self._cluster).items():
            ports[end.agent].append(contract.PulseSyncRequest.Pulses(kind=end.kind.name, port=end.port, count=count))

        async def clear(connection: AgentConnection) -> None:
            await connection.stub.ClearSync(contract.ClearSyncRequest(), timeout=READ_TIMEOUT)

        async def send(connection: AgentConnection) -> None:
            await connection.stub.PulseSync(contract.PulseSyncRequest(ports=ports[connection.id]), timeout=READ_TIMEOUT)

        async def read(connection: AgentConnection) -> Pulses:
            reply = await connection.stub.ReadSync(contract.ReadSyncRequest(), timeout=READ_TIMEOUT)
            return agent_messages.pulses(reply)

        # All agents are cleared before the first one sends, and all have sent before the first one is read.
        unreachable: dict[str, Unreachable] = {}
        for step in (clear, send):
            replies: Readings[Any] = await self._call(
                step, [agent for agent in self._cluster.agents if agent not in unreachable]
            )
            unreachable.update(
                {agent: response for agent, response in replies.items() if isinstance(response, Unreachable)}
            )
        counts = await self._call(read, [agent for agent in self._cluster.agents if agent not in unreachable])
        readings = {agent: unreachable.get(agent) or counts[agent] for agent in self._cluster.agents}
        return cable_verdicts.sync(self._cluster, readings)

    async def _cabling(self) -> Verdict:
        async def read(connection: AgentConnection) -> Cables:
            reply = await connection.stub.ReadCables(contract.ReadCablesRequest(), timeout=READ_TIMEOUT)
            return agent_messages.cables(reply)

        return cable_verdicts.cabling(self._cluster, await self._call(read))

    async def _ipu_link(self) -> Verdict:
        return link_verdicts.ipu_link(self._cluster, await self._train(CableKind.IPU_LINK))

    async def _gw_link(self) -> Verdict:
        if self._cluster.num_ilds == 1:
            return link_verdicts.gw_link(self._cluster, {})
        return link_verdicts.gw_link(self._cluster, await self._train(CableKind.GW_LINK))

    async def _train(self, kind: CableKind) -> Readings[Links]:
        async def train(connection: AgentConnection) -> Links:
            reply = await connection.stub.TrainLinks(
                contract.TrainLinksRequest(kinds=[kind.name]), timeout=WORK_TIMEOUT
            )
            return agent_messages.links(reply)

        return await self._call(train)

    async def _traffic(self) -> Verdict:
        windows = link_verdicts.window_cables(self._cluster)
        readings: dict[int, Readings[Links]] = {}
        # Windows without common machines run at the same time.
        for numbers in _disjoint_rounds([agents for agents, _ in windows]):
            results = await asyncio.gather(*(self._window(number + 1, *windows[number]) for number in numbers))
            readings.update(zip(numbers, results, strict=True))
        return link_verdicts.traffic(self._cluster, [readings[number] for number in range(len(windows))])

    async def _window(self, number: int, agents: Sequence[str], cables: Iterable[Any]) -> Readings[Links]:
        ports: dict[str, list[int]] = {agent: [] for agent in agents}
        for cable in cables:
            for end in (cable.a, cable.b):
                ports[self._cluster.agents[end.position]].append(end.port)

        async def run(connection: AgentConnection) -> Links:
            request = contract.RunTrafficRequest(traffic_test=number, ports=ports[connection.id])
            return agent_messages.links(await connection.stub.RunTraffic(request, timeout=WORK_TIMEOUT))

        return await self._call(run, agents)

    async def _versions(self) -> Verdict:
        async def read(connection: AgentConnection) -> Mapping[str, str]:
            reply = await connection.stub.GetInfo(contract.GetInfoRequest(), timeout=READ_TIMEOUT)
            return agent_messages.versions(reply)

        return machine_verdicts.versions(self._cluster, await self._call(read))

    async def _pfc_settings(self) -> Verdict:
        async def read(connection: AgentConnection) -> Mapping[str, Sequence[int]]:
            reply = await connection.stub.ReadPfc(contract.ReadPfcRequest(), timeout=READ_TIMEOUT)
            return agent_messages.pfc_classes(reply)

        return machine_verdicts.pfc_settings(self._cluster, await self._call(read))

    async def _call(self, call: _Call[_Response], agents: Sequence[str] | None = None) -> Readings[_Response]:
        """Return the replies of agents to parallel calls; the default is all agents of the cluster."""
        called = self._cluster.agents if agents is None else agents
        responses = await asyncio.gather(*(self._call_one(call, agent) for agent in called))
        return dict(zip(called, responses, strict=True))

    async def _call_one(self, call: _Call[_Response], agent: str) -> _Response | Unreachable:
        async with self._slots:
            connection = self._connections.get(agent)
            if connection is None:
                return Unreachable("it was removed")
            try:
                return await connection.call_if_up(call)
            except grpc.aio.AioRpcError as error:
                return Unreachable(describe(error))
            except (ConnectionError, InvalidMessageError) as error:
                return Unreachable(str(error))


def _disjoint_rounds(windows: Sequence[Sequence[str]]) -> list[list[int]]:
    """Return rounds of window indices such that no machine is in two windows of a round.

    Each window joins the first round that fits.
    """
    rounds: list[tuple[set[str], list[int]]] = []
    for index, agents in enumerate(windows):
        for busy, members in rounds:
            if busy.isdisjoint(agents):
                busy.update(agents)
                members.append(index)
                break
        else:
            rounds.append((set(agents), [index]))
    return [members for _, members in rounds]
