# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks the agents of a cluster what a test has to know. In the event loop of the agents' links."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import grpc
from ansible_collections.openipu.pod.plugins.module_utils.pod.topology import CableKind

from openipu.vipu.agent.contract import agent as contract
from openipu.vipu.agents import Link as AgentLink
from openipu.vipu.agents import plain
from openipu.vipu.cluster_test import links, verdicts
from openipu.vipu.cluster_test.plan import Test, Verdict
from openipu.vipu.cluster_test.readings import Cables, Link, Links, Pulses, Readings, Silent
from openipu.vipu.model import Cluster

CALLS = 64  # agents that are asked at once
READ_TIMEOUT = 60.0  # seconds for an agent to read something out
WORK_TIMEOUT = 900.0  # seconds for one to train links or to run traffic; one that is down ends it at once

_Answer = TypeVar("_Answer")
_Ask = Callable[[AgentLink], Awaitable[_Answer]]


class Conductor:
    """The tests of one cluster. ``links``: agent -> its link; one that has gone is Silent."""

    def __init__(self, cluster: Cluster, agent_links: Mapping[str, AgentLink]) -> None:
        """See the class."""
        self._cluster = cluster
        self._links = agent_links
        self._turns = asyncio.Semaphore(CALLS)
        self._tests: Mapping[Test, Callable[[], Awaitable[Verdict]]] = {
            Test.SYNC_LINK: self._sync,
            Test.CABLING: self._cabling,
            Test.IPU_LINK: self._ipu_link,
            Test.TRAFFIC: self._traffic,
            Test.GW_LINK: self._gw_link,
            Test.VERSION: self._versions,
            Test.PFC_SETTINGS: self._pfc_settings,
        }

    async def conduct(self, test: Test) -> Verdict:
        """Run one test."""
        began = time.monotonic()
        verdict = await self._tests[test]()
        return verdict.lasting(time.monotonic() - began)

    async def _sync(self) -> Verdict:
        ports: dict[str, list[Any]] = {agent: [] for agent in self._cluster.agents}
        for end, count in verdicts.codes(self._cluster).items():
            ports[end.agent].append(contract.PulseSyncRequest.Pulses(kind=end.kind.name, port=end.port, count=count))

        async def clear(link: AgentLink) -> None:
            await link.stub.ClearSync(contract.ClearSyncRequest(), timeout=READ_TIMEOUT)

        async def send(link: AgentLink) -> None:
            await link.stub.PulseSync(contract.PulseSyncRequest(ports=ports[link.id]), timeout=READ_TIMEOUT)

        async def read(link: AgentLink) -> Pulses:
            reply = await link.stub.ReadSync(contract.ReadSyncRequest(), timeout=READ_TIMEOUT)
            return {(_kind(item.kind), item.port): item.count for item in reply.ports}

        # All are cleared before the first one sends, and all have sent before the first one is read.
        silent: dict[str, Silent] = {}
        for step in (clear, send):
            told: Readings[Any] = await self._ask(
                step, [agent for agent in self._cluster.agents if agent not in silent]
            )
            silent.update({agent: answer for agent, answer in told.items() if isinstance(answer, Silent)})
        told = await self._ask(read, [agent for agent in self._cluster.agents if agent not in silent])
        return verdicts.sync(self._cluster, {agent: silent.get(agent) or told[agent] for agent in self._cluster.agents})

    async def _cabling(self) -> Verdict:
        async def read(link: AgentLink) -> Cables:
            reply = await link.stub.ReadCables(contract.ReadCablesRequest(), timeout=READ_TIMEOUT)
            return {(_kind(item.kind), item.port): item.serial for item in reply.ports}

        return verdicts.cabling(self._cluster, await self._ask(read))

    async def _ipu_link(self) -> Verdict:
        return links.ipu_link(self._cluster, await self._train(CableKind.IPU_LINK))

    async def _gw_link(self) -> Verdict:
        if self._cluster.num_ilds == 1:
            return links.gw_link(self._cluster, {})
        return links.gw_link(self._cluster, await self._train(CableKind.GW_LINK))

    async def _train(self, kind: CableKind) -> Readings[Links]:
        async def train(link: AgentLink) -> Links:
            reply = await link.stub.TrainLinks(contract.TrainLinksRequest(kinds=[kind.name]), timeout=WORK_TIMEOUT)
            return _states(reply)

        return await self._ask(train)

    async def _traffic(self) -> Verdict:
        windows = links.window_cables(self._cluster)
        readings: dict[int, Readings[Links]] = {}
        # Windows that share no machine run at the same time.
        for numbers in _apart([agents for agents, _ in windows]):
            results = await asyncio.gather(*(self._window(number + 1, *windows[number]) for number in numbers))
            readings.update(zip(numbers, results, strict=True))
        return links.traffic(self._cluster, [readings[number] for number in range(len(windows))])

    async def _window(self, number: int, agents: Sequence[str], cables: Iterable[Any]) -> Readings[Links]:
        ports: dict[str, list[int]] = {agent: [] for agent in agents}
        for cable in cables:
            for end in (cable.a, cable.b):
                ports[self._cluster.agents[end.position]].append(end.port)

        async def run(link: AgentLink) -> Links:
            request = contract.RunTrafficRequest(traffic_test=number, ports=ports[link.id])
            return _states(await link.stub.RunTraffic(request, timeout=WORK_TIMEOUT))

        return await self._ask(run, agents)

    async def _versions(self) -> Verdict:
        async def read(link: AgentLink) -> Mapping[str, str]:
            reply = await link.stub.GetInfo(contract.GetInfoRequest(), timeout=READ_TIMEOUT)
            return dict(sorted(reply.versions.items()))

        return verdicts.versions(self._cluster, await self._ask(read))

    async def _pfc_settings(self) -> Verdict:
        async def read(link: AgentLink) -> Mapping[str, Sequence[int]]:
            reply = await link.stub.ReadPfc(contract.ReadPfcRequest(), timeout=READ_TIMEOUT)
            return {name: list(entry.classes) for name, entry in reply.interfaces.items()}

        return verdicts.pfc_settings(self._cluster, await self._ask(read))

    async def _ask(self, ask: _Ask[_Answer], agents: Sequence[str] | None = None) -> Readings[_Answer]:
        """What agents answer, all at once; all of the cluster unless some are named."""
        asked = self._cluster.agents if agents is None else agents
        answers = await asyncio.gather(*(self._ask_one(ask, agent) for agent in asked))
        return dict(zip(asked, answers, strict=True))

    async def _ask_one(self, ask: _Ask[_Answer], agent: str) -> _Answer | Silent:
        async with self._turns:
            link = self._links.get(agent)
            if link is None:
                return Silent("it was removed")
            try:
                return await link.while_up(ask)
            except grpc.aio.AioRpcError as error:
                return Silent(plain(error))
            except (ConnectionError, _UnreadableError) as error:
                return Silent(str(error))


def _apart(windows: Sequence[Sequence[str]]) -> list[list[int]]:
    """Rounds of windows, by index: as few as it takes that no machine is in two windows of a round."""
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


class _UnreadableError(Exception):
    """An agent speaks of what is not known here; a clause."""


def _kind(number: int) -> CableKind:
    try:
        return CableKind[contract.CablePort.Kind.Name(number)]
    except (KeyError, ValueError):
        raise _UnreadableError(f"it speaks of ports of a kind {number} that is not known; is it newer?") from None


def _states(reply: Any) -> Links:
    return {item.link: Link(item.up, item.corrected_errors) for item in reply.links}
