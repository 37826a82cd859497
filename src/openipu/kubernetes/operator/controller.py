# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller of jobs: caches, queue and reconciler of the operator that leads."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import structlog

from openipu.kubernetes.cluster.client import IPUJOBS, PODS, Client, Object
from openipu.kubernetes.cluster.events import EventRecorder
from openipu.kubernetes.cluster.informer import Informer, Key, key
from openipu.kubernetes.cluster.work_queue import WorkQueue
from openipu.kubernetes.domain import reserved
from openipu.kubernetes.domain.pods import PodOptions
from openipu.kubernetes.operator import job_store
from openipu.kubernetes.operator.admission import Admission
from openipu.kubernetes.operator.children import CHECK_SECONDS, Children, job_key, needed
from openipu.kubernetes.operator.job_store import JobStore
from openipu.kubernetes.operator.meters import Meters, RestartCounter
from openipu.kubernetes.operator.partition_watch import PartitionWatch
from openipu.kubernetes.operator.proxy_client import ProxyClient
from openipu.kubernetes.operator.reconciler import Reconciler

_log = structlog.get_logger("openipu.kubernetes.operator.controller")

COMPONENT = "ipu-operator"  # source of events


class JobController:
    """Controller of the jobs of all or of some namespaces. Call ``run`` once."""

    def __init__(
        self,
        client: Client,
        proxy: ProxyClient,
        options: PodOptions,
        *,
        namespaces: Iterable[str] = ("",),
        back_off_scale: float = 1.0,
        watch_seconds: float = 5.0,
        retry_seconds: float = 5.0,
        check_seconds: float = CHECK_SECONDS,
        meters: Meters | None = None,
    ) -> None:
        """``watch_seconds``: between readings of partition states. ``retry_seconds``: between attempts to reserve.

        ``check_seconds``: between checks of the objects of a job other than pods.
        """
        spaces = tuple(namespaces)
        meters = meters or Meters()
        self._restarts = RestartCounter(meters)
        self.queue: WorkQueue[Key] = WorkQueue(meters.timed(self._handle))
        self.jobs = Informer(client, IPUJOBS, self._job_changed, namespaces=spaces, keep=job_store.needed)
        self.pods = Informer(
            client,
            PODS,
            self._pod_changed,
            namespaces=spaces,
            selector=reserved.JOB_LABEL,
            group=job_key,
            keep=needed,
        )
        self.admission = Admission(proxy, self.queue.add, retry_seconds)
        self.partitions = PartitionWatch(proxy, self.admission, self._partition_changed, watch_seconds)
        self._children = Children(client, self.pods, options, check_seconds)
        self.store = JobStore(client, self.jobs)
        self._reconciler = Reconciler(
            self.store,
            self._children,
            self.admission,
            self.partitions,
            proxy,
            EventRecorder(client, COMPONENT),
            back_off_scale,
        )
        self._names: dict[str, Key] = {}  # UID of a job -> its key
        self._uids: defaultdict[Key, set[str]] = defaultdict(set)  # the same in the other direction
        self.synced = False  # whether the caches are complete

    @property
    def queues(self) -> dict[str, WorkQueue[Any]]:
        """Name -> work queue."""
        return {"jobs": self.queue, "reservations": self.admission.queue}

    async def run(self) -> None:
        """Run jobs until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.jobs.run())
            tasks.create_task(self.pods.run())
            await asyncio.gather(self.jobs.synced.wait(), self.pods.synced.wait(), self.partitions.read())
            _log.info("jobs found", jobs=len(self.jobs), pods=len(self.pods))
            self.synced = True
            tasks.create_task(self.partitions.run())
            tasks.create_task(self.admission.run())
            tasks.create_task(self.queue.run())

    async def _handle(self, name: Key) -> float | None:
        if self.jobs.get(name) is None:
            for uid in self._uids.pop(name, ()):
                del self._names[uid]
                await self._reconciler.removed(name, uid)
                _log.info("job removed", job="/".join(name))
        return await self._reconciler.reconcile(name)

    def _job_changed(self, job: Object) -> None:
        name = key(job)
        exists = self.jobs.get(name) is not None
        self._restarts.changed(job, exists=exists)
        if exists:
            uid = job["metadata"]["uid"]
            self._names[uid] = name
            self._uids[name].add(uid)
        if not exists or self.store.receive(name, job):
            self.queue.add(name)

    def _pod_changed(self, pod: Object) -> None:
        self._children.seen(pod)
        name = job_key(pod)
        if name is not None:
            self.queue.add(name)

    def _partition_changed(self, uid: str) -> None:
        name = self._names.get(uid)
        if name is not None:
            self.queue.add(name)
