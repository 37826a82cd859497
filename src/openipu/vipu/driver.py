# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives partitions: brings machines to what the records say, and records to what the machines say.

It looks at committed records only, so what it does was durable before; it may look at one that is
newer than the change it was told of, and is then told again. Results of a drive count only while
the record it began with is still the current one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import grpc
import structlog

from openipu.vipu import life
from openipu.vipu.agents import Link, Supervisor, retire
from openipu.vipu.checks import Code, RuleError, shown
from openipu.vipu.courier import Courier, Drive, Turns
from openipu.vipu.metrics.catalog import CONTROLLER
from openipu.vipu.metrics.meters import Meters
from openipu.vipu.model import Agent, Change, Device, Operation, Partition, Put, State
from openipu.vipu.outbox import Outbox, Transition
from openipu.vipu.ports import AgentState, LifecycleOptions, Records, StoppedError

GOODBYE = 5.0  # seconds for an agent that was removed to take its partitions off
RELEASE_AGAIN = 5.0  # seconds until an agent that refused to let go of a partition is asked again

_GOES_ON = "It is removed as soon as that can be done: use force not to wait for it, or reset the partition to keep it."

_log: structlog.stdlib.BoundLogger = structlog.get_logger("vipu-server")


class Driver:
    """All partitions and agents; everything but ``supervisor.status`` belongs to the event loop."""

    def __init__(self, records: Records, options: LifecycleOptions, loop: asyncio.AbstractEventLoop) -> None:
        """See the class."""
        self.meters = Meters(CONTROLLER)
        self._calls = self.meters.histogram("vipu_agent_request_duration_seconds")
        self.supervisor = Supervisor(self, options.heartbeat, options.agent_tls)
        self._records = records
        self._options = options
        self._loop = loop
        self._turns = Turns()
        self._couriers: dict[str, Courier] = {}
        self._outbox = Outbox(records, loop)
        self._drives: dict[str, Drive] = {}
        self._agents_of: dict[str, tuple[str, ...]] = {}  # partition -> where it is, or has to go away from
        self._removals: dict[str, list[Future[None]]] = {}
        self._stopped = False
        self._recoveries: dict[str, asyncio.TimerHandle] = {}
        self._stranded: set[str] = set()  # failed ones that may move, and have no place to move to
        self._farewells: set[asyncio.Task[None]] = set()

    async def stop(self) -> None:
        """End all work at once."""
        self._stopped = True
        self._outbox.stop()
        await self._turns.stop()
        for task in self._farewells:
            task.cancel()
        await asyncio.gather(*self._farewells, return_exceptions=True)
        await self.supervisor.close()
        for waiting in self._removals.values():
            for future in waiting:
                future.set_exception(StoppedError())

    # -- agents

    def add_agent(self, agent: Agent) -> None:
        """Supervise an agent; anew when its end-point has changed."""
        link = self.supervisor.links.get(agent.id)
        if link and link.agent == agent:
            return
        if link:
            self.drop_agent(agent.id)
        courier = Courier(self.supervisor.add(agent), self, self._turns, self._options.partition_timeout)
        self._couriers[agent.id] = courier

    def drop_agent(self, agent_id: str) -> None:
        """Part from an agent, once it has taken off what was removed with it."""
        link = self.supervisor.drop(agent_id)
        if link:
            courier = self._couriers.pop(agent_id)
            task = self._loop.create_task(retire(link, courier.finish, GOODBYE))
            self._farewells.add(task)
            task.add_done_callback(self._farewells.discard)

    def _partitions_on(self, agent_id: str) -> set[str]:
        return set(dict(self._records.state.holders.get(agent_id, ())).values())

    def agent_up(self, link: Link) -> None:
        """See ``agents.Watcher``."""
        here = self._partitions_on(link.id)
        for id in here:
            # What it was told before it went down is forgotten, and maybe it was not there yet to be told.
            drive = self._drives.get(id)
            if drive and not drive.done and link.id in drive.waiting:
                self._send(drive, link.id)
        self._couriers[link.id].again()
        for id in here | self._stranded:
            self._recover(id)

    def agent_event(self, link: Link, event: Any) -> None:
        """See ``agents.Watcher``."""
        here = self._partitions_on(link.id)
        for fault in event.faults:
            if fault.partition_id in here:
                self._lost(fault.partition_id, f"IPU {fault.ipu} of agent '{link.id}' failed: {fault.reason}.")
        if link.outdated(event):
            return
        link.known_as_of(event)
        held = set(event.partition_ids)
        for id in held - here:
            _log.info("stranger released", agent=link.id, partition=id)
            self._couriers[link.id].release(id)
        for id in here - held:
            record = self._records.state.partitions.get(id)
            if record and record.operation is Operation.IDLE and id not in self._drives:
                self._lost(id, f"Agent '{link.id}' was restarted and does not hold it any more.")

    def agent_down(self, link: Link) -> None:
        """See ``agents.Watcher``."""
        self._couriers[link.id].down()
        for id in self._partitions_on(link.id):
            drive = self._drives.get(id)
            if drive and drive.removes:
                if not drive.done and link.id in drive.waiting:
                    self._hold_up(drive, link.unreachable())
            else:
                self._lost(id, link.unreachable())

    # -- partitions

    def look(self, id: str) -> None:
        """Do what the committed record of a partition asks for, unless that is under way."""
        state = self._records.state
        record = state.partitions.get(id)
        drive = self._drives.get(id)
        if record is None or (drive and drive.record is record):
            return
        if drive and drive.removes and not drive.done and record.operation is Operation.REMOVING:
            drive.record = record  # it tells what holds the removal up, which goes on
            return
        try:
            indices = life.places(state, record)
        except KeyError:
            return  # it was deleted this moment, and that is still to be read
        if drive:
            self._settle(self._drives.pop(id))
        self._cancel_recovery(id)
        for agent_id in self._agents_of.get(id, ()):
            if agent_id not in indices:
                self._release(id, agent_id)
        self._agents_of[id] = tuple(indices)
        operation = record.operation
        if operation in (Operation.CREATING, Operation.RESETTING, Operation.REMOVING):
            self._drive(Drive(record, indices))
        if operation is Operation.FAILED:
            self._recover(id)
        if operation is not Operation.REMOVING:
            self._not_removed(id, "It was reset meanwhile.")

    def forget(self, id: str) -> None:
        """A record is gone: take the partition off its machines."""
        drive = self._drives.pop(id, None)
        if drive:
            self._settle(drive)
        self._cancel_recovery(id)
        for agent_id in self._agents_of.pop(id, ()):
            if not (drive and drive.removes and agent_id not in drive.waiting):
                self._release(id, agent_id)
        for future in self._removals.pop(id, ()):
            future.set_result(None)
        for other in list(self._stranded):
            self._recover(other)

    def _drive(self, drive: Drive) -> None:
        self._drives[drive.record.id] = drive
        self._set_timer(drive)
        for agent_id in drive.indices:
            self._send(drive, agent_id)

    def _set_timer(self, drive: Drive) -> None:
        if drive.timer:
            drive.timer.cancel()
        drive.timer = self._loop.call_later(self._options.partition_timeout, self._overdue, drive)

    def _send(self, drive: Drive, agent_id: str) -> None:
        courier = self._couriers.get(agent_id)
        if courier is None:
            return  # its record is on the way; it is sent when the agent is up
        if drive.removes:
            courier.release(drive.record.id)
        else:
            courier.configure(drive)

    def _settle(self, drive: Drive) -> None:
        """Ask its agents nothing more. It stays until another record has taken the place of its own."""
        drive.done = True
        if drive.timer:
            drive.timer.cancel()
        for agent_id in drive.waiting:
            if agent_id in self._couriers:
                self._couriers[agent_id].withdraw(drive)

    def _conclude(self, drive: Drive, transition: Transition) -> None:
        self._settle(drive)
        self._outbox.put(drive.record.id, lambda record: transition(record) if record is drive.record else record)

    def _release(self, id: str, agent_id: str) -> None:
        courier = self._couriers.get(agent_id)
        if courier and courier.link.up:
            courier.release(id)

    def _overdue(self, drive: Drive) -> None:
        links = [self.supervisor.links.get(agent_id) for agent_id in sorted(drive.waiting)]
        seconds = f"{self._options.partition_timeout:g} seconds"
        errors = [
            f"Agent '{link.id}' did not finish within {seconds}." if link.up else link.unreachable()
            for link in links
            if link
        ]
        if drive.removes:
            self._set_timer(drive)
            if errors:  # else its agents are still to be heard of
                self._hold_up(drive, *errors)
        else:
            self._fail(drive, *errors)

    def share_answered(self, drive: Drive, agent_id: str, result: Any) -> None:
        """See ``courier.Receiver``."""
        if drive.done:
            return
        if result.error:
            self._fail(drive, f"Agent '{agent_id}' refused: {result.error}.")
            return
        if len(result.devices) != len(drive.indices[agent_id]):
            self._fail(drive, f"Agent '{agent_id}' answered with {len(result.devices)} devices for its IPUs.")
            return
        drive.devices[agent_id] = result
        drive.waiting.discard(agent_id)
        if not drive.waiting:
            devices = _devices(drive)
            self._conclude(drive, lambda record: life.configured(record, devices))

    def release_answered(self, partition_id: str, agent_id: str, error: str) -> None:
        """See ``courier.Receiver``."""
        drive = self._drives.get(partition_id)
        if drive is None or drive.done or not drive.removes:
            return
        if error:
            self._hold_up(drive, f"Agent '{agent_id}' refused to release it: {error}.")
            if agent_id not in drive.refused:
                drive.refused.add(agent_id)
                self._loop.call_later(RELEASE_AGAIN, self._release_again, drive, agent_id)
            return
        drive.waiting.discard(agent_id)
        if not drive.waiting:
            self._conclude(drive, lambda record: None)

    def call_answered(self, method: str, code: grpc.StatusCode, seconds: float) -> None:
        """See ``courier.Receiver``."""
        self._calls.labels(method, code.name).observe(seconds)

    def _release_again(self, drive: Drive, agent_id: str) -> None:
        drive.refused.discard(agent_id)
        if not drive.done and agent_id in drive.waiting:
            self._send(drive, agent_id)

    def _hold_up(self, drive: Drive, *errors: str) -> None:
        """A removal cannot be ended for now. Whoever waits is told, and it goes on: it never comes back by itself."""
        _log.warning("removal held up", partition=drive.record.id, reasons=errors)
        self._outbox.put(drive.record.id, lambda record: life.held_up(record, errors))
        self._not_removed(drive.record.id, f"{errors[0]} {_GOES_ON}")

    def _not_removed(self, id: str, reason: str) -> None:
        for future in self._removals.pop(id, ()):
            future.set_exception(_not_removed(id, reason))

    def _fail(self, drive: Drive, *errors: str) -> None:
        _log.warning("partition failed", partition=drive.record.id, reasons=errors)
        self._conclude(drive, lambda record: life.failed(record, errors))

    def _lost(self, id: str, error: str) -> None:
        record = self._records.state.partitions.get(id)
        if record and record.operation is Operation.IDLE:
            _log.warning("partition lost", partition=id, reason=error)
        now = time.time()
        self._outbox.put(id, lambda current: life.lost(current, error, now))

    def await_removal(self, record: Partition, done: Future[None]) -> None:
        """Have a future done when the removal that this record began is over."""
        current = self._records.state.partitions.get(record.id)
        if self._stopped:
            done.set_exception(StoppedError())
        elif current is not None and current.operation is Operation.REMOVING:
            drive = self._drives.get(record.id)
            if drive and not drive.done and record.id not in self._removals:
                self._set_timer(drive)  # it may have been under way for long
            self._removals.setdefault(record.id, []).append(done)
            links = [self.supervisor.links.get(agent_id) for agent_id in sorted(drive.waiting)] if drive else []
            down = [link.unreachable() for link in links if link and link.status.state is AgentState.DOWN]
            if drive and not drive.done and down:  # since it was durable, when nobody waited for it yet
                self._hold_up(drive, *down)
        elif current is not None and (current.ipus is record.ipus or current.operation is Operation.RESETTING):
            done.set_exception(_not_removed(record.id, "It was reset meanwhile."))
        else:  # gone, and perhaps another of its name is there
            done.set_result(None)

    # -- recovery

    def _recover(self, id: str) -> None:
        """Reset a failed partition by itself, or move it, as soon as that can succeed."""
        self._stranded.discard(id)
        record = self._records.state.partitions.get(id)
        if record is None or not life.may_auto_reset(record) or id in self._recoveries:
            return
        states = {self.supervisor.status(agent_id).state for agent_id in self._agents_of.get(id, ())}
        if states == {AgentState.UP}:
            delay = life.auto_reset_due(record) - time.time()
            if delay > 0:
                self._recoveries[id] = self._loop.call_later(delay, self._recover_now, id)
            else:
                now = time.time()
                self._outbox.put(id, lambda current: life.auto_reset(current, now) if current is record else current)
        elif record.relocatable and AgentState.DOWN in states:
            self._stranded.add(id)
            self._records.submit(lambda state: self._relocation(state, record)).add_done_callback(_log_failure)

    def _recover_now(self, id: str) -> None:
        self._recoveries.pop(id, None)
        self._recover(id)

    def _cancel_recovery(self, id: str) -> None:
        self._stranded.discard(id)
        timer = self._recoveries.pop(id, None)
        if timer:
            timer.cancel()

    def _relocation(self, state: State, record: Partition) -> tuple[Sequence[Change], None]:
        """A command of its own: where it moves depends on all that happened before."""
        if state.partitions.get(record.id) is not record:
            return [], None
        ipus = life.other_place(state, record, self.supervisor.unavailable)
        if ipus is None:
            return [], None
        _log.info("partition moves", partition=record.id)
        return [Put(life.auto_reset(record, time.time(), ipus))], None


def _log_failure(done: Future[None]) -> None:
    if error := done.exception():
        _log.error("partition not moved", reason=str(error))


def _not_removed(id: str, reason: str) -> RuleError:
    return RuleError(Code.FAILED_PRECONDITION, f"Cannot remove partition {shown(id)}: {reason}")


def _devices(drive: Drive) -> list[Device]:
    """The devices in the order of the partition's IPUs."""
    devices: dict[int, Device] = {}
    for agent_id, indices in drive.indices.items():
        result = drive.devices[agent_id]
        for index, device in zip(indices, result.devices, strict=True):
            devices[index] = Device(
                ip=device.ip,
                server_port=device.server_port,
                rdma_port=device.rdma_port,
                device_id=device.device_id,
                ipu_arch_id=device.ipu_arch_id,
                chip_id=device.chip_id,
                gwsw_version=device.gwsw_version,
                ipum_sw_version=device.ipum_sw_version,
                ipuof_server_version=result.ipuof_server_version,
            )
    return [devices[index] for index in range(len(devices))]
