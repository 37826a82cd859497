# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver of partitions: configures machines as the records require, and records what machines report.

It reads committed records only, so every action is durable before it starts. A record that it reads may
be newer than the change that triggered it; another call follows for the newer one. The result of an
operation counts only while the record that started it is still current.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Mapping
from concurrent.futures import Future

import grpc
import structlog

from openipu.vipu.domain import partition_state
from openipu.vipu.domain.errors import Code, missing
from openipu.vipu.domain.model import Agent, Kind, Operation, Partition
from openipu.vipu.fleet.agent_messages import AgentEvent, Revision, ShareResult
from openipu.vipu.fleet.connection import AgentConnection
from openipu.vipu.fleet.status import AgentState, QuarantinedShare
from openipu.vipu.fleet.supervisor import Supervisor, retire
from openipu.vipu.lifecycle import removals
from openipu.vipu.lifecycle.agent_queue import AgentQueue, CallScheduler, PartitionOperation
from openipu.vipu.lifecycle.health import PartitionHealth
from openipu.vipu.lifecycle.interface import LifecycleOptions
from openipu.vipu.lifecycle.quarantine import Quarantine, describe, release_error
from openipu.vipu.lifecycle.recovery import Recovery
from openipu.vipu.lifecycle.removals import Removals
from openipu.vipu.lifecycle.reported import ReportedShares
from openipu.vipu.lifecycle.result_writer import ResultWriter, Transition
from openipu.vipu.metrics.catalog import CONTROLLER
from openipu.vipu.metrics.meters import Meters
from openipu.vipu.storage.interface import Records, StoppedError

RETIRE_SECONDS = 5.0  # time for a removed agent to release its partitions
RELEASE_RETRY = 5.0  # seconds until a rejected release is retried

_REMOVAL_CONTINUES = "The removal continues: use force to complete it now, or reset the partition to keep it."

_log: structlog.stdlib.BoundLogger = structlog.get_logger("vipu-server")


