# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver of partitions: configures machines as the records require, and records what machines report.

It reads committed records only, so every action is durable before it starts. A record that it reads may
be newer than the change that triggered it; another call follows for the newer one. The result of an
operation counts only while the record that started it is still current.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import Future

import grpc
import structlog

from openipu.vipu.domain import partition_state
from openipu.vipu.domain.errors import Code, RuleError, quoted
from openipu.vipu.domain.model import Agent, Device, Operation, Partition
from openipu.vipu.fleet.agent_messages import AgentEvent, ShareResult
from openipu.vipu.fleet.connection import AgentConnection
from openipu.vipu.fleet.status import AgentState
from openipu.vipu.fleet.supervisor import Supervisor, retire
from openipu.vipu.lifecycle.agent_queue import AgentQueue, CallScheduler, PartitionOperation
from openipu.vipu.lifecycle.interface import LifecycleOptions
from openipu.vipu.lifecycle.relocator import Relocator
from openipu.vipu.lifecycle.reset_clock import ResetClock
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
        self._reset_clock = ResetClock()
        self._relocator = Relocator(records, loop, lambda: self.supervisor.unavailable)
        self._writer = ResultWriter(records, loop)
        self._operations: dict[str, PartitionOperation] = {}
        self._agents_of: dict[str, tuple[str, ...]] = {}  # partition -> agents that hold it, or must release it
        self._removals: dict[str, list[Future[None]]] = {}
        self._stopped = False
        self._recoveries: dict[str, asyncio.TimerHandle] = {}
        self._relocations: dict[str, asyncio.TimerHandle] = {}
        self._held: dict[str, frozenset[str]] = {}  # agent that is up -> partitions in its last event
        self._held_at: dict[str, tuple[str, int]] = {}  # agent -> boot id and revision of that event
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
        for waiting in self._removals.values():
            for future in waiting:
                future.set_exception(StoppedError())

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
        self._held.pop(agent_id, None)
        if connection:
            queue = self._queues.pop(agent_id)
            task = self._loop.create_task(
                retire(connection, queue.finish, RETIRE_SECONDS, lambda: not self._is_registered(connection.agent))
            )
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)

    def _is_registered(self, agent: Agent) -> bool:
        """Return whether an agent with this id or endpoint is supervised, as after a change of one of them."""
        others = (connection.agent for connection in self.supervisor.connections.values())
        return any(other.id == agent.id or (other.host, other.port) == (agent.host, agent.port) for other in others)

    def _partitions_on(self, agent_id: str) -> set[str]:
        return set(dict(self._records.state.holders.get(agent_id, ())).values())

    def agent_up(self, connection: AgentConnection) -> None:
        """Handle an agent that responds, see ``fleet.supervisor.Watcher``."""
        recorded = self._partitions_on(connection.id)
        for id in recorded:
            # The agent has lost earlier requests, or was not registered when the operation began.
            operation = self._operations.get(id)
            if operation and not operation.done and connection.id in operation.waiting:
                self._enqueue(operation, connection.id)
        self._queues[connection.id].retry_now()
        for id in recorded:
            self._recover(id)
        self._relocator.search()

    def agent_event(self, connection: AgentConnection, event: AgentEvent) -> None:
        """Handle an event of an agent, see ``fleet.supervisor.Watcher``."""
        recorded = self._partitions_on(connection.id)
        for fault in event.faults:
            if fault.partition_id in recorded:
                self._mark_lost(
                    fault.partition_id, f"IPU {fault.ipu} of agent '{connection.id}' failed: {fault.reason}."
                )
        if connection.is_outdated(event):
            return
        restarted = connection.boot_id not in ("", event.boot_id)
        connection.record_revision(event)
        self._held[connection.id] = held = frozenset(event.partition_ids)
        self._held_at[connection.id] = event.boot_id, event.revision
        for id in held - recorded:
            _log.info("unknown partition released", agent=connection.id, partition=id)
            self._queues[connection.id].release_unknown(id)
        for id in recorded if restarted else recorded - held:
            record = self._records.state.partitions.get(id)
            if id in self._operations or record is None:
                continue
            if record.operation is Operation.UNREACHABLE or (record.operation is Operation.IDLE and id not in held):
                cause = "was restarted" if restarted else "no longer holds it"
                self._mark_lost(id, f"Agent '{connection.id}' {cause}.")
        for id in recorded:
            operation = self._operations.get(id)
            if operation and connection.id in operation.released:
                self._check_release(operation, connection.id)
        for id in recorded & held:
            self._regain(id)

    def agent_down(self, connection: AgentConnection) -> None:
        """Handle an agent that is down, see ``fleet.supervisor.Watcher``."""
        self._queues[connection.id].agent_down()
        self._held.pop(connection.id, None)
        for id in self._partitions_on(connection.id):
            operation = self._operations.get(id)
            if operation and operation.is_removal:
                if not operation.done and connection.id in operation.waiting:
                    self._block_removal(operation, connection.unreachable_error())
            else:
                self._mark_unreachable(id, connection.unreachable_error())

    # -- partitions

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
        self._cancel_recovery(id)
        for agent_id in self._agents_of.get(id, ()):
            if agent_id not in indices:
                self._release(id, agent_id)
        self._agents_of[id] = tuple(indices)
        self._reset_clock.now(record)  # its age counts from now on
        if record.operation in (Operation.CREATING, Operation.RESETTING, Operation.REMOVING):
            self._begin(PartitionOperation(record, indices))
        if record.operation in (Operation.FAILED, Operation.UNREACHABLE):
            self._recover(id)
        self._regain(id)
        if record.operation is not Operation.REMOVING:
            self._fail_removal(id, "It was reset during the removal.")

    def record_deleted(self, id: str) -> None:
        """Handle a deleted record: release the partition on its machines."""
        operation = self._operations.pop(id, None)
        if operation:
            self._finish(operation)
        self._reset_clock.drop(id)
        self._cancel_recovery(id)
        for agent_id in self._agents_of.pop(id, ()):
            if not (operation and operation.is_removal and agent_id not in operation.waiting):
                self._release(id, agent_id)
        for future in self._removals.pop(id, ()):
            future.set_result(None)
        self._relocator.search()

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
        if queue is None:
            return  # its record has not arrived yet; ``agent_up`` sends the request
        if operation.is_removal:
            queue.release(operation.record.id)
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
        if queue and queue.connection.up:
            queue.release(id)

    def _timed_out(self, operation: PartitionOperation) -> None:
        connections = [self.supervisor.connections.get(agent_id) for agent_id in sorted(operation.waiting)]
        seconds = f"{self._options.partition_timeout:g} seconds"
        errors = [
            f"Agent '{connection.id}' did not finish within {seconds}."
            if connection.up
            else connection.unreachable_error()
            for connection in connections
            if connection
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
        operation.devices[agent_id] = result.devices
        operation.waiting.discard(agent_id)
        if not operation.waiting:
            devices = _devices(operation)
            self._complete(operation, lambda record: partition_state.configured(record, devices))

    def release_response(self, partition_id: str, agent_id: str, error: str) -> None:
        """Handle the result of a release, see ``agent_queue.ResultHandler``."""
        operation = self._operations.get(partition_id)
        if operation is None or operation.done or not operation.is_removal:
            return
        if error:
            self._reject_release(operation, agent_id, f"rejected the release: {error}")
            return
        operation.released.add(agent_id)
        connection = self._queues[agent_id].connection
        if self._held_at.get(agent_id) == (connection.boot_id, connection.revision):  # the event was faster
            self._check_release(operation, agent_id)

    def _check_release(self, operation: PartitionOperation, agent_id: str) -> None:
        """Complete a release when an event confirms it. Until then the record keeps the IPUs from other partitions."""
        operation.released.discard(agent_id)
        if operation.done:
            return
        if not is_free(operation.record.id, self._held[agent_id]):
            self._reject_release(operation, agent_id, "reports it as released, but still holds it")
            return
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
        self._fail_removal(operation.record.id, f"{errors[0]} {_REMOVAL_CONTINUES}")

    def _fail_removal(self, id: str, reason: str) -> None:
        for future in self._removals.pop(id, ()):
            future.set_exception(_removal_error(id, reason))

    def _fail(self, operation: PartitionOperation, *errors: str) -> None:
        _log.warning("partition failed", partition=operation.record.id, reasons=errors)
        self._complete(operation, lambda record: partition_state.failed(record, errors))

    def _mark_lost(self, id: str, error: str) -> None:
        record = self._records.state.partitions.get(id)
        if record and record.operation is Operation.IDLE:
            _log.warning("partition lost", partition=id, reason=error)
        self._writer.put(id, lambda current: partition_state.lost(current, error, self._reset_clock.now(current)))

    def _mark_unreachable(self, id: str, error: str) -> None:
        record = self._records.state.partitions.get(id)
        if record and record.operation is Operation.IDLE:
            _log.warning("partition unreachable", partition=id, reason=error)
        self._writer.put(id, lambda current: partition_state.unreachable(current, error))

    def _regain(self, id: str) -> None:
        """Make an unreachable partition active again, without a reset, when all of its agents hold their shares."""
        record = self._records.state.partitions.get(id)
        if record is None or record.operation is not Operation.UNREACHABLE:
            return
        agents = self._agents_of.get(id, ())
        if agents and all(id in self._held.get(agent_id, ()) for agent_id in agents):
            _log.info("partition regained", partition=id)
            self._writer.put(id, lambda current: partition_state.regained(current) if current is record else current)

    def await_removal(self, record: Partition, done: Future[None]) -> None:
        """Complete a future when the removal that this record started has ended."""
        current = self._records.state.partitions.get(record.id)
        if self._stopped:
            done.set_exception(StoppedError())
        elif current is not None and current.operation is Operation.REMOVING:
            operation = self._operations.get(record.id)
            if operation and not operation.done and record.id not in self._removals:
                self._set_timer(operation)  # it may have been running for long
            self._removals.setdefault(record.id, []).append(done)
            connections = (
                [self.supervisor.connections.get(agent_id) for agent_id in sorted(operation.waiting)]
                if operation
                else []
            )
            down = [
                connection.unreachable_error()
                for connection in connections
                if connection and connection.status.state is AgentState.DOWN
            ]
            if operation and not operation.done and down:  # they went down before this call was registered
                self._block_removal(operation, *down)
        elif current is not None and (current.ipus is record.ipus or current.operation is Operation.RESETTING):
            done.set_exception(_removal_error(record.id, "It was reset during the removal."))
        else:  # deleted; another partition may have its id by now
            done.set_result(None)

    # -- recovery

    def _recover(self, id: str) -> None:
        """Reset or move a failed partition automatically, as soon as that can succeed."""
        self._relocator.discard(id)
        if timer := self._relocations.pop(id, None):
            timer.cancel()
        record = self._records.state.partitions.get(id)
        if record is None or id in self._recoveries:
            return
        agents = self._agents_of.get(id, ())
        up = bool(agents) and all(self.supervisor.status(agent_id).state is AgentState.UP for agent_id in agents)
        if up and partition_state.may_auto_reset(record):
            delay = partition_state.auto_reset_due(record) - self._reset_clock.now(record)
            if delay > 0:
                self._recoveries[id] = self._loop.call_later(delay, self._recover_now, id)
            else:
                now = time.time()
                self._writer.put(
                    id, lambda current: partition_state.auto_reset(current, now) if current is record else current
                )
        elif not up and partition_state.may_relocate(record):
            self._relocate(record, agents)

    def _relocate(self, record: Partition, agents: Sequence[str]) -> None:
        """Move a partition once one of its agents has been down for the relocation delay."""
        connections = map(self.supervisor.connections.get, agents)
        down = [each.down_since for each in connections if each and each.status.state is AgentState.DOWN]
        if not down:
            return
        due = min(down) + self._options.relocation_delay
        if due > self._loop.time():
            self._relocations[record.id] = self._loop.call_at(due, self._recover, record.id)
            return
        self._relocator.add(record)

    def _recover_now(self, id: str) -> None:
        self._recoveries.pop(id, None)
        self._recover(id)

    def _cancel_recovery(self, id: str) -> None:
        self._relocator.discard(id)
        for timers in (self._recoveries, self._relocations):
            if timer := timers.pop(id, None):
                timer.cancel()


def is_free(id: str, held: frozenset[str]) -> bool:
    """Return whether a machine with these partitions has released one."""
    return id not in held


def _removal_error(id: str, reason: str) -> RuleError:
    return RuleError(Code.FAILED_PRECONDITION, f"Cannot remove partition {quoted(id)}: {reason}")


def _devices(operation: PartitionOperation) -> list[Device]:
    """Return the devices in the order of the partition's IPUs."""
    devices: dict[int, Device] = {}
    for agent_id, indices in operation.indices.items():
        devices.update(zip(indices, operation.devices[agent_id], strict=True))
    return [devices[index] for index in range(len(devices))]
