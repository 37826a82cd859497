# SPDX-License-Identifier: GPL-3.0-or-later
"""Reservation of partitions for jobs, first come first served in each namespace.

Each instance is a gang of its own: its pods start when it has its partition, whether or not the other instances of the
job have theirs. So jobs never wait for each other with some of their IPUs in hand.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from openipu.kubernetes.cluster.keyed_locks import KeyedLocks
from openipu.kubernetes.cluster.work_queue import WorkQueue
from openipu.kubernetes.domain.environment import Partition
from openipu.kubernetes.domain.job import Job
from openipu.kubernetes.domain.job_queue import JobQueue, is_reportable
from openipu.kubernetes.domain.names import Name
from openipu.kubernetes.operator.proxy_client import NO_CAPACITY, ProxyClient, ProxyError

_log = structlog.get_logger("openipu.kubernetes.operator.admission")

_RETRY_SECONDS = 5.0  # others may release IPUs at the V-IPU controller


@dataclass(frozen=True, slots=True)
class Grant:
    """A reserved partition, and when it was reserved by the monotonic clock."""

    partition: Partition
    since: float


@dataclass(slots=True)
class _PendingReservation:
    job: Job
    instances: set[int]
    reason: str = ""
    reported: int = 0  # position


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
        self._grants: dict[str, dict[int, Grant]] = {}  # UID of a job -> instance -> grant
        self._locks: KeyedLocks[Name] = KeyedLocks()  # held during requests to the proxy
        self._namespaces = WorkQueue(self._serve)

    def __len__(self) -> int:
        """Return the number of waiting jobs."""
        return len(self._queue)

    @property
    def longest_wait(self) -> float:
        """Seconds for which a job has waited longest for its partitions since this operator leads."""
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

    def enqueue(self, job: Job, instance: int, created: str) -> None:
        """Queue a job for the partition of an instance. ``created``: timestamp that determines its position."""
        pending = self._pending.setdefault(job.name, _PendingReservation(job, set()))
        if pending.job.uid != job.uid:
            pending = self._pending[job.name] = _PendingReservation(job, set())
        pending.job = job
        if instance not in pending.instances:
            pending.instances.add(instance)
            self._queue.add(job.name, created, time.monotonic())
            if self._queue.first(job.name[0]) == job.name:
                self._namespaces.add(job.name[0])

    def obstacle(self, job: Name) -> str:
        """Return why a job waits: its position in its namespace, and why the first job has no IPUs yet.

        Empty if the job does not wait, or if the first request has not failed.
        """
        first = self._queue.first(job[0]) if job in self._queue else None
        if first is None or not self._pending[first].reason:
            return ""
        position = self._pending[job].reported = self._queue.position(job)
        return (
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
        """Request the partitions of the first job of a namespace. Return the seconds until the next attempt."""
        name = self._queue.first(namespace)
        if name is None:
            return None
        async with self._locks.hold(name):
            pending = self._pending.get(name)
            if pending is None:
                return 0.0
            blocking = self._queue.blocked_by(name, time.monotonic())
            if blocking is not None:
                self._report_wait(pending, f"Job {'/'.join(blocking)} has waited for a long time and comes first.")
                return self._retry_seconds
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
                self._report_wait(pending, str(error))
                return self._retry_seconds
        return 0.0

    async def _reserve(self, job: Job, instance: int) -> Partition:
        """Reserve the partition of an instance, and note it. Raises ProxyError."""
        partition = await self._proxy.reserve(job, instance)
        self._grants.setdefault(job.uid, {})[instance] = Grant(partition, time.monotonic())
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
            self._namespaces.add(name[0])
