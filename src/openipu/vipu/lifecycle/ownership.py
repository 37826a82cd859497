# SPDX-License-Identifier: GPL-3.0-or-later
"""Takeover of agents that belong to another deployment."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import grpc

from openipu.vipu.domain.errors import Code, RuleError, missing, quoted
from openipu.vipu.domain.model import Kind
from openipu.vipu.fleet.connection import describe
from openipu.vipu.fleet.supervisor import Supervisor

_CALLS = 32  # concurrent


async def take_over(supervisor: Supervisor, agent_ids: Sequence[str], other_agents: bool) -> dict[str, RuleError]:
    """Make this deployment the owner of agents. Return the errors of those that were not taken over, by agent.

    ``other_agents``: also of machines that hold partitions of other agents of this deployment.
    """
    limit = asyncio.Semaphore(_CALLS)

    async def one(id: str) -> RuleError | None:
        connection = supervisor.connections.get(id)
        try:
            if connection is None:
                violation = missing(Kind.AGENT, id)
                return takeover_error(id, violation.code, violation.reason)
            async with limit:
                await connection.take_over(other_agents)
        except grpc.aio.AioRpcError as error:
            late = error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            reason = (late and connection and connection.status.reason) or describe(error)
            return takeover_error(id, Code.FAILED_PRECONDITION, reason)
        except ConnectionError as error:
            return takeover_error(id, Code.FAILED_PRECONDITION, str(error))
        return None

    errors = await asyncio.gather(*map(one, agent_ids))
    return {id: error for id, error in zip(agent_ids, errors, strict=True) if error}


def takeover_error(id: str, code: Code, reason: str) -> RuleError:
    """Return the error of an agent that was not taken over. ``reason`` is a clause."""
    return RuleError(code, f"Cannot take over agent {quoted(id)}: {reason}.")
