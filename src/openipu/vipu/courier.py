# SPDX-License-Identifier: GPL-3.0-or-later
"""Bringing shares and releases to agents: one call per agent at a time, which takes all that waits for it."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any, Protocol

import grpc
import structlog

from openipu.vipu.agent.contract import agent as contract
from openipu.vipu.agents import Link, plain
from openipu.vipu.model import MOST_PARTITIONS_PER_CALL, Operation, Partition

CALLS = 32  # at once, to all agents: what waits for its turn meanwhile travels together
QUICK = 0.05  # seconds after which a call does not count any more: bringing up real IPUs takes many
RETRY = 1.0  # seconds until an agent that is up, but did not answer a call, is called again

_UNANSWERED = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)

_log: structlog.stdlib.BoundLogger = structlog.get_logger("vipu-server")


class Drive:
    """One try to bring a partition to what its record says, at all of its agents."""

    __slots__ = ("devices", "done", "indices", "record", "refused", "timer", "tried", "waiting")

    def __init__(self, record: Partition, indices: dict[str, list[int]]) -> None:
        """``indices``: agent -> which of ``record.ipus`` are on its machine."""
        self.record = record
        self.indices = indices
        self.waiting = set(indices)  # agents that have not answered yet
        self.tried: set[str] = set()  # agents that were asked already, and may have done it
        self.refused: set[str] = set()  # agents that would not let go, and are going to be asked again
        self.devices: dict[str, Any] = {}  # agent -> ShareResult
        self.timer: asyncio.TimerHandle | None = None
        self.done = False

    @property
    def removes(self) -> bool:
        """Whether it takes the partition off its machines."""
        return self.record.operation is Operation.REMOVING

    def share(self, agent_id: str) -> Any:
        """The message for one agent.

        The first one brings the IPUs up anew, so that nothing of a predecessor of the same name stays.
        """
        record = self.record
        share = contract.PartitionShare(
            partition_id=record.id,
            ipulink_routing_type=record.routing,
            gw_routing_type=record.gw_routing,
            sync_type=record.sync_type,
            reconfigurable=record.reconfigurable,
            reset=agent_id not in self.tried,
        )
        for index in self.indices[agent_id]:
            placed = record.ipus[index]
            share.ipus.add(
                ipu=placed.ipu,
                routing_id=placed.routing_id,
                ipulink_segment_id=placed.ild_routing_id,
                gcd_id=record.gcd_of(index),
            )
        return share


class Receiver(Protocol):
    """Who is told what agents answered; an empty error is success."""

    def share_answered(self, drive: Drive, agent_id: str, result: Any) -> None:
        """An agent has brought its share up, or refused it."""

    def release_answered(self, partition_id: str, agent_id: str, error: str) -> None:
        """A partition is off a machine, or an agent refused to take it off."""

    def call_answered(self, method: str, code: grpc.StatusCode, seconds: float) -> None:
        """A call of an agent has ended, with this code and after so long."""


class Turns:
    """Lets couriers call in the order in which they asked, a bounded number at once."""

    def __init__(self) -> None:
        """See the class."""
        self._queue: deque[Courier] = deque()
        self._running: dict[asyncio.Task[None], Courier] = {}
        self._quick: set[asyncio.Task[None]] = set()  # those that count
        self._stopped = False

    def ask(self, courier: Courier) -> None:
        """Have ``courier.deliver`` run once, then ``courier.delivered``."""
        self._queue.append(courier)
        self._next()

    async def stop(self) -> None:
        """End all calls, and begin none any more."""
        self._stopped = True
        tasks = list(self._running)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _next(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._stopped and self._queue and len(self._quick) < CALLS:
            courier = self._queue.popleft()
            courier.task = task = loop.create_task(courier.deliver())
            self._running[task] = courier
            self._quick.add(task)
            task.add_done_callback(self._done)
            loop.call_later(QUICK, self._free, task)

    def _free(self, task: asyncio.Task[None]) -> None:
        if task in self._quick:
            self._quick.discard(task)
            self._next()

    def _done(self, task: asyncio.Task[None]) -> None:
        courier = self._running.pop(task)
        courier.task = None
        if not task.cancelled() and (trouble := task.exception()):
            _log.error("delivery failed", exc_info=trouble)
        courier.delivered()
        self._free(task)


class Courier:
    """What one agent still has to be told."""

    def __init__(self, link: Link, receiver: Receiver, turns: Turns, timeout: float) -> None:
        """``timeout``: seconds for one call."""
        self.link = link
        self.task: asyncio.Task[None] | None = None  # the call under way; ``Turns`` keeps it
        self._receiver = receiver
        self._turns = turns
        self._timeout = timeout
        self._releases: dict[str, None] = {}  # in order
        self._drives: dict[str, Drive] = {}
        self._called = False  # asked for a turn, or calling
        self._retry: asyncio.TimerHandle | None = None
        self._finished: asyncio.Future[None] | None = None

    def release(self, partition_id: str) -> None:
        """Take a partition off the machine; nothing of it is brought up any more."""
        self._drives.pop(partition_id, None)
        self._releases[partition_id] = None
        self.wake()

    def configure(self, drive: Drive) -> None:
        """Bring up a share, after all releases."""
        self._drives[drive.record.id] = drive
        self.wake()

    def withdraw(self, drive: Drive) -> None:
        """Leave a share alone that is out of date."""
        if self._drives.get(drive.record.id) is drive:
            del self._drives[drive.record.id]

    def down(self) -> None:
        """The agent is down. When it is back, releases that somebody waits for are asked for again, and the
        others follow from what it holds then.
        """
        self._releases.clear()
        if self.task:
            self.task.cancel()

    def wake(self) -> None:
        """Call the agent, when it is up and there is something to say."""
        if self.link.up and not self._called and self._retry is None and (self._releases or self._drives):
            self._called = True
            self._turns.ask(self)

    async def deliver(self) -> None:
        """One round: releases first, then shares."""
        try:
            await self._release()
            await self._configure()
        except grpc.aio.AioRpcError as error:
            _log.warning("agent did not answer", agent=self.link.id, reason=plain(error))
            self._retry = asyncio.get_running_loop().call_later(RETRY, self.again)

    def delivered(self) -> None:
        """A round is over."""
        self._called = False
        self.wake()
        if not self._called and self._finished and not self._finished.done():
            self._finished.set_result(None)

    def again(self) -> None:
        """Do not wait any longer before the next call."""
        if self._retry:
            self._retry.cancel()
            self._retry = None
        self.wake()

    async def finish(self) -> None:
        """Deliver the releases that still wait, and no share any more."""
        self._drives.clear()
        self.wake()
        if self._called:
            self._finished = asyncio.get_running_loop().create_future()
            await self._finished

    async def _release(self) -> None:
        ids = list(self._releases)[:MOST_PARTITIONS_PER_CALL]
        if not ids:
            return
        reply = await self._call("Release", contract.ReleaseRequest(partition_ids=ids))
        for index, id in enumerate(ids):
            self._releases.pop(id, None)
            error = reply if isinstance(reply, str) else reply.results[index].error
            if error:
                _log.warning("release refused", agent=self.link.id, partition=id, reason=error)
            self._receiver.release_answered(id, self.link.id, error)

    async def _configure(self) -> None:
        # A release that came up meanwhile goes first, in another round.
        drives = [] if self._releases else list(self._drives.values())[:MOST_PARTITIONS_PER_CALL]
        if not drives:
            return
        agent_id = self.link.id
        request = contract.ConfigureRequest(shares=[drive.share(agent_id) for drive in drives])
        for drive in drives:
            drive.tried.add(agent_id)
        reply = await self._call("Configure", request)
        for index, drive in enumerate(drives):
            if self._drives.get(drive.record.id) is drive:
                del self._drives[drive.record.id]
                result = contract.ShareResult(error=reply) if isinstance(reply, str) else reply.results[index]
                self._receiver.share_answered(drive, agent_id, result)

    async def _call(self, method: str, request: Any) -> Any:
        """The reply, or the clause with which the agent refuses the whole call."""
        start, code = time.perf_counter(), grpc.StatusCode.OK
        try:
            reply = await getattr(self.link.stub, method)(request, timeout=self._timeout)
        except grpc.aio.AioRpcError as error:
            code = error.code()
            if code in _UNANSWERED:
                raise
            return plain(error)
        except asyncio.CancelledError:  # it went down meanwhile
            code = grpc.StatusCode.CANCELLED
            raise
        finally:
            self._receiver.call_answered(method, code, time.perf_counter() - start)
        if len(reply.results) != len(getattr(request, "shares", None) or request.partition_ids):
            return "it answered something else than it was asked"
        self.link.known_as_of(reply)
        return reply
