# SPDX-License-Identifier: GPL-3.0-or-later
"""Supervision of agents when its receiver fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from openipu.vipu.domain.deployment import Deployment
from openipu.vipu.domain.model import Agent
from openipu.vipu.fleet.connection import AgentConnection
from openipu.vipu.fleet.supervisor import Supervisor


class FailingWatcher:
    """Receiver that cannot handle an agent that is down."""

    def __init__(self) -> None:
        self.called = asyncio.Event()

    def agent_down(self, connection: AgentConnection) -> None:
        self.called.set()
        raise ValueError("unexpected")


def test_an_error_of_the_receiver_does_not_end_the_supervision(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = 0

    async def renew(self: AgentConnection) -> None:
        nonlocal attempts
        attempts += 1

    monkeypatch.setattr(AgentConnection, "renew", renew)

    async def run() -> None:
        watcher: Any = FailingWatcher()
        supervisor = Supervisor(watcher, 1.0, None, Deployment("d" * 32, 1))
        connection = supervisor.add(Agent("ag01", "127.83.255.1", 9))  # no agent listens there
        try:
            async with asyncio.timeout(20):
                await watcher.called.wait()
                while attempts < 2:
                    connection.retry.set()
                    await asyncio.sleep(0.01)
        finally:
            await supervisor.close()

    asyncio.run(run())


@pytest.mark.parametrize(("seconds_up", "longest"), [(3.0, 0.1), (0.5, 2.0)])
def test_the_pause_before_a_new_connection(monkeypatch: pytest.MonkeyPatch, seconds_up: float, longest: float) -> None:
    """An agent that was up for some time is called again at once, one that breaks at once is not."""
    before, watches, pauses = 7, 0, []

    class Clock(asyncio.SelectorEventLoop):
        jumped = 0.0

        def time(self) -> float:
            return super().time() + self.jumped

    async def watch(self: AgentConnection, max_silence: float, patient: bool, up: Any, event: Any) -> None:
        nonlocal watches
        watches += 1
        if watches == before:
            up(None)
            loop = asyncio.get_running_loop()
            assert isinstance(loop, Clock)
            loop.jumped += seconds_up
        raise TimeoutError

    async def renew(self: AgentConnection) -> None:
        pass

    class Idle:
        def __getattr__(self, name: str) -> Any:
            return lambda *arguments: None

    original = asyncio.timeout

    def timeout(seconds: float) -> Any:
        if watches == before:
            pauses.append(seconds)
        return original(seconds)

    monkeypatch.setattr(AgentConnection, "watch", watch)
    monkeypatch.setattr(AgentConnection, "renew", renew)
    monkeypatch.setattr(asyncio, "timeout", timeout)

    async def run() -> None:
        watcher: Any = Idle()
        supervisor = Supervisor(watcher, 1.0, None, Deployment("d" * 32, 1))
        connection = supervisor.add(Agent("ag01", "127.83.255.1", 9))
        while watches <= before:
            connection.retry.set()
            await asyncio.sleep(0)
        await supervisor.close()

    with asyncio.Runner(loop_factory=Clock) as runner:
        runner.run(run())
    assert 0.8 * longest <= pauses[0] <= longest
