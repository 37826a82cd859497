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


async def take_over(supervisor: Supervisor, agent_ids: Sequence[str]) -> None:
    """Make this deployment the owner of agents. Raises RuleError for the first that does not agree."""
    limit = asyncio.Semaphore(_CALLS)

    async def one(id: str) -> RuleError | None:
        connection = supervisor.connections.get(id)
        try:
            if connection is None:
                violation = missing(Kind.AGENT, id)
                return _error(id, violation.code, violation.reason)
            async with limit:
                await connection.take_over()
        except grpc.aio.AioRpcError as error:
            return _error(id, Code.FAILED_PRECONDITION, describe(error))
        except ConnectionError as error:
            return _error(id, Code.FAILED_PRECONDITION, str(error))
        return None

    for error in await asyncio.gather(*map(one, agent_ids)):
        if error:
            raise error


def _error(id: str, code: Code, reason: str) -> RuleError:
    return RuleError(code, f"Cannot take over agent {quoted(id)}: {reason}.")
