# SPDX-License-Identifier: GPL-3.0-or-later
"""Reservation of partitions for plain pods.

A pod can only use the V-IPU controllers of its node. So pods queue for each set of controllers. In each namespace, the
oldest one is first. It also waits for older jobs of the namespace that wait for IPUs, for ten minutes at most.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from openipu.kubernetes.cluster.keyed_locks import KeyedLocks
from openipu.kubernetes.cluster.work_queue import WorkQueue
from openipu.kubernetes.domain.job_queue import PATIENCE_SECONDS, JobQueue
from openipu.kubernetes.domain.names import Name
from openipu.kubernetes.operator.proxy_client import IMPOSSIBLE, ProxyClient, ProxyError

Group = tuple[str, ...]
"""Addresses of the controllers of a node."""


@dataclass(frozen=True, slots=True)
class WaitingPod:
    """A pod on a node that has no partition yet."""

    name: Name
    uid: str
    created: str  # timestamp
    ipus: int
    group: Group
    node_labels: Mapping[str, str]
    since: float  # when it began to wait


class PodQueue:
    """Waiting pods. ``reserved`` is called with a pod and its partition, ``refused`` with a pod and a sentence.

    ``older_job`` returns the name of a job of a namespace that waits for IPUs and was created before a time.
    Pods that no controller of their node can ever hold block no others.
    """

    def __init__(
        self,
        proxy: ProxyClient,
        reserved: Callable[[WaitingPod, str], None],
        refused: Callable[[WaitingPod, str], None],
        older_job: Callable[[str, str], str | None],
        retry_seconds: float = 5.0,
    ) -> None:
        self._proxy = proxy
        self._reserved = reserved
        self._refused = refused
        self._older_job = older_job
        self._retry_seconds = retry_seconds
        self._pods: dict[Name, WaitingPod] = {}
        self._queues: defaultdict[Group, JobQueue] = defaultdict(JobQueue)
        self._locks: KeyedLocks[Name] = KeyedLocks()  # held during requests to the proxy
        self._turns: WorkQueue[tuple[Group, str]] = WorkQueue(self._serve)

    def __contains__(self, name: object) -> bool:
        return name in self._pods

    def __len__(self) -> int:
        return len(self._pods)

    @property
    def unschedulable(self) -> int:
        """Number of pods that cannot run at present."""
        return sum(each.unschedulable for each in self._queues.values())

    @property
    def longest_wait(self) -> float:
        """Seconds for which a pod that can run has waited longest. 0 if none waits."""
        now = time.monotonic()
        return max((each.longest_wait(now) for each in self._queues.values()), default=0.0)

    @property
    def queue(self) -> WorkQueue[tuple[Group, str]]:
        """Queue of groups and namespaces with waiting pods."""
        return self._turns

    async def run(self) -> None:
        """Reserve partitions until cancelled."""
        await self._turns.run()

    def add(self, pod: WaitingPod) -> None:
        """Queue a pod, unless it waits already."""
        if pod.name not in self._pods:
            self._pods[pod.name] = pod
            self._queues[pod.group].add(pod.name, pod.created, pod.since)
            self._turns.add((pod.group, pod.name[0]))

    async def withdraw(self, name: Name) -> None:
        """Remove a pod. When this returns, no reservation for it is in progress."""
        pod = self._pods.get(name)
        if pod is not None:
            self._leave(pod)
        async with self._locks.hold(name):
            pass

    def retry(self) -> None:
        """Try again, because IPUs were released."""
        for group, queue in self._queues.items():
            for namespace in queue.namespaces():
                self._turns.add((group, namespace))

    async def _serve(self, turn: tuple[Group, str]) -> float | None:
        """Request the partition of the first pods of a namespace. Return the seconds until the next attempt."""
        group, namespace = turn
        queue = self._queues.get(group)
        candidates = [] if queue is None else queue.candidates(namespace)
        if queue is None or not candidates:
            return None
        impossible: dict[int, str] = {}  # number of IPUs -> why no controller of the group can ever have them
        for name in candidates:
            if await self._request(queue, name, impossible):
                return 0.0
            if name in queue and queue.is_schedulable(name):
                return self._retry_seconds
        is_next = queue.first(namespace) not in (None, *candidates)
        return 0.0 if is_next else self._retry_seconds

    async def _request(self, queue: JobQueue, name: Name, impossible: dict[int, str]) -> bool:
        """Request the partition of a pod. Return whether it has received it, or has left the queue."""
        async with self._locks.hold(name):
            pod = self._pods.get(name)
            if pod is None:
                return True
            obstacle = self._obstacle(queue, pod)
            if obstacle:
                self._refused(pod, obstacle)
                return False
            try:
                if pod.ipus not in impossible:
                    partition = await self._proxy.reserve_for_pod(name, pod.uid, pod.ipus, pod.node_labels)
            except ProxyError as error:
                if error.reason not in IMPOSSIBLE:
                    self._set_schedulable(pod, str(error), schedulable=True)
                    return False
                impossible[pod.ipus] = str(error)
            if pod.ipus in impossible:
                self._set_schedulable(pod, impossible[pod.ipus], schedulable=False)
                return False
            if self._pods.get(name) is pod:
                self._leave(pod)
            self._reserved(pod, partition)
        return True

    def _set_schedulable(self, pod: WaitingPod, reason: str, *, schedulable: bool) -> None:
        """Note why a pod has received no partition, and whether it can receive one when IPUs are free."""
        if self._pods.get(pod.name) is pod:
            self._queues[pod.group].set_schedulable(pod.name, schedulable=schedulable)
        self._refused(pod, reason)

    def _obstacle(self, queue: JobQueue, pod: WaitingPod) -> str:
        """Return which job or pod comes first, an empty text if none does."""
        now = time.monotonic()
        blocking = queue.blocked_by(pod.name, now)
        if blocking is not None:
            return f"Pod {'/'.join(blocking)} has waited for a long time and comes first."
        job = self._older_job(pod.name[0], pod.created) if now - pod.since < PATIENCE_SECONDS else None
        return f"Job {pod.name[0]}/{job} is older and comes first." if job else ""

    def _leave(self, pod: WaitingPod) -> None:
        del self._pods[pod.name]
        queue = self._queues[pod.group]
        queue.remove(pod.name)
        if not len(queue):
            del self._queues[pod.group]
        self._turns.add((pod.group, pod.name[0]))
