# SPDX-License-Identifier: GPL-3.0-or-later
"""Connection to one agent: one gRPC channel and one stream of heartbeats."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import grpc

from openipu.process.grpc_errors import clause
from openipu.vipu.agent_api import identity
from openipu.vipu.agent_api.contract import agent as contract
from openipu.vipu.domain.deployment import Deployment
from openipu.vipu.domain.model import Agent
from openipu.vipu.fleet import agent_messages
from openipu.vipu.fleet.agent_messages import AgentEvent, InvalidMessageError, MachineInfo, Revision
from openipu.vipu.fleet.silence import Silence
from openipu.vipu.fleet.slots import Slots
from openipu.vipu.fleet.status import AgentState, AgentStatus
from openipu.vipu.fleet.token_bucket import TokenBucket
from openipu.vipu.tls.load import ClientCredentials

MAX_MESSAGE = 256 << 10  # bytes; far more than the limits of ``agent_messages`` allow in practice
EVENTS_PER_SECOND = 20.0  # of one agent, besides its heartbeats; the controller reads further ones later
EVENTS_AT_ONCE = 40
LONGEST_REORDERING = 10.0  # seconds that an event may arrive after the reply to a later call
FIRST_RESPONSE = 5.0  # seconds for the first response of an agent; longer when the heartbeat is slow
CONNECTS = 32  # concurrent connections in progress, and as many first calls
LONGEST_REASON = 400  # characters; the longest one of an agent contains three ids
SLOT_SECONDS = 0.1  # after which an agent that does not respond makes room for the next one

# Reconnect within about a second after a machine returns. gRPC also detects connections that broke silently,
# as in a power cut, when no heartbeat is due. Probes of the bandwidth would add a ping to most heartbeats, a third of
# their CPU time. Messages of agents are small, so they need no larger window.
_CHANNEL = (
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 2_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.enable_http_proxy", 0),
    ("grpc.http2.bdp_probe", 0),
)

# Parts of gRPC's messages for an established connection that broke.
_BROKEN = ("Cancelling all calls", "Socket closed", "Connection reset", "Stream removed", "Broken pipe", "RST_STREAM")

_Response = TypeVar("_Response")


def describe(error: grpc.aio.AioRpcError) -> str:
    """Return the reason why a call failed as a clause: gRPC's details without addresses and prefixes."""
    details = agent_messages.clean(error.details() or error.code().name.replace("_", " ").lower(), 2_000)
    if any(words in details for words in _BROKEN):
        return "the connection broke"
    reason = clause(details.removeprefix(identity.REJECTION))
    return reason[:LONGEST_REASON].rstrip(".") or "it rejected the connection"


class ConnectLimit:
    """Limit of concurrent connects, and of concurrent first calls to agents that have connected."""

    def __init__(self) -> None:
        self.connects = Slots(CONNECTS, SLOT_SECONDS)
        self.first_calls = Slots(CONNECTS, SLOT_SECONDS)


