# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver of partitions: starts what changed records require, and decides what events of agents mean for partitions.

It reads committed records only, so every action is durable before it starts. A record that it reads may be newer than
the change that triggered it; another call follows for the newer one. ``operations`` carries out the operations.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Mapping
from concurrent.futures import Future

from openipu.vipu.domain import partition_state
from openipu.vipu.domain.errors import Code, missing
from openipu.vipu.domain.model import Agent, Kind, Operation, Partition
from openipu.vipu.fleet.agent_messages import AgentEvent
from openipu.vipu.fleet.connection import AgentConnection
from openipu.vipu.fleet.status import AgentState, QuarantinedShare
from openipu.vipu.fleet.supervisor import Supervisor, retire
from openipu.vipu.lifecycle.agent_queue import PartitionOperation
from openipu.vipu.lifecycle.health import PartitionHealth
from openipu.vipu.lifecycle.interface import LifecycleOptions
from openipu.vipu.lifecycle.operations import Operations
from openipu.vipu.lifecycle.quarantine import Quarantine, release_error
from openipu.vipu.lifecycle.recovery import Recovery
from openipu.vipu.lifecycle.reported import ReportedShares
from openipu.vipu.lifecycle.result_writer import ResultWriter
from openipu.vipu.metrics.meters import Meters
from openipu.vipu.storage.interface import Records

RETIRE_SECONDS = 5.0  # time for a removed agent to release its partitions


class Driver:
    """Driver of all partitions and agents. Use it in the event loop, except ``supervisor.status``."""

    def __init__(self, records: Records, options: LifecycleOptions, loop: asyncio.AbstractEventLoop) -> None:
        self.supervisor = Supervisor(self, options.heartbeat, options.agent_tls, records.deployment)
        self._records = records
        self._options = options
        self._loop = loop
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
        self._agents_of: dict[str, tuple[str, ...]] = {}  # partition -> agents that hold it, or must release it
        self._reported = ReportedShares(records)
        self._operations = Operations(
            records, self._writer, self._reported, self.quarantine, options.partition_timeout, loop
        )
        self._health = PartitionHealth(records, self._writer, self._recovery, self._reported, self._agents)
        self._retiring: set[asyncio.Task[None]] = set()

    @property
    def meters(self) -> Meters:
        """Instruments of the calls to agents."""
        return self._operations.meters

    async def stop(self) -> None:
        """End all work at once."""
        self._writer.stop()
        await self._operations.stop()
        for task in self._retiring:
            task.cancel()
        await asyncio.gather(*self._retiring, return_exceptions=True)
        await self.supervisor.close()
        self._operations.removals.stop()

    # -- agents

    def add_agent(self, agent: Agent) -> None:
        """Supervise an agent. Connect again when its endpoint has changed."""
        connection = self.supervisor.connections.get(agent.id)
        if connection and (connection.agent.host, connection.agent.port) == (agent.host, agent.port):
            return
        if connection:
            self.drop_agent(agent.id)
        self._operations.add_queue(self.supervisor.add(agent))

    def drop_agent(self, agent_id: str) -> None:
        """Stop supervising an agent, after it has released the partitions that were removed with it."""
        connection = self.supervisor.drop(agent_id)
        self._reported.drop(agent_id)
        self.quarantine.drop(agent_id)
        if connection:
            queue = self._operations.queues.pop(agent_id)

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
        self._operations.agent_up(connection.id, recorded)
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
        self._operations.agent_event(connection.id, recorded)
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
        queue = self._operations.queues.get(agent_id)
        if queue is None or not self._reported.knows(agent_id):
            return
        changed = self.quarantine.update(agent_id, self._reported.unknown(agent_id, recorded))
        for id in self.quarantine.releasing(agent_id):
            queue.release_unknown(id)
        if changed:
            self._operations.quarantine_changed(agent_id, recorded)
            self._recovery.search()

    async def release_quarantine(self, agent_id: str, partition_id: str) -> list[QuarantinedShare]:
        """Release a share in quarantine, or all shares of an agent; see ``Quarantine.release``."""
        queue = self._operations.queues.get(agent_id)
        if queue is None:
            raise release_error(Code.NOT_FOUND, agent_id, missing(Kind.AGENT, agent_id).reason)
        return await self.quarantine.release(queue, partition_id, self._options.partition_timeout)

    def agent_down(self, connection: AgentConnection) -> None:
        """Handle an agent that is down, see ``fleet.supervisor.Watcher``."""
        self._operations.queues[connection.id].agent_down()
        self._reported.drop(connection.id)
        for id in self._reported.recorded(connection.id):
            operation = self._operations.get(id)
            if operation and operation.is_removal:
                if not operation.done and connection.id in operation.waiting:
                    self._operations.block_removal(operation, connection.unreachable_error())
            else:
                self._health.unreachable(id, connection.unreachable_error())

    def capacity_changed(self) -> None:
        """Move waiting partitions, because an allocation or a cluster has got other IPU-Machines."""
        self._recovery.search()

    # -- partitions

    def await_removal(self, record: Partition, done: Future[None]) -> None:
        """Complete a future when the removal that this record started has ended."""
        self._operations.await_removal(record, done)

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
        self._operations.pop(id)
        self._recovery.cancel(id)
        for agent_id in self._agents(id):
            if agent_id not in indices:
                self._operations.release(id, agent_id)
        self._agents_of[id] = tuple(indices)
        for agent_id in indices:
            if self._reported.is_other(agent_id, id):
                self._update_quarantine(agent_id, self._reported.recorded(agent_id))
        self._recovery.now(record)  # its age counts from now on
        if record.operation in (Operation.CREATING, Operation.RESETTING, Operation.REMOVING):
            self._operations.begin(PartitionOperation(record, indices))
        if record.operation in (Operation.FAILED, Operation.UNREACHABLE):
            self._recovery.recover(id)
        if record.operation is Operation.IDLE:  # an agent may be down since it has configured its share
            for agent_id in indices:
                connection = self.supervisor.connections.get(agent_id)
                if connection and connection.status.state is AgentState.DOWN:
                    self._health.unreachable(id, connection.unreachable_error())
        self._health.regain(id)
        if record.operation is not Operation.REMOVING:
            self._operations.removals.fail(id, "It was reset during the removal.")

    def record_deleted(self, id: str) -> None:
        """Handle a deleted record: release the partition on its machines."""
        operation = self._operations.pop(id)
        self._recovery.drop(id)
        agents = self._agents_of.pop(id, ())
        for agent_id in agents:
            if not (operation and operation.is_removal and agent_id not in operation.waiting):
                self._operations.release(id, agent_id)
        self._reported.drop_partition(id)
        for agent_id in agents:
            self._update_quarantine(agent_id, self._reported.recorded(agent_id))
        self._operations.removals.complete(id)
        self._recovery.search()
