# SPDX-License-Identifier: GPL-3.0-or-later
"""Operations in progress: what agents must do for partitions, their responses, and the records that result.

An operation ends when all of its agents have responded, when it fails, or when another record replaces the one that
started it. It stays registered until then, so that late responses and events find it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import Future

import grpc
import structlog

from openipu.vipu.domain import partition_state
from openipu.vipu.domain.model import Operation, Partition
from openipu.vipu.fleet.agent_messages import Revision, ShareResult
from openipu.vipu.fleet.connection import AgentConnection
from openipu.vipu.fleet.status import AgentState
from openipu.vipu.lifecycle import removals
from openipu.vipu.lifecycle.agent_queue import AgentQueue, CallScheduler, PartitionOperation
from openipu.vipu.lifecycle.quarantine import Quarantine, describe
from openipu.vipu.lifecycle.removals import Removals
from openipu.vipu.lifecycle.reported import ReportedShares
from openipu.vipu.lifecycle.result_writer import ResultWriter, Transition
from openipu.vipu.metrics.catalog import CONTROLLER
from openipu.vipu.metrics.meters import Meters
from openipu.vipu.storage.interface import Records, StoppedError

RELEASE_RETRY = 5.0  # seconds until a rejected release is retried

_REMOVAL_CONTINUES = "The removal continues: use force to complete it now, or reset the partition to keep it."

_log: structlog.stdlib.BoundLogger = structlog.get_logger("vipu-server")


class Operations:
    """Operations by partition, and the queues of the agents that carry them out. Use it in the event loop only."""

    def __init__(
        self,
        records: Records,
        writer: ResultWriter,
        reported: ReportedShares,
        quarantine: Quarantine,
        timeout: float,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """``timeout``: seconds for all agents of an operation together, and for each call."""
        self.meters = Meters(CONTROLLER)
        self.queues: dict[str, AgentQueue] = {}  # by agent
        self.removals = Removals()
        self._calls = self.meters.histogram("vipu_agent_request_duration_seconds")
        self._records = records
        self._writer = writer
        self._reported = reported
        self._quarantine = quarantine
        self._timeout = timeout
        self._loop = loop
        self._scheduler = CallScheduler()
        self._operations: dict[str, PartitionOperation] = {}
        self._stopped = False

    async def stop(self) -> None:
        """End all calls to agents."""
        self._stopped = True
        await self._scheduler.stop()

    def add_queue(self, connection: AgentConnection) -> None:
        """Add the queue of a new agent."""
        self.queues[connection.id] = AgentQueue(connection, self, self._scheduler, self._timeout)

    # -- from the records

    def __contains__(self, id: str) -> bool:
        """Return whether a partition has an operation, which may have ended."""
        return id in self._operations

    def get(self, id: str) -> PartitionOperation | None:
        """Return the operation of a partition, which may have ended."""
        return self._operations.get(id)

    def begin(self, operation: PartitionOperation) -> None:
        """Send the requests of an operation to its agents."""
        self._operations[operation.record.id] = operation
        self._set_timer(operation)
        for agent_id in operation.indices:
            self.send(operation, agent_id)

    def pop(self, id: str) -> PartitionOperation | None:
        """End the operation of a partition, because another record replaces its own. Return it."""
        operation = self._operations.pop(id, None)
        if operation:
            self._finish(operation)
        return operation

    def send(self, operation: PartitionOperation, agent_id: str) -> None:
        """Send the request of an operation to one of its agents, as soon as its IPUs are free."""
        queue = self.queues.get(agent_id)
        if queue is None or operation.done:
            return  # the record of the agent has not arrived yet; ``agent_up`` sends the request
        id = operation.record.id
        if operation.is_removal:
            if self._reported.is_other(agent_id, id):
                queue.cancel_release(id)  # it stays in quarantine without the record
                self._confirm_release(operation, agent_id)
            else:
                queue.release(id)
        elif share := self._quarantine.blocking(agent_id, id, operation.ipus(agent_id)):
            queue.withdraw(operation)  # until the IPUs are free
            if not share.releasing:
                self._fail(operation, describe(share))
        else:
            queue.configure(operation)

    def release(self, id: str, agent_id: str) -> None:
        """Release a partition on a machine that its record does not require, unless the share may be of another."""
        queue = self.queues.get(agent_id)
        if queue and queue.connection.up and not self._reported.is_other(agent_id, id):
            queue.release(id)

    def await_removal(self, record: Partition, done: Future[None]) -> None:
        """Complete a future when the removal that this record started has ended."""
        current = self._records.state.partitions.get(record.id)
        if self._stopped:
            done.set_exception(StoppedError())
        elif current is not None and current.operation is Operation.REMOVING:
            operation = self._operations.get(record.id)
            if operation and not operation.done and record.id not in self.removals:
                self._set_timer(operation)  # it may have been running for long
            self.removals.add(record.id, done)
            if operation:
                for agent_id in list(operation.rejected):
                    self._retry_release(operation, agent_id)  # this call waits for the reason, or for its success
            down = [
                connection.unreachable_error()
                for connection in (self._awaited(operation) if operation else ())
                if connection.status.state is AgentState.DOWN
            ]
            if operation and not operation.done and down:  # they went down before this call was registered
                self.block_removal(operation, *down)
        elif current is not None and (current.ipus is record.ipus or current.operation is Operation.RESETTING):
            done.set_exception(removals.error(record.id, "It was reset during the removal."))
        else:  # deleted; another partition may have its id by now
            done.set_result(None)

    # -- from the agents

    def agent_up(self, agent_id: str, ids: Iterable[str]) -> None:
        """Repeat the requests for these partitions: the agent has lost them, or was not registered at their time."""
        for id in ids:
            operation = self._operations.get(id)
            if operation and not operation.done and agent_id in operation.waiting:
                self.send(operation, agent_id)
        self.queues[agent_id].retry_now()

    def quarantine_changed(self, agent_id: str, ids: Iterable[str]) -> None:
        """Send the shares of these partitions that waited for IPUs in quarantine."""
        for id in ids:
            operation = self._operations.get(id)
            if operation and agent_id in operation.waiting and not operation.is_removal:
                self.send(operation, agent_id)

    def agent_event(self, agent_id: str, ids: Iterable[str]) -> None:
        """Continue the removals of these partitions after an event of an agent."""
        for id in ids:
            operation = self._operations.get(id)
            if operation and agent_id in operation.released:
                self._check_release(operation, agent_id)
            elif operation and operation.is_removal and self._reported.is_other(agent_id, id):
                self.send(operation, agent_id)

    def block_removal(self, operation: PartitionOperation, *errors: str) -> None:
        """Record why a removal cannot complete, and fail the calls that wait for it. The removal continues.

        The partition never becomes active again by itself.
        """
        _log.warning("removal blocked", partition=operation.record.id, reasons=errors)
        self._writer.put(operation.record.id, lambda record: partition_state.removal_blocked(record, errors))
        self.removals.fail(operation.record.id, f"{errors[0]} {_REMOVAL_CONTINUES}")

    def share_response(self, operation: PartitionOperation, agent_id: str, result: ShareResult) -> None:
        """Handle the result of a share, see ``agent_queue.ResultHandler``."""
        if operation.done:
            return
        if result.error:
            self._fail(operation, f"Agent '{agent_id}' rejected its share: {result.error}.")
            return
        queue = self.queues.get(agent_id)
        operation.configured(agent_id, result.devices, queue.connection.state if queue else Revision("", 0))
        if operation.waiting:
            return
        if operation.fault_errors:
            self._fail(operation, *operation.fault_errors)
        else:
            devices = operation.all_devices()
            self._complete(operation, lambda record: partition_state.configured(record, devices))

    def release_response(self, partition_id: str, agent_id: str, error: str) -> None:
        """Handle the result of a release, see ``agent_queue.ResultHandler``."""
        if error:
            self._quarantine.fail(agent_id, partition_id, f"the agent rejected it: {error}")
        operation = self._operations.get(partition_id)
        if operation is None or operation.done or not operation.is_removal:
            return
        if error:
            self._reject_release(operation, agent_id, f"rejected the release: {error}")
            return
        operation.released.add(agent_id)
        queue = self.queues.get(agent_id)
        if queue and self._reported.is_current(agent_id, queue.connection.state):  # the event was faster
            self._check_release(operation, agent_id)

    def call_response(self, method: str, code: grpc.StatusCode, seconds: float) -> None:
        """Count a call, see ``agent_queue.ResultHandler``."""
        self._calls.labels(method, code.name).observe(seconds)

    def _check_release(self, operation: PartitionOperation, agent_id: str) -> None:
        """Complete a release when an event confirms it. Until then the record keeps the IPUs from other partitions."""
        operation.released.discard(agent_id)
        if operation.done:
            return
        if not self._reported.is_free(agent_id, operation.record.id):
            self._reject_release(operation, agent_id, "reports it as released, but still holds it")
            return
        self._confirm_release(operation, agent_id)

    def _confirm_release(self, operation: PartitionOperation, agent_id: str) -> None:
        operation.waiting.discard(agent_id)
        if not operation.waiting:
            self._complete(operation, lambda record: None)

    def _reject_release(self, operation: PartitionOperation, agent_id: str, reason: str) -> None:
        self.block_removal(operation, f"Agent '{agent_id}' {reason}.")
        if agent_id not in operation.rejected:
            retry = self._loop.call_later(RELEASE_RETRY, self._retry_release, operation, agent_id)
            operation.rejected[agent_id] = retry

    def _retry_release(self, operation: PartitionOperation, agent_id: str) -> None:
        operation.rejected.pop(agent_id).cancel()
        if not operation.done and agent_id in operation.waiting:
            self.send(operation, agent_id)

    # -- the end of an operation

    def _set_timer(self, operation: PartitionOperation) -> None:
        if operation.timer:
            operation.timer.cancel()
        operation.timer = self._loop.call_later(self._timeout, self._timed_out, operation)

    def _timed_out(self, operation: PartitionOperation) -> None:
        errors = [
            f"Agent '{connection.id}' did not finish within {self._timeout:g} seconds."
            if connection.up
            else connection.unreachable_error()
            for connection in self._awaited(operation)
        ]
        if operation.is_removal:
            self._set_timer(operation)
            if errors:  # else its agents are not supervised yet
                self.block_removal(operation, *errors)
        else:
            self._fail(operation, *errors)

    def _awaited(self, operation: PartitionOperation) -> list[AgentConnection]:
        """Return the connections to the agents without a successful response, sorted by agent."""
        found = map(self.queues.get, sorted(operation.waiting))
        return [queue.connection for queue in found if queue]

    def _fail(self, operation: PartitionOperation, *errors: str) -> None:
        _log.warning("partition failed", partition=operation.record.id, reasons=errors)
        self._complete(operation, lambda record: partition_state.failed(record, errors))

    def _complete(self, operation: PartitionOperation, transition: Transition) -> None:
        self._finish(operation)
        self._writer.put(
            operation.record.id, lambda record: transition(record) if record is operation.record else record
        )

    def _finish(self, operation: PartitionOperation) -> None:
        """Withdraw its requests. The operation stays registered until another record replaces its own."""
        operation.done = True
        if operation.timer:
            operation.timer.cancel()
        for agent_id in operation.waiting:
            if agent_id in self.queues:
                self.queues[agent_id].withdraw(operation)
