# SPDX-License-Identifier: GPL-3.0-or-later
"""Partitions of jobs and pods: reserve, reset and release them at the V-IPU controllers.

A record is durable before its partition is created, and removed after its partition is. So a proxy that is killed at
any time leaves no partition without a record, and its successor continues where it stopped.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import structlog

from openipu.kubernetes.cluster.keyed_locks import KeyedLocks
from openipu.kubernetes.cluster.work_queue import WorkQueue
from openipu.kubernetes.domain import tracking
from openipu.kubernetes.domain.controllers import Controller
from openipu.kubernetes.domain.tracking import Owner, Phase, Record
from openipu.kubernetes.proxy.controller import ControllerClient, PartitionState, is_ambiguous, responding
from openipu.kubernetes.proxy.pool import Pool
from openipu.kubernetes.proxy.tracker import Tracker
from openipu.shared.vipu.client import VipuError

_log = structlog.get_logger("openipu.kubernetes.proxy.reservations")

_RESET_SECONDS = 180.0  # until a reset partition must be ACTIVE
_LONGEST_PAUSE = 1.0  # between reads of a partition


class NoCapacityError(Exception):
    """Raised when no controller has room for a partition."""

    error_code = "OPU608"


class TooLargeError(Exception):
    """Raised when a partition is larger than any that the controllers can have, even when they are empty."""

    error_code = "OPU608"


class NoControllerError(Exception):
    """Raised when no controller of the list may have a partition."""

    error_code = "OPU608"


class ControllersUnavailableError(Exception):
    """Raised when a controller that is needed does not respond."""

    error_code = "OPU200"


class MissingPartitionError(Exception):
    """Raised when an owner has no partition."""

    error_code = "OPU605"


class PartitionFailedError(Exception):
    """Raised when a partition is in state ERROR, or does not become ACTIVE in time."""

    error_code = "OPU609"


@dataclass(frozen=True, slots=True)
class Reservation:
    """A partition of an owner, and the controller that has it."""

    record: Record
    client: ControllerClient


@dataclass(slots=True)
class _Refusals:
    """Reasons why no controller has created a partition."""

    full: bool = False
    largest: int = 0  # IPUs of the largest partition that a controller can have
    unreachable: list[str] = field(default_factory=list)
    rejections: list[VipuError] = field(default_factory=list)

    def add(self, error: VipuError) -> None:
        """Note the error of a controller that responded."""
        if error.code == "RESOURCE_EXHAUSTED":
            self.full = True
        else:
            self.rejections.append(error)

    def error(self, size: int) -> Exception:
        """Return the error for the caller."""
        if self.rejections and not self.full:
            return self.rejections[0]
        if self.unreachable and not self.full:
            return ControllersUnavailableError(self.unreachable[0])
        if not self.full:
            return TooLargeError(
                f"No V-IPU controller that the job may use can have a partition of {size} IPUs. The largest possible "
                f"one has {self.largest}. Request fewer IPUs, or add IPU-Machines to the allocation."
            )
        text = f"No V-IPU controller has {size} free IPU{'s' if size > 1 else ''} for a partition."
        return NoCapacityError(" ".join([text, *self.unreachable]))


class Reservations:
    """All partitions of a Kubernetes cluster. ``cluster`` identifies it."""

    def __init__(self, pool: Pool, tracker: Tracker, cluster: str) -> None:
        self._pool = pool
        self._tracker = tracker
        self._cluster = cluster
        self._locks: KeyedLocks[tuple[str, int]] = KeyedLocks()  # by UID of an owner, and instance
        self._releases = WorkQueue(self._release)
        self._released: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)

    async def run(self) -> None:
        """Release what must be released, until cancelled."""
        for each in self._tracker:
            if each.phase is Phase.RELEASING:
                self._releases.add(each.id)
        await self._releases.run()

    def controllers(self) -> list[Controller]:
        """Return the V-IPU controllers of the list."""
        return [each.controller for each in self._pool]

    def find(self, uid: str, instance: int) -> Record | None:
        """Return the record of an instance of an owner, unless it is being released."""
        records = (each for each in self._tracker.of(uid) if each.phase is not Phase.RELEASING)
        return tracking.find(records, uid, instance)

    def _own(self, owner: Owner, instance: int) -> Record | None:
        """Return the record of an instance, None if its owner has the same UID, but another namespace or name.

        Pods name their owners themselves. So a pod could name a job of another namespace.
        """
        record = self.find(owner.uid, instance)
        return record if record is not None and record.owner == owner else None

    def _existing(self, owner: Owner, instance: int) -> Record:
        """Return the record of an instance. Raises MissingPartitionError."""
        record = self._own(owner, instance)
        if record is None:
            raise MissingPartitionError(f"{owner} has no partition for instance {instance}.")
        return record

    async def reserve(
        self,
        owner: Owner,
        instance: int,
        size: int,
        workers: int,
        usable: Callable[[ControllerClient], bool] = lambda client: True,
    ) -> Reservation:
        """Return the partition of an instance, a new one if it has none. ``usable`` restricts the controllers.

        Raises NoControllerError, TooLargeError, NoCapacityError, ControllersUnavailableError, TrackerError and
        VipuError.
        """
        async with self._locks.hold((owner.uid, instance)):
            record = self.find(owner.uid, instance)
            if record is not None:
                if (record.size, record.workers) != (size, workers):
                    await self._start_release([record])
                else:
                    found = await self._resume(record)
                    if found is not None:
                        return found
            return await self._create(owner, instance, size, workers, usable)

    async def reset(self, owner: Owner, instance: int) -> Reservation:
        """Reset the partition of an instance and wait until it is ACTIVE. A lost partition is created again.

        Raises MissingPartitionError, PartitionFailedError and the errors of ``reserve``.
        """
        record = self._existing(owner, instance)
        # The pods of the partition are on nodes with the label of its controller.
        lost = self._pool.find(record.controller)
        label = None if lost is None else lost.controller.node_label
        found = await self.reserve(
            record.owner, instance, record.size, record.workers, lambda client: client.controller.node_label == label
        )
        async with self._locks.hold((owner.uid, instance)):
            try:
                await self._settled(found)
                await found.client.reset(found.record.id)
                await self._settled(found, active=True)
                _log.info("partition reset", partition=found.record.id, owner=str(owner))
            except VipuError as error:
                if is_ambiguous(error):
                    raise ControllersUnavailableError(str(error)) from None
                raise
            return found

    async def status(self, owner: Owner, instance: int) -> tuple[Reservation, PartitionState]:
        """Return the partition of an instance and its state. Raises MissingPartitionError and VipuError."""
        record = self._own(owner, instance)
        client = None if record is None else self._pool.find(record.controller)
        if record is None or client is None or record.phase is not Phase.RESERVED:
            raise MissingPartitionError("There is no such partition. Reserve it first.")
        state = await client.status(record.id)
        return Reservation(record, client), state or PartitionState("REMOVED")

    async def release(self, uid: str, instance: int | None = None, seconds: float = 60.0) -> bool:
        """Release the partitions of an owner, or of one instance. Return whether all are gone in this time.

        They are released in any case, as soon as their controllers respond. Raises TrackerError.
        """
        ids = []
        for each in self._tracker.of(uid):
            if instance in (None, each.instance):
                async with self._locks.hold((uid, each.instance)):
                    record = self._tracker.get(each.id)
                    if record is not None:
                        ids.append(record.id)
                        await self._start_release([record])
        waits = [self._released[id].wait() for id in ids if id in self._tracker]
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(*waits)
        except TimeoutError:
            return False
        return True

    async def release_own(self, owner: Owner, instance: int, seconds: float) -> bool:
        """Release the partition of an instance for its launcher. See ``release``. Raises MissingPartitionError."""
        self._existing(owner, instance)
        return await self.release(owner.uid, instance, seconds)

    async def _resume(self, record: Record) -> Reservation | None:
        """Return an existing partition. Return None if it does not exist, and drop its record then."""
        client = self._pool.find(record.controller)
        if client is None:
            raise ControllersUnavailableError(
                f"Partition {record.id} is at the V-IPU controller {record.controller}, which is not in the list. Add "
                "the controller to the list again."
            )
        try:
            state = await client.status(record.id)
        except VipuError as error:
            raise ControllersUnavailableError(str(error)) from None
        if state is not None and state.state != "REMOVED":
            if record.phase is Phase.RESERVING:
                record = replace(record, phase=Phase.RESERVED)
                await self._tracker.write({record.id: record})
            return Reservation(record, client)
        if record.phase is Phase.RESERVED:
            _log.warning("partition lost; it is created again", partition=record.id, owner=str(record.owner))
            await self._tracker.write({record.id: None})
            return None
        # A creation that was interrupted may still be in progress there, so its id is not used again.
        await self._start_release([record])
        return None

    async def _create(
        self, owner: Owner, instance: int, size: int, workers: int, usable: Callable[[ControllerClient], bool]
    ) -> Reservation:
        refusals, clients = _Refusals(), [each for each in self._pool if usable(each)]
        if not len(self._pool):
            raise NoControllerError("There is no V-IPU controller. Set vipuControllers.")
        if not clients:
            raise NoControllerError(
                "No V-IPU controller has the label of these nodes. Label the nodes, or select nodes with its label."
            )
        tried = responding(clients)
        for client in tried:
            try:
                fit = await client.fit(size)
            except VipuError as error:
                refusals.unreachable.append(str(error))
                continue
            if not fit.fits:
                refusals.full |= fit.largest >= size
                refusals.largest = max(refusals.largest, fit.largest)
                continue
            found = await self._create_at(client, owner, instance, size, workers, refusals)
            if found is not None:
                return found
        left_out = (each.controller.address for each in clients if each not in tried)
        refusals.unreachable += [f"The V-IPU controller {each} does not respond." for each in left_out]
        raise refusals.error(size)

    async def _create_at(
        self, client: ControllerClient, owner: Owner, instance: int, size: int, workers: int, refusals: _Refusals
    ) -> Reservation | None:
        """Create a partition at a controller. Return None and note the reason if that is not possible."""
        used: dict[str, object] = dict(self._tracker.ids)
        while True:
            id = tracking.partition_id(owner, instance, self._cluster, used)
            if id in used:
                refusals.rejections.append(
                    VipuError(f"Partition {id} exists, but no job of this cluster has it. Remove it if it is unused.")
                )
                return None
            record = Record(id, owner, instance, size, workers, client.controller.address)
            await self._tracker.write({id: record})
            try:
                await client.create(id, size, workers)
            except VipuError as error:
                if is_ambiguous(error):
                    refusals.unreachable.append(str(error))
                    await self._start_release([record])
                    return None
                await self._tracker.write({id: None})
                if error.code != "ALREADY_EXISTS":
                    refusals.add(error)
                    return None
                used[id] = record  # it belongs to another owner: use another id
                continue
            record = replace(record, phase=Phase.RESERVED)
            await self._tracker.write({id: record})
            _log.info("partition reserved", partition=id, owner=str(owner), size=size, controller=record.controller)
            return Reservation(record, client)

    async def _settled(self, found: Reservation, *, active: bool = False) -> None:
        """Wait until the controller has finished its operation. Raises PartitionFailedError and VipuError."""
        id, deadline, pause = found.record.id, time.monotonic() + _RESET_SECONDS, 0.02
        while True:
            state = await found.client.status(id)
            if state is None:
                raise PartitionFailedError(f"Partition {id} was removed at its V-IPU controller. Restart the job.")
            if state.state == "ACTIVE" and not state.busy:
                return
            if not state.busy and (not active or state.state == "ERROR"):
                if not active:
                    return
                errors = "; ".join(state.errors) or "no reason given"
                raise PartitionFailedError(f"Partition {id} is in state ERROR: {errors}.")
            if time.monotonic() > deadline:
                raise PartitionFailedError(f"Partition {id} is not ACTIVE after {_RESET_SECONDS:g} s. Try again.")
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, _LONGEST_PAUSE)

    async def _start_release(self, records: list[Record]) -> None:
        await self._tracker.write({each.id: replace(each, phase=Phase.RELEASING) for each in records})
        for each in records:
            self._releases.add(each.id)

    async def _release(self, id: str) -> None:
        """Remove a partition and then its record. A failure is repeated later."""
        record = self._tracker.get(id)
        if record is None or record.phase is not Phase.RELEASING:
            return
        client = self._pool.find(record.controller)
        if client is None:
            raise ControllersUnavailableError(
                f"Cannot release partition {id}: the V-IPU controller {record.controller} is not in the list. "
                "Add it to vipuControllers."
            )
        await client.remove(id)
        await self._tracker.write({id: None})
        _log.info("partition released", partition=id, owner=str(record.owner))
        self._released.pop(id, asyncio.Event()).set()
