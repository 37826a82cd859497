# SPDX-License-Identifier: GPL-3.0-or-later
"""Takeover of an agent whose connection ends meanwhile, and the reason why it is necessary."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from openipu.vipu.agent import ownership
from openipu.vipu.agent_api.identity import REJECTION, Controller
from openipu.vipu.domain.deployment import Deployment
from openipu.vipu.domain.model import Agent
from openipu.vipu.fleet.connection import AgentConnection, describe


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


def test_a_takeover_keeps_the_channel_open() -> None:
    async def run() -> None:
        connection = AgentConnection(Agent("ag01", "127.83.255.1", 9), 1.0, None, Deployment("d" * 32, 1))
        await connection.suspend()
        call = asyncio.create_task(connection.take_over())
        await asyncio.sleep(0)  # starts the call, on a new channel
        await connection.suspend()
        await asyncio.sleep(0)
        assert not call.done()
        connection.detach()
        await connection.close()
        with pytest.raises(ConnectionError, match="it was removed"):
            await call

    asyncio.run(run())


def test_the_reason_of_agents_with_long_ids_is_complete() -> None:
    owner, caller = (Controller("d" * 16, 1, letter * 63) for letter in "ab")
    reason = ownership.rejection(owner, caller)
    status, nothing = grpc.StatusCode.FAILED_PRECONDITION, grpc.aio.Metadata()
    assert describe(grpc.aio.AioRpcError(status, nothing, nothing, f"{REJECTION}{reason}.")) == reason