class AgentConnection:
    """gRPC connection to one agent."""

    def __init__(
        self,
        agent: Agent,
        heartbeat: float,
        credentials: ClientCredentials | None,
        deployment: Deployment,
        limit: ConnectLimit | None = None,
    ) -> None:
        """Create the channel; must run in the event loop. ``heartbeat``: interval in seconds.

        ``deployment``: the controller, as the agent identifies it. ``limit``: of all connections together.
        """
        self.agent = agent
        self._limit = limit or ConnectLimit()
        self.status = AgentStatus()
        self.retry = asyncio.Event()  # set to connect now
        self._identity = identity.metadata(identity.Controller(deployment.id, deployment.epoch, agent.id))
        # State of the agent that the last reply or event reported; see AgentEvent in the contract.
        self.state = Revision("", 0)
        self._recorded = 0.0  # time of the event loop
        self.down_since = 0.0  # time of the event loop; only valid while the agent is down
        self.heartbeat = heartbeat  # interval of the next stream
        self._tls = credentials
        self._open(credentials and credentials.current())
        self._is_up = asyncio.Event()
        self._status_known = asyncio.Event()  # set once the agent is up or down
        self._calls: set[asyncio.Future[Any]] = set()
        self._detached = False
        self._takeovers = 0  # calls in progress

    def _open(self, credentials: grpc.ChannelCredentials | None) -> None:
        self._suspended = False  # its channel is closed
        agent = self.agent
        address = f"[{agent.host}]:{agent.port}" if ":" in agent.host else f"{agent.host}:{agent.port}"
        self._credentials = credentials
        options = (*_CHANNEL, ("grpc.max_receive_message_length", MAX_MESSAGE))
        self._channel = (
            grpc.aio.insecure_channel(address, options=options)
            if credentials is None
            else grpc.aio.secure_channel(address, credentials, options=options)
        )
        self.stub = contract.stub(self._channel, "AgentService", self._identity)

    async def renew(self) -> None:
        """Open a new channel after ``suspend``, and when the certificate files were replaced.

        gRPC cannot change those of a channel.
        """
        credentials = self._tls and self._tls.current()
        if self._suspended or credentials is not self._credentials:
            old = self._channel
            self._open(credentials)
            await old.close()

    async def suspend(self) -> None:
        """Close the channel until ``renew``, unless a takeover waits for the agent.

        gRPC would otherwise try to connect about once per second, also without a call.
        """
        if not self._takeovers:
            self._suspended = True
            await self._channel.close()

    @property
    def id(self) -> str:
        """Id of the agent."""
        return self.agent.id

    @property
    def up(self) -> bool:
        """Return whether the agent responds."""
        return self.status.state is AgentState.UP

    def record_revision(self, state: Revision) -> None:
        """Store boot id and revision of a reply or an event."""
        self.state = Revision(state.boot_id, state.revision)
        self._recorded = asyncio.get_running_loop().time()

    def is_outdated(self, event: AgentEvent) -> bool:
        """Return whether the partitions in an event are older than the last recorded revision.

        Raises InvalidMessageError when that lasts, because the controller would ignore all events.
        """
        if event.boot_id != self.state.boot_id or event.revision >= self.state.revision:
            return False
        if asyncio.get_running_loop().time() > self._recorded + LONGEST_REORDERING:
            raise InvalidMessageError(f"its revision {event.revision} is below the earlier one, {self.state.revision}")
        return True

    def unreachable_error(self) -> str:
        """Return the error message of a partition that waits for this agent."""
        reason = self.status.reason or "no response yet"
        failure = "rejects this controller" if self.status.rejects else "does not respond"
        return f"Agent '{self.id}' at {self.agent.host}:{self.agent.port} {failure}: {reason}."

    async def watch(
        self, max_silence: float, patient: bool, up: Callable[[MachineInfo], None], event: Callable[[AgentEvent], None]
    ) -> None:
        """Follow the events of the agent until TimeoutError (silence), AioRpcError (connection lost) or
        InvalidMessageError.

        ``max_silence``: longest time between two heartbeats, in seconds.
        With ``patient``, wait until the agent listens instead of failing when the connection is rejected.
        ``up`` receives the agent's information when it responds, ``event`` each event.
        """
        request = contract.WatchRequest(heartbeat_milliseconds=round(self.heartbeat * 1000))
        first = max(FIRST_RESPONSE, max_silence)
        with contextlib.ExitStack() as stack:
            async with self._limit.connects.slot():
                call = self.stub.Watch(request, wait_for_ready=patient)
                stack.callback(call.cancel)
                async with Silence(first):
                    latest = await _read(call)
            current = agent_messages.event(latest)
            async with self._limit.first_calls.slot():
                info = await self.stub.GetInfo(contract.GetInfoRequest(), timeout=first)
                up(agent_messages.machine_info(info))
            # Replies to calls of an earlier stream cannot arrive any more.
            self.state = Revision(self.state.boot_id, 0)
            bucket = TokenBucket(EVENTS_PER_SECOND + 1 / self.heartbeat, EVENTS_AT_ONCE)
            async with Silence(max_silence) as silence:
                while True:
                    event(current)
                    if delay := bucket.delay(asyncio.get_running_loop().time()):
                        await asyncio.sleep(delay)
                    message = await _read(call)
                    silence.restart()
                    if message != latest:  # most heartbeats repeat the previous event
                        current, latest = agent_messages.event(message), message

    def set_status(self, status: AgentStatus) -> None:
        """Set the status. When the agent is not up, cancel the calls of ``call_if_up``."""
        self.status = status
        self._status_known.set()
        if self.up:
            self._is_up.set()
            self.retry.clear()
        else:
            self._is_up.clear()
            for call in self._calls:
                call.cancel()

    def detach(self) -> None:
        """End the supervision of the agent. Pending and later calls of ``call_if_up`` fail at once."""
        self._detached = True
        self._status_known.set()
        for call in self._calls:
            call.cancel()

    async def call_if_up(self, call: Callable[[AgentConnection], Awaitable[_Response]]) -> _Response:
        """Return the result of a call. Raises ConnectionError with a clause when the agent is or goes down."""
        await self._status_known.wait()
        if not self.up or self._detached:
            raise ConnectionError(self._down_reason())
        running = asyncio.ensure_future(call(self))
        self._calls.add(running)
        try:
            return await running
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if (self.up and not self._detached) or (task and task.cancelling()):
                raise
            raise ConnectionError(self._down_reason()) from None
        finally:
            self._calls.discard(running)

    def _down_reason(self) -> str:
        return "it was removed, or its endpoint has changed" if self._detached else self.status.reason

    async def take_over(self, other_agent: bool = False) -> None:
        """Make this deployment the owner of the agent, and wait for it.

        ``other_agent``: even when the machine holds partitions of another agent of this deployment. Raises
        AioRpcError, and ConnectionError when the connection is closed meanwhile.
        """
        request = contract.TakeOverRequest(other_agent=other_agent)
        rejection = None
        if self._detached:
            raise ConnectionError(self._down_reason())
        if self._suspended:
            self._open(self._tls and self._tls.current())
        channel = self._channel
        self._takeovers += 1
        try:
            await self.stub.TakeOver(request, timeout=FIRST_RESPONSE, wait_for_ready=True)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
                raise
            rejection = error  # the other agent may have been removed, and its partitions are being released
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task and task.cancelling():
                raise
            renewed = channel is not self._channel
            raise ConnectionError("its TLS files were replaced" if renewed else self._down_reason()) from None
        finally:
            self._takeovers -= 1
        if not self.up:
            self.retry.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_RESPONSE):
                await self._is_up.wait()
        if rejection and not self.up:
            raise rejection

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close()


async def _read(call: Any) -> Any:
    """Return the next message. Raises AioRpcError when the stream ends."""
    message = await call.read()
    if message is grpc.aio.EOF:
        code, details = await call.code(), await call.details()
        raise grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details or "it closed the stream")
    return message
