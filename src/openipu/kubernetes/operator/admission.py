# SPDX-License-Identifier: GPL-3.0-or-later
"""Reservation of partitions for jobs, first come first served in each namespace.

A job that cannot run at present blocks no other: one that no V-IPU controller can hold, or whose pods were denied. It
is tried again and again, before all later jobs.

Each instance is a gang of its own. Its pods start when it has its partition, whether or not the other instances of the
job have theirs. So jobs never wait for each other with some of their IPUs in hand.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import structlog

from openipu.kubernetes.cluster.keyed_locks import KeyedLocks
from openipu.kubernetes.cluster.work_queue import WorkQueue
from openipu.kubernetes.domain.environment import Partition
from openipu.kubernetes.domain.job import Job, Shape
from openipu.kubernetes.domain.job_queue import JobQueue, is_reportable
from openipu.kubernetes.domain.names import Name
from openipu.kubernetes.domain.status import DENIED, UNSCHEDULABLE
from openipu.kubernetes.operator.proxy_client import IMPOSSIBLE, NO_CAPACITY, UNAVAILABLE, ProxyClient, ProxyError

_log = structlog.get_logger("openipu.kubernetes.operator.admission")

_RETRY_SECONDS = 5.0  # others may release IPUs at the V-IPU controller


@dataclass(frozen=True, slots=True)
class Grant:
    """A reserved partition, its size, and when it was reserved by the monotonic clock."""

    partition: Partition
    shape: Shape
    since: float

    def is_outdated(self, job: Job) -> bool:
        """Return whether the job now has another size or another number of workers."""
        return (self.shape.ipus, self.shape.workers) != (job.shape.ipus, job.shape.workers)


class Obstacle(NamedTuple):
    """Cause of the wait of a job, empty if unknown. ``reason``: of its condition, if it cannot run at present."""

    text: str = ""
    reason: str = ""


@dataclass(slots=True)
class _PendingReservation:
    job: Job
    instances: set[int]
    reason: str = ""
    reported: int = 0  # position
    denied: bool = False  # its pods were
    retry_at: float = 0.0  # of a denied job

    @property
    def demand(self) -> _Demand:
        return self.job.shape.ipus, frozenset(self.job.node_selector.items())


_Demand = tuple[int, frozenset[tuple[str, str]]]
"""IPUs of a partition, and the labels of its nodes. Jobs with the same demand can run, or cannot run, together."""


@dataclass(frozen=True, slots=True)
class _Rejection:
    """Rejection of a demand. ``retry_at``: time of the next request for it."""

    text: str
    retry_at: float = field(compare=False)


class Admission:
    """Reservations of all jobs. ``changed`` is called with a job that received a partition, or another position."""

    def __init__(
        self, proxy: ProxyClient, changed: Callable[[Name], None], retry_seconds: float = _RETRY_SECONDS
    ) -> None:
        self._proxy = proxy
        self._changed = changed
        self._retry_seconds = retry_seconds
        self._queue = JobQueue()
        self._pending: dict[Name, _PendingReservation] = {}
        self._rejections: dict[_Demand, _Rejection] = {}
        self._unserved: set[Name] = set()  # jobs whose controllers, or the proxy, do not respond
        self._grants: dict[str, dict[int, Grant]] = {}  # UID of a job -> instance -> grant
        self._locks: KeyedLocks[Name] = KeyedLocks()  # held during requests to the proxy
        self._namespaces = WorkQueue(self._serve)

    def __len__(self) -> int:
        """Return the number of waiting jobs."""
        return len(self._queue)

    @property
    def unschedulable(self) -> int:
        """Number of waiting jobs that cannot run at present."""
        return self._queue.unschedulable

    @property
    def rejected(self) -> set[_Demand]:
        """Demands of waiting jobs that cannot run at present."""
        return set(self._rejections)

    @property
    def unserved(self) -> set[Name]:
        """Waiting jobs whose V-IPU controllers, or the proxy, do not respond."""
        return set(self._unserved)

    @property
    def longest_wait(self) -> float:
        """Seconds for which a job that can run has waited longest for its partitions since this operator leads."""
        return self._queue.longest_wait(time.monotonic())

    @property
    def queue(self) -> WorkQueue[str]:
        """Namespaces whose first job requests partitions."""
        return self._namespaces

    async def run(self) -> None:
        """Reserve partitions until cancelled."""
        await self._namespaces.run()

    def grant(self, uid: str, instance: int) -> Grant | None:
        """Return the partition of an instance, None if it has none or nothing is known."""
        return self._grants.get(uid, {}).get(instance)

    def granted(self, uid: str) -> set[int]:
        """Return the instances of a job that have a partition, as far as is known."""
        return set(self._grants.get(uid, ()))

    def enqueue(self, job: Job, instance: int, created: str, *, denied: bool = False) -> None:
        """Queue a job for the partition of an instance. ``created``: timestamp that determines its position.

        ``denied``: its pods were denied when it last had IPUs, so it does not block others.
        """
        pending = self._pending.setdefault(job.name, _PendingReservation(job, set()))
        if pending.job.uid != job.uid:
            pending = self._pending[job.name] = _PendingReservation(job, set())
        former, pending.job, pending.denied = pending.demand, job, denied
        if instance not in pending.instances or pending.demand != former:
            pending.instances.add(instance)
            self._queue.add(job.name, created, time.monotonic())
            self._sort(pending)
            self._discard_rejection(former)
            if job.name in self._queue.candidates(job.name[0]):
                self._namespaces.add(job.name[0])

    def obstacle(self, job: Name) -> Obstacle:
        """Return why a job waits: its position in its namespace, and why the first job has no IPUs yet.

        Without a text if the job does not wait, or if the first request has not failed.
        """
        if job not in self._queue:
            return Obstacle()
        pending = self._pending[job]
        rejection = self._rejections.get(pending.demand)
        if rejection is not None:
            return Obstacle(f"{rejection.text} Until then, other jobs come first.", UNSCHEDULABLE)
        if pending.denied:
            text = f"Its pods were denied, so other jobs come first. {pending.reason}" if pending.reason else ""
            return Obstacle(text, DENIED)
        first = self._queue.first(job[0])
        if first is None or not self._pending[first].reason:
            return Obstacle()
        position = pending.reported = self._queue.position(job)
        return Obstacle(
            f"Position {position} of the jobs in namespace {job[0]} that wait for IPUs. {self._pending[first].reason}"
        )

    async def resume(self, job: Job, instance: int) -> Partition:
        """Return the partition that an instance has according to the proxy. Raises ProxyError."""
        async with self._locks.hold(job.name):
            partition = await self._reserve(job, instance)
            pending = self._pending.get(job.name)
            if pending is not None:
                self._take_out(pending, instance)
            return partition

    async def release(self, job: Name, uid: str, instance: int | None = None) -> bool:
        """Release the partitions of a job, or of one instance. Return False if this will happen later.

        Raises ProxyError.
        """
        await self.withdraw(job, instance)
        done = await self._proxy.release(job, uid, instance)
        if instance is None:
            self._grants.pop(uid, None)
        else:
            self._grants.get(uid, {}).pop(instance, None)
        for namespace in self._queue.namespaces():
            self._namespaces.add(namespace)
        return done

    async def discard(self, job: Name, uid: str) -> None:
        """Discard the state of a job that no longer exists."""
        await self.withdraw(job)
        self._grants.pop(uid, None)

    async def withdraw(self, job: Name, instance: int | None = None) -> None:
        """Remove a job, or one instance of it, from the queue.

        When this returns, no reservation for it is in progress.
        """
        pending = self._pending.get(job)
        if pending is not None and instance is not None:
            self._take_out(pending, instance)
        elif pending is not None:
            self._leave(pending)
        async with self._locks.hold(job):
            pass

    async def _serve(self, namespace: str) -> float | None:
        """Request the partitions of the first jobs of a namespace. Return the seconds until the next attempt."""
        candidates = self._queue.candidates(namespace)
        for name in candidates:
            if not self._is_due(name):
                continue
            if await self._request(name):
                return 0.0
            if name in self._queue and self._queue.is_schedulable(name):
                return self._retry_seconds
        if self._queue.first(namespace) not in (None, *candidates):
            return 0.0  # the first one cannot run: it is the turn of the next one
        return self._retry_seconds if candidates else None

    def _is_due(self, name: Name) -> bool:
        """Return whether a candidate may request partitions now. One that cannot run does so from time to time."""
        pending = self._pending.get(name)
        if pending is None or self._queue.is_schedulable(name):
            return True
        rejection = self._rejections.get(pending.demand)
        return time.monotonic() >= (pending.retry_at if rejection is None else rejection.retry_at)

    async def _request(self, name: Name) -> bool:
        """Request the partitions of a job. Return whether it has received them, or has left the queue."""
        async with self._locks.hold(name):
            pending = self._pending.get(name)
            if pending is None:
                return True
            blocking = self._queue.blocked_by(name, time.monotonic(), self._unserved)
            if blocking is not None:
                self._report_wait(pending, f"Job {'/'.join(blocking)} has waited for a long time and comes first.")
                return False
            demand = pending.demand
            try:
                for instance in sorted(pending.instances):
                    if instance in pending.instances:  # not withdrawn meanwhile
                        partition = await self._reserve(pending.job, instance)
                        self._take_out(pending, instance)
                        _log.info("partition reserved", job="/".join(name), instance=instance, partition=partition.id)
                        self._changed(name)
            except ProxyError as error:
                if error.reason != NO_CAPACITY and str(error) != pending.reason:
                    _log.warning("partition not reserved", job="/".join(name), error=str(error))
                if (
                    self._pending.get(name) is pending and pending.demand == demand
                ):  # not withdrawn or changed meanwhile
                    self._rejected(pending, error)
                return False
        return True

    def _rejected(self, pending: _PendingReservation, error: ProxyError) -> None:
        """Note why a job has received no partition, and whether jobs with its demand can run at all."""
        name, demand, now = pending.job.name, pending.demand, time.monotonic()
        pending.retry_at = now + self._retry_seconds
        if error.reason == UNAVAILABLE:
            self._unserved.add(name)
        else:
            self._unserved.discard(name)
        before = self._rejections.pop(demand, None)
        if error.reason in IMPOSSIBLE:
            self._rejections[demand] = _Rejection(str(error), pending.retry_at)
        if before != self._rejections.get(demand):
            self._sort_all(demand)
        self._report_wait(pending, str(error))

    def _sort_all(self, demand: _Demand) -> None:
        """Note that jobs with a demand can run, or cannot run, from now on."""
        for each in [each for each in self._pending.values() if each.demand == demand]:
            self._sort(each)
            self._changed(each.job.name)

    def _discard_rejection(self, demand: _Demand) -> None:
        """Discard the rejection of a demand that no job has any more."""
        if demand in self._rejections and all(each.demand != demand for each in self._pending.values()):
            del self._rejections[demand]

    def _sort(self, pending: _PendingReservation) -> None:
        """Mark a job as schedulable exactly if it can run as far as is known."""
        can_run = not pending.denied and pending.demand not in self._rejections
        self._queue.set_schedulable(pending.job.name, schedulable=can_run)

    async def _reserve(self, job: Job, instance: int) -> Partition:
        """Reserve the partition of an instance, and note it. Raises ProxyError."""
        partition = await self._proxy.reserve(job, instance)
        self._grants.setdefault(job.uid, {})[instance] = Grant(partition, job.shape, time.monotonic())
        return partition

    def _report_wait(self, pending: _PendingReservation, reason: str) -> None:
        """Note why the first job of a namespace waits, and report new positions to it and to those behind it."""
        name = pending.job.name
        if reason != pending.reason:
            pending.reason = reason
            self._changed(name)
        for position, each in enumerate(self._queue.behind(name[0]), 2):
            if is_reportable(position, self._pending[each].reported):
                self._changed(each)

    def _take_out(self, pending: _PendingReservation, instance: int) -> None:
        """Remove an instance from the queue, and its job with the last one."""
        pending.instances.discard(instance)
        if not pending.instances:
            self._leave(pending)

    def _leave(self, pending: _PendingReservation) -> None:
        """Remove a job from the queue. Then schedule the next one."""
        name = pending.job.name
        pending.instances.clear()
        if self._pending.get(name) is pending:
            del self._pending[name]
            self._queue.remove(name)
            self._unserved.discard(name)
            self._discard_rejection(pending.demand)
            self._namespaces.add(name[0])
