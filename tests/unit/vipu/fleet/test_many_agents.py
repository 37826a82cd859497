# SPDX-License-Identifier: GPL-3.0-or-later
"""A thousand agents at once: limits of connects, first calls, retries and heartbeats."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from openipu.vipu.agent_api.contract import agent as contract
from openipu.vipu.domain.deployment import Deployment
from openipu.vipu.domain.model import Agent
from openipu.vipu.fleet import agent_messages, connection, supervisor
from openipu.vipu.fleet.agent_messages import AgentEvent
from openipu.vipu.fleet.connection import AgentConnection
from openipu.vipu.fleet.supervisor import Supervisor

HOST = "127.83.255.2"
AGENTS = 200
DELAY = 0.01  # seconds until the agents respond; far less than a slot lasts


class Load:
    """Number of concurrent calls."""

    def __init__(self) -> None:
        self.running = self.most = self.total = 0

    async def respond(self) -> None:
        self.running += 1
        self.total += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(DELAY)
        finally:
            self.running -= 1


class Agents:
    """Service of all agents, at one address. Streams end when ``lost`` is set."""

    def __init__(self) -> None:
        self.first_events, self.first_calls = Load(), Load()
        self.intervals: set[int] = set()
        self.lost = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        """Return a handler of a call that no test expects."""

        async def reject(request: Any, context: Any) -> None:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, name)

        return reject

    async def Watch(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802 - name of the call
        self.intervals.add(request.heartbeat_milliseconds)
        await self.first_events.respond()
        for revision in (1, 1, 1, 2):
            yield contract.AgentEvent(boot_id="b", revision=revision)
        await self.lost.wait()

    async def GetInfo(self, request: Any, context: Any) -> Any:  # noqa: N802 - name of the call
        await self.first_calls.respond()
        return contract.MachineInfo(boot_id="b", num_ipus=4)


class Watcher:
    """Receiver that counts the agents that are up, and their events."""

    def __init__(self) -> None:
        self.up = 0
        self.events: list[AgentEvent] = []

    def agent_up(self, connection: AgentConnection) -> None:
        self.up += 1

    def agent_event(self, connection: AgentConnection, event: AgentEvent) -> None:
        self.events.append(event)

    def agent_down(self, connection: AgentConnection) -> None:
        self.up -= 1


@contextlib.asynccontextmanager
async def supervised(agents: Agents, watcher: Watcher) -> AsyncIterator[tuple[Supervisor, int]]:
    """Serve all agents at one port; yield their supervisor and the port."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers([contract.handler("AgentService", agents)])
    port = server.add_insecure_port(f"{HOST}:0")
    await server.start()
    fleet = Supervisor(watcher, 1.0, None, Deployment("d" * 32, 1))
    try:
        yield fleet, port
    finally:
        await fleet.close()
        await server.stop(None)


async def until(condition: Any) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.005)


def test_agents_that_return_at_once_connect_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECTS", 8)
    monkeypatch.setattr(connection, "SLOT_SECONDS", 30.0)
    monkeypatch.setattr(supervisor, "PATIENT", 0)
    monkeypatch.setattr(supervisor, "HEARTBEATS_PER_SECOND", 20)

    async def run() -> None:
        agents, watcher = Agents(), Watcher()
        async with supervised(agents, watcher) as (fleet, port):
            for number in range(AGENTS):
                fleet.add(Agent(f"ag{number}", HOST, port))
            await until(lambda: watcher.up == AGENTS)
            assert (agents.first_events.total, agents.first_calls.total) == (AGENTS, AGENTS)
            assert agents.first_events.most <= 8
            assert agents.first_calls.most <= 8
            assert agents.intervals == {AGENTS * 1000 // 20}
            agents.lost.set()  # all connections end at once
            await until(lambda: agents.first_calls.total >= 2 * AGENTS)
            assert agents.first_events.most <= 8
            assert agents.first_calls.most <= 8

    asyncio.run(run())


def test_repeated_events_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = 0
    original = agent_messages.event

    def parse(message: Any) -> AgentEvent:
        nonlocal parsed
        parsed += 1
        return original(message)

    monkeypatch.setattr(agent_messages, "event", parse)

    async def run() -> None:
        agents, watcher = Agents(), Watcher()
        async with supervised(agents, watcher) as (fleet, port):
            fleet.add(Agent("ag01", HOST, port))
            await until(lambda: len(watcher.events) == 4)
            assert [event.revision for event in watcher.events] == [1, 1, 1, 2]
            assert parsed == 2

    asyncio.run(run())


@pytest.mark.parametrize(("down", "longest"), [(0, 2.0), (256, 2.0), (1024, 8.0)])
def test_the_pause_between_retries_grows_with_the_agents_that_are_down(down: int, longest: float) -> None:
    async def run() -> None:
        watcher: Any = Watcher()
        fleet = Supervisor(watcher, 1.0, None, Deployment("d" * 32, 1))
        fleet.unavailable = frozenset(f"ag{number}" for number in range(down))
        assert fleet.longest_retry == longest

    asyncio.run(run())
