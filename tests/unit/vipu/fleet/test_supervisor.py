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
