# SPDX-License-Identifier: GPL-3.0-or-later
"""Takeover of an agent whose connection ends meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from openipu.vipu.domain.deployment import Deployment
from openipu.vipu.domain.model import Agent
from openipu.vipu.fleet.connection import AgentConnection


def test_a_takeover_ends_when_the_agent_is_removed() -> None:
    async def run() -> None:
        # No agent listens there, so the call waits for it.
        connection = AgentConnection(Agent("ag01", "127.83.255.1", 9), 1.0, None, Deployment("d" * 32, 1))
        call = asyncio.create_task(connection.take_over())
        await asyncio.sleep(0)  # starts the call
        connection.detach()
        await connection.close()
        with pytest.raises(ConnectionError, match="it was removed"):
            await call
        with pytest.raises(ConnectionError, match="it was removed"):
            await connection.take_over()

    asyncio.run(run())
