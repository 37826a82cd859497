# SPDX-License-Identifier: GPL-3.0-or-later
"""Supervision of all agents: one task per agent, in one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from typing import Any, Protocol

import grpc
import structlog

from openipu.vipu.agent_api.contract import agent as contract
from openipu.vipu.domain.deployment import Deployment
from openipu.vipu.domain.model import Agent
from openipu.vipu.fleet.agent_messages import AgentEvent, InvalidMessageError, MachineInfo
from openipu.vipu.fleet.connection import AgentConnection, ConnectLimit, describe
from openipu.vipu.fleet.status import AgentState, AgentStatus
from openipu.vipu.tls.load import ClientCredentials

MAX_SILENT_INTERVALS = 2.5  # heartbeat intervals without a heartbeat until an agent is Down
FIRST_RETRY = 0.1  # seconds; doubled with every failure
LONGEST_RETRY = 2.0
RETRIES_PER_SECOND = 128  # of all agents together; with more agents that are Down, LONGEST_RETRY grows
PATIENT = 64  # agents that gRPC tries to reach by itself; with more that are Down, only the supervisor does
HEARTBEATS_PER_SECOND = 256  # of all agents together; with more agents, the interval grows
INVALID_RETRY = 10.0  # seconds until the next connection to an agent that sent an invalid message

_log: structlog.stdlib.BoundLogger = structlog.get_logger("vipu-server")


class Watcher(Protocol):
    """Receiver of agent events. Calls run in the event loop and must not block."""

    def agent_up(self, connection: AgentConnection) -> None:
        """Handle an agent that responds again, or for the first time. Its first event follows at once."""

    def agent_event(self, connection: AgentConnection, event: AgentEvent) -> None:
        """Handle an event of an agent that is up."""

    def agent_down(self, connection: AgentConnection) -> None:
        """Handle an agent that stopped responding, or did not respond to the first connection."""


class Supervisor:
    """Connections to all agents. ``status`` works in any thread, everything else in the event loop only."""

    def __init__(
        self, watcher: Watcher, heartbeat: float, tls: ClientCredentials | None, deployment: Deployment
    ) -> None:
        """Report to ``watcher``. ``heartbeat``: interval in seconds. ``tls``: None for no TLS."""
        self._watcher = watcher
        self._heartbeat = heartbeat
        self._deployment = deployment
        self._credentials = tls
        self.connections: dict[str, AgentConnection] = {}
        self.unavailable: frozenset[str] = frozenset()
        self._limit = ConnectLimit()
        self._patient: set[str] = set()  # agents that connections wait for until they listen
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def heartbeat(self) -> float:
        """Interval of the heartbeats of new connections, in seconds."""
        return max(self._heartbeat, len(self.connections) / HEARTBEATS_PER_SECOND)

    @property
    def longest_retry(self) -> float:
        """Longest pause before an agent that is Down is called again, in seconds."""
        return max(LONGEST_RETRY, len(self.unavailable) / RETRIES_PER_SECOND)

    def status(self, agent_id: str) -> AgentStatus:
        """Return the status of an agent, UNKNOWN for one that is not registered."""
        connection = self.connections.get(agent_id)
        return connection.status if connection else AgentStatus()

    def has(self, agent: Agent) -> bool:
        """Return whether an agent with this id or endpoint is supervised, as after a change of one of them."""
        others = (connection.agent for connection in self.connections.values())
        return any(other.id == agent.id or (other.host, other.port) == (agent.host, agent.port) for other in others)

    def add(self, agent: Agent) -> AgentConnection:
        """Start to supervise an agent."""
        connection = self.connections[agent.id] = AgentConnection(
            agent, self._heartbeat, self._credentials, self._deployment, self._limit
        )
        self._tasks[agent.id] = asyncio.get_running_loop().create_task(self._supervise(connection))
        return connection

    def drop(self, agent_id: str) -> AgentConnection | None:
        """End the supervision and return the connection, which the caller must close."""
        connection = self.connections.pop(agent_id, None)
        if connection:
            self._tasks.pop(agent_id).cancel()
            self.unavailable -= {agent_id}
            connection.detach()
        return connection

    async def close(self) -> None:
        """End all supervision and close all connections."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(connection.close() for connection in self.connections.values()))

    async def _supervise(self, connection: AgentConnection) -> None:
        loop = asyncio.get_running_loop()
        failures, up_since = 0, None

        def up(info: MachineInfo) -> None:
            nonlocal up_since
            up_since = loop.time()
            self._patient.discard(connection.id)
            connection.set_status(AgentStatus(AgentState.UP, "", info, connection.status.losses))
            self.unavailable -= {connection.id}
            _log.info("agent up", agent=connection.id, host=connection.agent.host, port=connection.agent.port)
            self._watcher.agent_up(connection)

        def event(message: AgentEvent) -> None:
            self._watcher.agent_event(connection, message)

        while True:
            reason, rejects, is_invalid, up_since = "", False, False, None
            # Every other attempt fails at once and so yields a new reason; the others wait for the agent.
            patient = failures > 0 and failures % 2 == 0 and len(self._patient) < PATIENT
            connection.heartbeat = self.heartbeat
            if patient:
                self._patient.add(connection.id)
            try:
                await connection.renew()
                await connection.watch(MAX_SILENT_INTERVALS * connection.heartbeat, patient, up, event)
            except TimeoutError:
                reason = (connection.status.reason if patient else "") or "it sends no heartbeats"
            except grpc.aio.AioRpcError as error:
                reason = describe(error)
                rejects = error.code() is grpc.StatusCode.FAILED_PRECONDITION
            except InvalidMessageError as error:
                reason, is_invalid = f"it sent an invalid message: {error}", True
            except Exception:  # noqa: BLE001 - an unexpected reply must not end the supervision
                _log.exception("supervision failed", agent=connection.id)
                reason = "the controller could not process its reply"
            finally:
                self._patient.discard(connection.id)
            self._down(connection, reason, rejects)
            # An agent whose stream breaks again and again is tried less often, as one that does not respond.
            if up_since is not None and loop.time() - up_since >= LONGEST_RETRY:
                failures = 0
            if len(self.unavailable) > PATIENT:
                await connection.suspend()
            wait = INVALID_RETRY if is_invalid else min(FIRST_RETRY * 2**failures, self.longest_retry)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait * random.uniform(0.8, 1.0)):  # noqa: S311
                    await connection.retry.wait()
            connection.retry.clear()
            failures = min(failures + 1, 16)

    def _down(self, connection: AgentConnection, reason: str, rejects: bool) -> None:
        before = connection.status
        losses = before.losses + (before.state is AgentState.UP)
        connection.set_status(AgentStatus(AgentState.DOWN, reason, before.info, losses, rejects))
        if before.state is not AgentState.DOWN:
            connection.down_since = asyncio.get_running_loop().time()
            self.unavailable |= {connection.id}
            _log.warning(
                "agent down", agent=connection.id, host=connection.agent.host, port=connection.agent.port, reason=reason
            )
            try:
                self._watcher.agent_down(connection)
            except Exception:  # noqa: BLE001 - it must not end the supervision
                _log.exception("loss of agent not handled", agent=connection.id)


async def retire(
    connection: AgentConnection, deliver: Callable[[], Any], seconds: float, is_removed: Callable[[], bool]
) -> None:
    """Deliver the pending releases of a removed agent within ``seconds``, then close its connection.

    An agent that is removed, and not only supervised by another connection, loses its owner.
    """
    with contextlib.suppress(TimeoutError, grpc.aio.AioRpcError):
        async with asyncio.timeout(seconds):
            await deliver()
            if connection.up and is_removed():
                await connection.stub.GiveUp(contract.GiveUpRequest())
    await connection.close()
