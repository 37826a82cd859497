# SPDX-License-Identifier: GPL-3.0-or-later
"""Supervision of agents: one channel and one stream of heartbeats to each, in one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

import grpc
import structlog

from openipu.vipu.agent.contract import agent as contract
from openipu.vipu.model import Agent
from openipu.vipu.ports import AgentState, AgentStatus, AgentTls

SILENCE = 2.5  # heartbeats without one: Down
FIRST_ANSWER = 5.0  # seconds for an agent to answer at all; longer when the heartbeat is slow
FIRST_RETRY = 0.1  # seconds; doubled with every failure
LONGEST_RETRY = 2.0

# A machine that returns is found again within a second or so; a connection that died without a word
# (power cut) is noticed even where no heartbeat is due.
_CHANNEL = (
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 2_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_receive_message_length", 4 << 20),
)
_LAST_ERROR = re.compile(r"(?:.*last error: )?(?:[A-Z_]+: )?(?:ipv[46]:\S+: )?(?:connect: )?(.*)", re.DOTALL)

# What gRPC says in many words when a connection that stood is gone.
_BROKEN = ("Cancelling all calls", "Socket closed", "Connection reset", "Stream removed", "Broken pipe", "RST_STREAM")

_Answer = TypeVar("_Answer")

_log: structlog.stdlib.BoundLogger = structlog.get_logger("vipu-server")


class Watcher(Protocol):
    """Who is told of agents; all calls in the event loop, none may block."""

    def agent_up(self, link: Link) -> None:
        """An agent answers again, or for the first time; its first event follows at once."""

    def agent_event(self, link: Link, event: Any) -> None:
        """An ``AgentEvent`` of an agent that is up."""

    def agent_down(self, link: Link) -> None:
        """An agent that was up, or not known yet, does not answer."""


def plain(error: grpc.aio.AioRpcError) -> str:
    """Why a call failed, as a clause: what gRPC says, without its addresses and wrappings."""
    details = " ".join((error.details() or error.code().name.replace("_", " ").lower()).split())
    if any(words in details for words in _BROKEN):
        return "the connection broke"
    match = _LAST_ERROR.fullmatch(details)
    clause = match[1] if match else details
    return clause[:200].rstrip(".") or "it refused the connection"


class Link:
    """The connection to one agent."""

    def __init__(self, agent: Agent, heartbeat: float, credentials: grpc.ChannelCredentials | None) -> None:
        """Must be made in the event loop. ``heartbeat``: seconds."""
        self.agent = agent
        self.status = AgentStatus()
        # What the agent holds is known as of this; see AgentEvent in the contract.
        self.boot_id = ""
        self.revision = 0
        self._heartbeat = heartbeat
        address = f"[{agent.host}]:{agent.port}" if ":" in agent.host else f"{agent.host}:{agent.port}"
        self._channel = (
            grpc.aio.insecure_channel(address, options=_CHANNEL)
            if credentials is None
            else grpc.aio.secure_channel(address, credentials, options=_CHANNEL)
        )
        self.stub = contract.stub(self._channel, "AgentService")
        self._known = asyncio.Event()  # whether it is up or down
        self._asked: set[asyncio.Future[Any]] = set()
        self._parted = False

    @property
    def id(self) -> str:
        """The id of the agent."""
        return self.agent.id

    @property
    def up(self) -> bool:
        """Whether it answers."""
        return self.status.state is AgentState.UP

    def known_as_of(self, reply: Any) -> None:
        """Take over boot id and revision of a reply or an event."""
        self.boot_id, self.revision = reply.boot_id, reply.revision

    def outdated(self, event: Any) -> bool:
        """Whether what an event says of the partitions is older than what is known."""
        return bool(event.boot_id == self.boot_id and event.revision < self.revision)

    def unreachable(self) -> str:
        """The sentence for a partition that waits for this agent."""
        why = self.status.reason or "no answer yet"
        return f"Agent '{self.id}' at {self.agent.host}:{self.agent.port} does not answer: {why}."

    async def watch(self, patient: bool, up: Callable[[Any], None], event: Callable[[Any], None]) -> None:
        """Follow the agent until it is silent or gone, which raises TimeoutError or AioRpcError.

        ``patient`` waits for it to listen, where a connection that is refused else fails at once.
        ``up`` gets the agent's information when it answers.
        """
        request = contract.WatchRequest(heartbeat_milliseconds=round(self._heartbeat * 1000))
        call = self.stub.Watch(request, wait_for_ready=patient)
        silence = SILENCE * self._heartbeat
        try:
            first = max(FIRST_ANSWER, silence)
            message = await _read(call, first)
            up(await self.stub.GetInfo(contract.GetInfoRequest(), timeout=first))
            while True:
                event(message)
                message = await _read(call, silence)
        finally:
            call.cancel()

    def turned(self, status: AgentStatus) -> None:
        """Take over that it is up or down; what is asked ``while_up`` ends with it."""
        self.status = status
        self._known.set()
        if not self.up:
            for call in self._asked:
                call.cancel()

    def parted(self) -> None:
        """Nobody supervises it any more: whoever asks it something hears that, and is not left waiting."""
        self._parted = True
        self._known.set()
        for call in self._asked:
            call.cancel()

    async def while_up(self, ask: Callable[[Link], Awaitable[_Answer]]) -> _Answer:
        """What the agent answers; ConnectionError with a clause when it is down, or goes down meanwhile."""
        await self._known.wait()
        if not self.up or self._parted:
            raise ConnectionError(self._why())
        call = asyncio.ensure_future(ask(self))
        self._asked.add(call)
        try:
            return await call
        except asyncio.CancelledError:
            here = asyncio.current_task()
            if (self.up and not self._parted) or (here and here.cancelling()):
                raise
            raise ConnectionError(self._why()) from None
        finally:
            self._asked.discard(call)

    def _why(self) -> str:
        return "it was removed, or has another end-point now" if self._parted else self.status.reason

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close()


async def _read(call: Any, seconds: float) -> Any:
    async with asyncio.timeout(seconds):
        message = await call.read()
    if message is grpc.aio.EOF:
        code, details = await call.code(), await call.details()
        raise grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details or "it closed the stream")
    return message


class Supervisor:
    """All agents. Statuses may be read in any thread; everything else belongs to the event loop."""

    def __init__(self, watcher: Watcher, heartbeat: float, tls: AgentTls | None) -> None:
        """See the class."""
        self._watcher = watcher
        self._heartbeat = heartbeat
        self._credentials = tls and grpc.ssl_channel_credentials(tls.ca, tls.key, tls.certificate)
        self.links: dict[str, Link] = {}
        self.unavailable: frozenset[str] = frozenset()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def status(self, agent_id: str) -> AgentStatus:
        """What is known of an agent; UNKNOWN for a stranger."""
        link = self.links.get(agent_id)
        return link.status if link else AgentStatus()

    def add(self, agent: Agent) -> Link:
        """Supervise an agent."""
        link = self.links[agent.id] = Link(agent, self._heartbeat, self._credentials)
        self._tasks[agent.id] = asyncio.get_running_loop().create_task(self._supervise(link))
        return link

    def drop(self, agent_id: str) -> Link | None:
        """End the supervision; the connection stays for whoever has to say good-bye, and to close."""
        link = self.links.pop(agent_id, None)
        if link:
            self._tasks.pop(agent_id).cancel()
            self.unavailable -= {agent_id}
            link.parted()
        return link

    async def close(self) -> None:
        """End all supervision and close all connections."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(link.close() for link in self.links.values()))

    async def _supervise(self, link: Link) -> None:
        failures = 0

        def up(info: Any) -> None:
            nonlocal failures
            failures = 0
            link.turned(AgentStatus(AgentState.UP, "", info, link.status.losses))
            self.unavailable -= {link.id}
            _log.info("agent up", agent=link.id, host=link.agent.host, port=link.agent.port)
            self._watcher.agent_up(link)

        def event(message: Any) -> None:
            self._watcher.agent_event(link, message)

        while True:
            reason = ""
            try:
                # Every other try finds out anew why it does not answer; the ones between wait for it.
                await link.watch(patient=failures > 0 and failures % 2 == 0, up=up, event=event)
            except TimeoutError:
                reason = link.status.reason or "it is silent"
            except grpc.aio.AioRpcError as error:
                reason = plain(error)
            except Exception:  # noqa: BLE001 - one odd agent must not end its supervision
                _log.exception("supervision failed", agent=link.id)
                reason = "the controller could not read its answer"
            self._down(link, reason)
            await asyncio.sleep(min(FIRST_RETRY * 2**failures, LONGEST_RETRY) * random.uniform(0.8, 1.2))  # noqa: S311
            failures = min(failures + 1, 16)

    def _down(self, link: Link, reason: str) -> None:
        before = link.status
        losses = before.losses + (before.state is AgentState.UP)
        link.turned(AgentStatus(AgentState.DOWN, reason, before.info, losses))
        if before.state is not AgentState.DOWN:
            self.unavailable |= {link.id}
            _log.warning("agent down", agent=link.id, host=link.agent.host, port=link.agent.port, reason=reason)
            self._watcher.agent_down(link)


async def retire(link: Link, deliver: Callable[[], Any], seconds: float) -> None:
    """Deliver what an agent is still owed, for so long, and close its connection."""
    with contextlib.suppress(TimeoutError, grpc.aio.AioRpcError):
        async with asyncio.timeout(seconds):
            await deliver()
    await link.close()
