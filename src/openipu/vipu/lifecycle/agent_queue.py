# SPDX-License-Identifier: GPL-3.0-or-later
"""Delivery of shares and releases to agents: one call per agent at a time, with all waiting items."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import grpc
import structlog

from openipu.vipu.agent_api.contract import agent as contract
from openipu.vipu.agent_api.limits import MAX_PARTITIONS_PER_CALL
from openipu.vipu.domain.model import Device, Operation, Partition
from openipu.vipu.domain.partition_state import MAX_ERRORS
from openipu.vipu.fleet import agent_messages
from openipu.vipu.fleet.agent_messages import InvalidMessageError, Revision, ShareResult
from openipu.vipu.fleet.connection import AgentConnection, describe

CALLS = 32  # concurrent calls to all agents; items that wait for a slot are sent in one call
SLOT_SECONDS = 0.05  # a call frees its slot after this time, because bringing up real IPUs takes long
RETRY = 1.0  # seconds until the next call to an agent that is up, after a call that failed

_NO_RESPONSE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)

_log: structlog.stdlib.BoundLogger = structlog.get_logger("vipu-server")


class PartitionOperation:
    """One attempt to bring a partition to the state in its record, on all of its agents."""

    __slots__ = (
        "_faults",
        "_revisions",
        "devices",
        "done",
        "indices",
        "record",
        "rejected",
        "released",
        "timer",
        "waiting",
    )

    def __init__(self, record: Partition, indices: dict[str, list[int]]) -> None:
        """``indices``: agent -> indices of the entries of ``record.ipus`` on its machine."""
        self.record = record
        self.indices = indices
        self.waiting = set(indices)  # agents without a successful response
        self.rejected: dict[str, asyncio.TimerHandle] = {}  # next retries, by agent that rejected its release
        self.released: set[str] = set()  # agents whose next event must confirm the release
        self.devices: dict[str, tuple[Device, ...]] = {}  # by agent
        self._revisions: dict[str, Revision] = {}  # of the replies of agents that have configured their shares
        self._faults: dict[str, list[tuple[Revision, str]]] = {}  # by agent
        self.timer: asyncio.TimerHandle | None = None
        self.done = False

    @property
    def is_removal(self) -> bool:
        """Return whether the operation removes the partition from its machines."""
        return self.record.operation is Operation.REMOVING

    def ipus(self, agent_id: str) -> list[int]:
        """Return the numbers of the IPUs on the machine of an agent, in the order of the share."""
        return [self.record.ipus[index].ipu for index in self.indices[agent_id]]

    def all_devices(self) -> list[Device]:
        """Return the devices of all agents in the order of the partition's IPUs."""
        devices: dict[int, Device] = {}
        for agent_id, indices in self.indices.items():
            devices.update(zip(indices, self.devices[agent_id], strict=True))
        return [devices[index] for index in range(len(devices))]

    def configured(self, agent_id: str, devices: tuple[Device, ...], revision: Revision) -> None:
        """Note that an agent has configured its share, with the revision of its reply. Earlier faults are repaired."""
        self.devices[agent_id] = devices
        self._revisions[agent_id] = revision
        self._faults[agent_id] = [each for each in self._faults.get(agent_id, ()) if each[0].includes(revision)]
        self.waiting.discard(agent_id)

    def add_fault(self, agent_id: str, revision: Revision, error: str) -> None:
        """Note a fault that an agent reports while others configure their shares. Agents report it only once."""
        configured = self._revisions.get(agent_id)
        faults = self._faults.setdefault(agent_id, [])
        if (configured is None or revision.includes(configured)) and len(faults) < MAX_ERRORS:
            faults.append((revision, error))

    @property
    def fault_errors(self) -> list[str]:
        """Return the faults of configured shares."""
        return [error for agent_id in sorted(self._faults) for _, error in self._faults[agent_id]]

    def share(self, agent_id: str) -> Any:
        """Return the message for one agent.

        It resets the IPUs, so that no state of an earlier partition of the same name remains. Repeated messages reset
        them too, because the earlier ones may not have arrived.
        """
        record = self.record
        share = contract.PartitionShare(
            partition_id=record.id,
            ipulink_routing_type=record.routing,
            gw_routing_type=record.gw_routing,
            sync_type=record.sync_type,
            reconfigurable=record.reconfigurable,
            reset=True,
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


class ResultHandler(Protocol):
    """Receiver of the responses of agents. An empty error means success."""

    def share_response(self, operation: PartitionOperation, agent_id: str, result: ShareResult) -> None:
        """Handle an agent that has configured its share, or rejected it."""

    def release_response(self, partition_id: str, agent_id: str, error: str) -> None:
        """Handle an agent that has released a partition, or rejected that."""

    def call_response(self, method: str, code: grpc.StatusCode, seconds: float) -> None:
        """Handle the end of a call, with its status code and duration."""


class CallScheduler:
    """Scheduler of calls to agents: first in, first out, with a limit on concurrent calls."""

    def __init__(self) -> None:
        self._queue: deque[AgentQueue] = deque()
        self._running: dict[asyncio.Task[None], AgentQueue] = {}
        self._slots: set[asyncio.Task[None]] = set()  # calls that count against the limit
        self._stopped = False

    def schedule(self, queue: AgentQueue) -> None:
        """Run ``queue.deliver`` once, then ``queue.delivered``."""
        self._queue.append(queue)
        self._start_calls()

    async def stop(self) -> None:
        """Cancel all calls and start no more."""
        self._stopped = True
        tasks = list(self._running)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start_calls(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._stopped and self._queue and len(self._slots) < CALLS:
            queue = self._queue.popleft()
            queue.task = task = loop.create_task(queue.deliver())
            self._running[task] = queue
            self._slots.add(task)
            task.add_done_callback(self._done)
            loop.call_later(SLOT_SECONDS, self._free_slot, task)

    def _free_slot(self, task: asyncio.Task[None]) -> None:
        if task in self._slots:
            self._slots.discard(task)
            self._start_calls()

    def _done(self, task: asyncio.Task[None]) -> None:
        queue = self._running.pop(task)
        queue.task = None
        queue.delivered()
        self._free_slot(task)


class AgentQueue:
    """Shares and releases that wait for one agent."""

    def __init__(
        self, connection: AgentConnection, handler: ResultHandler, scheduler: CallScheduler, timeout: float
    ) -> None:
        """``timeout``: seconds for one call."""
        self.connection = connection
        self.task: asyncio.Task[None] | None = None  # the running call; set by ``CallScheduler``
        self._handler = handler
        self._scheduler = scheduler
        self._timeout = timeout
        self._releases: dict[str, None] = {}  # in order
        self._operations: dict[str, PartitionOperation] = {}
        self._scheduled = False  # or running
        self._retry: asyncio.TimerHandle | None = None
        self._round: asyncio.Future[None] | None = None  # done after the next round, for ``finish``
        self._closed = False

    def release(self, partition_id: str) -> None:
        """Queue the release of a partition and drop its waiting share."""
        self._operations.pop(partition_id, None)
        self._releases[partition_id] = None
        self.wake()

    def release_unknown(self, partition_id: str) -> None:
        """Queue the release of a partition without a record, unless many releases are waiting already.

        The agent reports it again, so the release is not lost.
        """
        if len(self._releases) < MAX_PARTITIONS_PER_CALL:
            self.release(partition_id)

    def cancel_release(self, partition_id: str) -> None:
        """Drop the waiting release of a partition."""
        self._releases.pop(partition_id, None)

    def configure(self, operation: PartitionOperation) -> None:
        """Queue a share, to be configured after all releases."""
        self._operations[operation.record.id] = operation
        self.wake()

    def withdraw(self, operation: PartitionOperation) -> None:
        """Drop the share of an operation that has ended."""
        if self._operations.get(operation.record.id) is operation:
            del self._operations[operation.record.id]

    def agent_down(self) -> None:
        """Drop all releases and cancel the running call.

        When the agent is up again, the driver queues the releases of removals again. The other ones
        follow from the partitions that the agent then reports.
        """
        self._releases.clear()
        if self.task:
            self.task.cancel()

    def wake(self) -> None:
        """Schedule a call when the agent is up and items are waiting."""
        is_idle = not self._scheduled and self._retry is None and not self._closed
        if is_idle and self.connection.up and (self._releases or self._operations):
            self._scheduled = True
            self._scheduler.schedule(self)

    async def deliver(self) -> None:
        """Deliver one round: releases first, then shares. An error delays the next round by ``RETRY`` seconds."""
        try:
            await self._release()
            await self._configure()
        except grpc.aio.AioRpcError as error:
            _log.warning("agent did not respond", agent=self.connection.id, reason=describe(error))
            self._retry_later()
        except Exception:  # noqa: BLE001 - the items wait for the next round
            _log.exception("delivery failed", agent=self.connection.id)
            self._retry_later()

    def _retry_later(self) -> None:
        if not self._closed:
            self._retry = asyncio.get_running_loop().call_later(RETRY, self.retry_now)

    def delivered(self) -> None:
        """Handle the end of a round."""
        self._scheduled = False
        self.wake()
        if self._round and not self._round.done():
            self._round.set_result(None)

    def retry_now(self) -> None:
        """End the wait before the next call."""
        if self._retry:
            self._retry.cancel()
            self._retry = None
        self.wake()

    async def finish(self) -> None:
        """Drop all shares, and deliver the waiting releases while the agent is up. Failed calls are repeated."""
        self._operations.clear()
        self.retry_now()
        while self._scheduled or (self._releases and self.connection.up):
            self._round = asyncio.get_running_loop().create_future()
            await self._round

    def close(self) -> None:
        """Deliver nothing more, because the connection is about to be closed."""
        self._closed = True
        self._operations.clear()
        self._releases.clear()
        if self._retry:
            self._retry.cancel()
            self._retry = None
        if self.task:
            self.task.cancel()

    async def _release(self) -> None:
        ids = list(self._releases)[:MAX_PARTITIONS_PER_CALL]
        if not ids:
            return
        results = await self._call("Release", contract.ReleaseRequest(partition_ids=ids), dict.fromkeys(ids, ()))
        for id, result in results.items():
            self._releases.pop(id, None)
            if result.error:
                _log.warning("release rejected", agent=self.connection.id, partition=id, reason=result.error)
            self._handler.release_response(id, self.connection.id, result.error)

    async def _configure(self) -> None:
        # Releases that were queued during the call go first, in the next round.
        operations = [] if self._releases else list(self._operations.values())[:MAX_PARTITIONS_PER_CALL]
        if not operations:
            return
        agent_id = self.connection.id
        request = contract.ConfigureRequest(shares=[operation.share(agent_id) for operation in operations])
        ipus = {operation.record.id: operation.ipus(agent_id) for operation in operations}
        results = await self._call("Configure", request, ipus)
        for operation in operations:
            if self._operations.get(operation.record.id) is operation:
                del self._operations[operation.record.id]
                self._handler.share_response(operation, agent_id, results[operation.record.id])

    async def _call(self, method: str, request: Any, ipus: Mapping[str, Sequence[int]]) -> dict[str, ShareResult]:
        """Return the results of a call by partition. ``ipus``: partition -> IPUs of the devices to expect."""
        start, code = time.perf_counter(), grpc.StatusCode.OK
        try:
            reply = await getattr(self.connection.stub, method)(request, timeout=self._timeout)
        except grpc.aio.AioRpcError as error:
            code = error.code()
            if code in _NO_RESPONSE:
                raise
            return dict.fromkeys(ipus, ShareResult(describe(error)))
        except asyncio.CancelledError:  # the agent went down during the call
            code = grpc.StatusCode.CANCELLED
            raise
        finally:
            self._handler.call_response(method, code, time.perf_counter() - start)
        try:
            revision = agent_messages.revision(reply)
        except InvalidMessageError as error:
            return dict.fromkeys(ipus, ShareResult(f"its reply is invalid: {error}"))
        self.connection.record_revision(revision)
        return agent_messages.share_results(reply.results, ipus)