class Driver:
    """Driver of all partitions and agents. Use it in the event loop, except ``supervisor.status``."""

    def __init__(self, records: Records, options: LifecycleOptions, loop: asyncio.AbstractEventLoop) -> None:
        self.meters = Meters(CONTROLLER)
        self._calls = self.meters.histogram("vipu_agent_request_duration_seconds")
        self.supervisor = Supervisor(self, options.heartbeat, options.agent_tls, records.deployment)
        self._records = records
        self._options = options
        self._loop = loop
        self._scheduler = CallScheduler()
        self._queues: dict[str, AgentQueue] = {}
        self.quarantine = Quarantine(records.deployment)
        self._writer = ResultWriter(records, loop)
        self._recovery = Recovery(
            records,
            self._writer,
            self.supervisor,
            lambda: self.quarantine.ipus,
            self._agents,
            options.relocation_delay,
            loop,
        )
        self._operations: dict[str, PartitionOperation] = {}
        self._agents_of: dict[str, tuple[str, ...]] = {}  # partition -> agents that hold it, or must release it
        self._removals = Removals()
        self._stopped = False
        self._reported = ReportedShares(records)
        self._health = PartitionHealth(records, self._writer, self._recovery, self._reported, self._agents)
        self._retiring: set[asyncio.Task[None]] = set()

    async def stop(self) -> None:
        """End all work at once."""
        self._stopped = True
        self._writer.stop()
        await self._scheduler.stop()
        for task in self._retiring:
            task.cancel()
        await asyncio.gather(*self._retiring, return_exceptions=True)
        await self.supervisor.close()
        self._removals.stop()

    # -- agents

    def add_agent(self, agent: Agent) -> None:
        """Supervise an agent. Connect again when its endpoint has changed."""
        connection = self.supervisor.connections.get(agent.id)
        if connection and connection.agent == agent:
            return
        if connection:
            self.drop_agent(agent.id)
        queue = AgentQueue(self.supervisor.add(agent), self, self._scheduler, self._options.partition_timeout)
        self._queues[agent.id] = queue

    def drop_agent(self, agent_id: str) -> None:
        """Stop supervising an agent, after it has released the partitions that were removed with it."""
        connection = self.supervisor.drop(agent_id)
        self._reported.drop(agent_id)
        self.quarantine.drop(agent_id)
        if connection:
            queue = self._queues.pop(agent_id)

            async def deliver() -> None:
                try:
                    await queue.finish()
                finally:
                    queue.close()

            task = self._loop.create_task(
                retire(connection, deliver, RETIRE_SECONDS, lambda: not self.supervisor.has(connection.agent))
            )
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)

    def agent_up(self, connection: AgentConnection) -> None:
        """Handle an agent that responds, see ``fleet.supervisor.Watcher``."""
        recorded = self._reported.recorded(connection.id)
        for id in recorded:
            # The agent has lost earlier requests, or was not registered when the operation began.
            operation = self._operations.get(id)
            if operation and not operation.done and connection.id in operation.waiting:
                self._enqueue(operation, connection.id)
        self._queues[connection.id].retry_now()
        for id in recorded:
            self._recovery.recover(id)
        self._recovery.search()

    def agent_event(self, connection: AgentConnection, event: AgentEvent) -> None:
        """Handle an event of an agent, see ``fleet.supervisor.Watcher``."""
        recorded = self._reported.recorded(connection.id)
        self._faulty(connection.id, event, recorded)
        if connection.is_outdated(event):
            return
        restarted = connection.state.boot_id not in ("", event.boot_id)
        connection.record_revision(event)
        held = self._reported.put(connection.id, event, recorded)
        for id in held:
            if self._reported.is_other(connection.id, id):
                self._reported.confirm(id, self._agents(id))
        self._update_quarantine(connection.id, recorded)
        for id in recorded if restarted else recorded.keys() - held:
            record = self._records.state.partitions.get(id)
            if id in self._operations or record is None:
                continue
            if record.operation is Operation.UNREACHABLE or (record.operation is Operation.IDLE and id not in held):
                cause = "was restarted" if restarted else "no longer holds it"
                self._health.lost(id, f"Agent '{connection.id}' {cause}.")
        for id in recorded:
            operation = self._operations.get(id)
            if operation and connection.id in operation.released:
                self._check_release(operation, connection.id)
            elif operation and operation.is_removal and self._reported.is_other(connection.id, id):
                self._enqueue(operation, connection.id)
        for id in held:
            self._health.regain(id)

    def _faulty(self, agent_id: str, event: AgentEvent, recorded: Container[str]) -> None:
        """Record the faults of the IPUs of an agent, also while other agents of a partition configure it."""
        for fault in event.faults:
            if fault.partition_id in recorded:
                error = f"IPU {fault.ipu} of agent '{agent_id}' failed: {fault.reason}."
                operation = self._operations.get(fault.partition_id)
                if operation and not operation.done:
                    operation.add_fault(agent_id, event, error)
                else:
                    self._health.lost(fault.partition_id, error)

    def _update_quarantine(self, agent_id: str, recorded: Mapping[str, frozenset[int]]) -> None:
        """Release the unknown shares of an agent, and send the shares that waited for their IPUs."""
        queue = self._queues.get(agent_id)
        if queue is None or not self._reported.knows(agent_id):
            return
        changed = self.quarantine.update(agent_id, self._reported.unknown(agent_id, recorded))
        for id in self.quarantine.releasing(agent_id):
            queue.release_unknown(id)
        if changed:
            for id in recorded:
                operation = self._operations.get(id)
                if operation and agent_id in operation.waiting and not operation.is_removal:
                    self._enqueue(operation, agent_id)
            self._recovery.search()

    async def release_quarantine(self, agent_id: str, partition_id: str) -> list[QuarantinedShare]:
        """Release a share in quarantine, or all shares of an agent; see ``Quarantine.release``."""
        queue = self._queues.get(agent_id)
        if queue is None:
            raise release_error(Code.NOT_FOUND, agent_id, missing(Kind.AGENT, agent_id).reason)
        return await self.quarantine.release(queue, partition_id, self._options.partition_timeout)

    def agent_down(self, connection: AgentConnection) -> None:
        """Handle an agent that is down, see ``fleet.supervisor.Watcher``."""
        self._queues[connection.id].agent_down()
        self._reported.drop(connection.id)
        for id in self._reported.recorded(connection.id):
            operation = self._operations.get(id)
            if operation and operation.is_removal:
                if not operation.done and connection.id in operation.waiting:
                    self._block_removal(operation, connection.unreachable_error())
            else:
                self._health.unreachable(id, connection.unreachable_error())

    def capacity_changed(self) -> None:
        """Move waiting partitions, because an allocation or a cluster has got other IPU-Machines."""
        self._recovery.search()

    # -- partitions

    def _agents(self, id: str) -> tuple[str, ...]:
        return self._agents_of.get(id, ())

    def reconcile(self, id: str) -> None:
        """Start the operation that the committed record of a partition requires, unless it is running."""
        operation = self._operations.get(id)
        with self._records.reading() as state:  # a later commit may replace its cluster
            record = state.partitions.get(id)
            if record is None or (operation and operation.record is record):
                return
            indices = partition_state.ipus_by_agent(state, record)
        if operation and operation.is_removal and not operation.done and record.operation is Operation.REMOVING:
            operation.record = record  # only its errors have changed: the removal continues
            return
        if operation:
            self._finish(self._operations.pop(id))
        self._recovery.cancel(id)
        for agent_id in self._agents(id):
            if agent_id not in indices:
                self._release(id, agent_id)
        self._agents_of[id] = tuple(indices)
        for agent_id in indices:
            if self._reported.is_other(agent_id, id):
                self._update_quarantine(agent_id, self._reported.recorded(agent_id))
        self._recovery.now(record)  # its age counts from now on
        if record.operation in (Operation.CREATING, Operation.RESETTING, Operation.REMOVING):
            self._begin(PartitionOperation(record, indices))
        if record.operation in (Operation.FAILED, Operation.UNREACHABLE):
            self._recovery.recover(id)
        if record.operation is Operation.IDLE:  # an agent may be down since it has configured its share
            for agent_id in indices:
                connection = self.supervisor.connections.get(agent_id)
                if connection and connection.status.state is AgentState.DOWN:
                    self._health.unreachable(id, connection.unreachable_error())
        self._health.regain(id)
        if record.operation is not Operation.REMOVING:
            self._removals.fail(id, "It was reset during the removal.")

    def record_deleted(self, id: str) -> None:
        """Handle a deleted record: release the partition on its machines."""
        operation = self._operations.pop(id, None)
        if operation:
            self._finish(operation)
        self._recovery.drop(id)
        agents = self._agents_of.pop(id, ())
        for agent_id in agents:
            if not (operation and operation.is_removal and agent_id not in operation.waiting):
                self._release(id, agent_id)
        self._reported.drop_partition(id)
        for agent_id in agents:
            self._update_quarantine(agent_id, self._reported.recorded(agent_id))
        self._removals.complete(id)
        self._recovery.search()

    def _begin(self, operation: PartitionOperation) -> None:
        self._operations[operation.record.id] = operation
        self._set_timer(operation)
        for agent_id in operation.indices:
            self._enqueue(operation, agent_id)

    def _set_timer(self, operation: PartitionOperation) -> None:
        if operation.timer:
            operation.timer.cancel()
        operation.timer = self._loop.call_later(self._options.partition_timeout, self._timed_out, operation)

    def _enqueue(self, operation: PartitionOperation, agent_id: str) -> None:
        queue = self._queues.get(agent_id)
        if queue is None or operation.done:
            return  # the record of the agent has not arrived yet; ``agent_up`` sends the request
        id = operation.record.id
        if operation.is_removal:
            if self._reported.is_other(agent_id, id):
                queue.cancel_release(id)  # it stays in quarantine without the record
                self._confirm_release(operation, agent_id)
            else:
                queue.release(id)
        elif share := self.quarantine.blocking(agent_id, id, operation.ipus(agent_id)):
            queue.withdraw(operation)  # until the IPUs are free
            if not share.releasing:
                self._fail(operation, describe(share))
        else:
            queue.configure(operation)

    def _finish(self, operation: PartitionOperation) -> None:
        """Withdraw its requests. The operation stays registered until another record replaces its own."""
        operation.done = True
        if operation.timer:
            operation.timer.cancel()
        for agent_id in operation.waiting:
            if agent_id in self._queues:
                self._queues[agent_id].withdraw(operation)

    def _complete(self, operation: PartitionOperation, transition: Transition) -> None:
        self._finish(operation)
        self._writer.put(
            operation.record.id, lambda record: transition(record) if record is operation.record else record
        )

    def _release(self, id: str, agent_id: str) -> None:
        queue = self._queues.get(agent_id)
        if queue and queue.connection.up and not self._reported.is_other(agent_id, id):
            queue.release(id)

    def _awaited(self, operation: PartitionOperation) -> list[AgentConnection]:
        """Return the connections to the agents without a successful response, sorted by agent."""
        found = map(self.supervisor.connections.get, sorted(operation.waiting))
        return [connection for connection in found if connection]

    def _timed_out(self, operation: PartitionOperation) -> None:
        errors = [
            f"Agent '{connection.id}' did not finish within {self._options.partition_timeout:g} seconds."
            if connection.up
            else connection.unreachable_error()
            for connection in self._awaited(operation)
        ]
        if operation.is_removal:
            self._set_timer(operation)
            if errors:  # else its agents are not supervised yet
                self._block_removal(operation, *errors)
        else:
            self._fail(operation, *errors)

    def share_response(self, operation: PartitionOperation, agent_id: str, result: ShareResult) -> None:
        """Handle the result of a share, see ``agent_queue.ResultHandler``."""
        if operation.done:
            return
        if result.error:
            self._fail(operation, f"Agent '{agent_id}' rejected its share: {result.error}.")
            return
        queue = self._queues.get(agent_id)
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
            self.quarantine.fail(agent_id, partition_id, f"the agent rejected it: {error}")
        operation = self._operations.get(partition_id)
        if operation is None or operation.done or not operation.is_removal:
            return
        if error:
            self._reject_release(operation, agent_id, f"rejected the release: {error}")
            return
        operation.released.add(agent_id)
        queue = self._queues.get(agent_id)
        if queue and self._reported.is_current(agent_id, queue.connection.state):  # the event was faster
            self._check_release(operation, agent_id)

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
        self._block_removal(operation, f"Agent '{agent_id}' {reason}.")
        if agent_id not in operation.rejected:
            operation.rejected.add(agent_id)
            self._loop.call_later(RELEASE_RETRY, self._retry_release, operation, agent_id)

    def call_response(self, method: str, code: grpc.StatusCode, seconds: float) -> None:
        """Count a call, see ``agent_queue.ResultHandler``."""
        self._calls.labels(method, code.name).observe(seconds)

    def _retry_release(self, operation: PartitionOperation, agent_id: str) -> None:
        operation.rejected.discard(agent_id)
        if not operation.done and agent_id in operation.waiting:
            self._enqueue(operation, agent_id)

    def _block_removal(self, operation: PartitionOperation, *errors: str) -> None:
        """Record why a removal cannot complete, and fail the calls that wait for it. The removal continues.

        The partition never becomes active again by itself.
        """
        _log.warning("removal blocked", partition=operation.record.id, reasons=errors)
        self._writer.put(operation.record.id, lambda record: partition_state.removal_blocked(record, errors))
        self._removals.fail(operation.record.id, f"{errors[0]} {_REMOVAL_CONTINUES}")

    def _fail(self, operation: PartitionOperation, *errors: str) -> None:
        _log.warning("partition failed", partition=operation.record.id, reasons=errors)
        self._complete(operation, lambda record: partition_state.failed(record, errors))

    def await_removal(self, record: Partition, done: Future[None]) -> None:
        """Complete a future when the removal that this record started has ended."""
        current = self._records.state.partitions.get(record.id)
        if self._stopped:
            done.set_exception(StoppedError())
        elif current is not None and current.operation is Operation.REMOVING:
            operation = self._operations.get(record.id)
            if operation and not operation.done and record.id not in self._removals:
                self._set_timer(operation)  # it may have been running for long
            self._removals.add(record.id, done)
            down = [
                connection.unreachable_error()
                for connection in (self._awaited(operation) if operation else ())
                if connection.status.state is AgentState.DOWN
            ]
            if operation and not operation.done and down:  # they went down before this call was registered
                self._block_removal(operation, *down)
        elif current is not None and (current.ipus is record.ipus or current.operation is Operation.RESETTING):
            done.set_exception(removals.error(record.id, "It was reset during the removal."))
        else:  # deleted; another partition may have its id by now
            done.set_result(None)
