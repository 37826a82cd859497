# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller of plain pods with IPUs: reserves their partitions, and releases them when the pods end.

A pod is scheduled first. Then it receives a partition of a V-IPU controller of its node, for which its init container
waits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Set
from typing import Any

import structlog

from openipu.kubernetes.cluster.client import NODES, PODS, Client, Object
from openipu.kubernetes.cluster.events import EventRecorder
from openipu.kubernetes.cluster.informer import Informer, Key, key
from openipu.kubernetes.cluster.work_queue import WorkQueue
from openipu.kubernetes.domain import pod_injection, progress, reserved, status
from openipu.kubernetes.domain.controllers import suits
from openipu.kubernetes.operator.pod_queue import Group, PodQueue, WaitingPod
from openipu.kubernetes.operator.proxy_client import PartitionState, ProxyClient, ProxyError

_log = structlog.get_logger("openipu.kubernetes.operator.pod_controller")

_CONTROLLERS_SECONDS = 10.0  # for which the list of controllers is kept
_ABSENT_SECONDS = 30.0  # between checks of a pod that is not in the cache although it exists
_NO_CONTROLLER_SECONDS = 10.0  # until the labels of a node without controllers are read again
_ENDED = frozenset({"Succeeded", "Failed"})  # phases

Controllers = list[tuple[str, tuple[str, str] | None]]
"""Address and node label of each V-IPU controller."""


def needed(pod: Object) -> Object:
    """Return the part of a pod that the controller needs."""
    metadata, spec, state = pod["metadata"], pod["spec"], pod.get("status") or {}
    fields = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "labels")
    init = [each for each in spec.get("initContainers") or [] if each["name"] == pod_injection.INIT_CONTAINER]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {name: metadata[name] for name in fields if name in metadata},
        "spec": {"nodeName": spec.get("nodeName", ""), "initContainers": init},
        "status": {"phase": state.get("phase", "")},
    }


class PodController:
    """Controller of the plain pods of all or of some namespaces. Call ``run`` once."""

    def __init__(
        self,
        client: Client,
        proxy: ProxyClient,
        jobs: Informer,
        events: EventRecorder,
        *,
        namespaces: Iterable[str] = ("",),
        excluded: Set[str] = frozenset(),
        watch_seconds: float = 5.0,
        retry_seconds: float = 5.0,
    ) -> None:
        """``jobs``: cache of all jobs. ``excluded``: namespaces whose pods stay untouched."""
        self._client = client
        self._proxy = proxy
        self._jobs = jobs
        self._events = events
        self._excluded = excluded
        self._seconds = watch_seconds
        self._queue: WorkQueue[Key] = WorkQueue(self._handle)
        self.waiting = PodQueue(proxy, self._reserved, self._refused, self._older_job, retry_seconds)
        self._pods = Informer(
            client,
            PODS,
            lambda pod: self._queue.add(key(pod)),
            namespaces=namespaces,
            selector=f"{reserved.ROLE_LABEL}={pod_injection.ROLE}",
            keep=needed,
        )
        self._partitions: dict[str, PartitionState] = {}  # UID of a pod -> its partition
        self._since: dict[str, float] = {}  # UID -> when the partition was reserved
        self._messages: dict[Key, tuple[str, str]] = {}  # UID of a waiting pod, and the last reason why it waits
        self._notes: asyncio.Queue[tuple[Object, str, str, bool]] = asyncio.Queue()  # events to write
        self._controllers: tuple[float, Controllers] | None = None
        self.synced = False  # whether the caches are complete

    @property
    def queues(self) -> dict[str, WorkQueue[Any]]:
        """Name -> work queue."""
        return {"pods": self._queue, "pod_reservations": self.waiting.queue}

    async def run(self) -> None:
        """Serve pods until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._pods.run())
            await asyncio.gather(self._pods.synced.wait(), self._jobs.synced.wait())
            self.synced = True
            tasks.create_task(self._watch())
            tasks.create_task(self.waiting.run())
            tasks.create_task(self._queue.run())
            tasks.create_task(self._write_events())

    async def _handle(self, name: Key) -> float | None:
        """Take the next step for a pod. Return the seconds until the next one, None to wait for a change."""
        pod = self._pods.get(name)
        uid = "" if pod is None else pod["metadata"]["uid"]
        for each in [each for each in self._partitions.values() if each.name == name and each.uid != uid]:
            if await self._exists(name, each.uid):
                return _ABSENT_SECONDS  # a user has removed its label
            await self._release(name, each.uid)
        ipus = None if pod is None else pod_injection.ipus(pod)
        if pod is None or ipus is None or name[0] in self._excluded or progress.phase(pod) in _ENDED:
            await self.waiting.withdraw(name)
            if uid in self._partitions:
                await self._release(name, uid)
            self._messages.pop(name, None)
            return None
        if uid in self._partitions:
            return None
        # A pod that has passed its init container and has no partition has lost it.
        if progress.phase(pod) != "Pending" or pod["metadata"].get("deletionTimestamp") or not pod["spec"]["nodeName"]:
            await self.waiting.withdraw(name)
            return None
        return await self._enqueue(pod, ipus)

    async def _enqueue(self, pod: Object, ipus: int) -> float | None:
        """Queue a pod on a node for its partition."""
        name, metadata = key(pod), pod["metadata"]
        if name in self.waiting:
            return None
        node = pod["spec"]["nodeName"]
        labels = await self._node_labels(node)
        try:
            controllers = await self._list_controllers()
        except ProxyError as error:
            self._report_wait(name, metadata["uid"], ipus, str(error))
            return self._seconds
        group: Group = tuple(address for address, label in controllers if suits(label, labels))
        if not group:
            self._report_wait(name, metadata["uid"], ipus, f"Node {node} has the label of no V-IPU controller.")
            return _NO_CONTROLLER_SECONDS
        created = metadata["creationTimestamp"]
        self.waiting.add(WaitingPod(name, metadata["uid"], created, ipus, group, labels, time.monotonic()))
        return None

    async def _node_labels(self, node: str) -> Mapping[str, str]:
        found = await self._client.find(NODES, "", node)
        return {} if found is None else found["metadata"].get("labels") or {}

    async def _list_controllers(self) -> Controllers:
        if self._controllers is None or time.monotonic() - self._controllers[0] > _CONTROLLERS_SECONDS:
            self._controllers = time.monotonic(), await self._proxy.controllers()
        return self._controllers[1]

    async def _exists(self, name: Key, uid: str) -> bool:
        found = await self._client.find(PODS, *name)
        return found is not None and found["metadata"]["uid"] == uid and progress.phase(found) not in _ENDED

    async def _release(self, name: Key, uid: str) -> None:
        """Release the partition of a pod. If its controller does not respond, the proxy does so later."""
        await self.waiting.withdraw(name)
        await self._proxy.release_of_pod(name, uid)
        self._partitions.pop(uid, None)
        self._since.pop(uid, None)
        self.waiting.retry()

    def _reserved(self, pod: WaitingPod, partition: str) -> None:
        self._partitions[pod.uid] = PartitionState(pod.uid, 0, partition, "", pod.name)
        self._since[pod.uid] = time.monotonic()
        self._messages.pop(pod.name, None)
        self._note(pod.name, pod.uid, "IPUsReserved", f"Reserved partition {partition} with {pod.ipus} IPUs.")
        self._queue.add(pod.name)  # it may have ended meanwhile

    def _refused(self, pod: WaitingPod, reason: str) -> None:
        self._report_wait(pod.name, pod.uid, pod.ipus, reason)

    def _report_wait(self, name: Key, uid: str, ipus: int, reason: str) -> None:
        """Report why a pod waits, unless this was the last report."""
        if self._messages.get(name) != (uid, reason):
            self._messages[name] = uid, reason
            self._note(name, uid, "IPUsPending", f"The pod waits for {ipus} IPUs. {reason}", warning=True)

    def _older_job(self, namespace: str, created: str) -> str | None:
        """Return the name of a job that waits for IPUs and is older than a pod."""
        for each in self._jobs:
            metadata = each["metadata"]
            if metadata["namespace"] == namespace and metadata["creationTimestamp"] < created and status.waits(each):
                return str(metadata["name"])
        return None

    async def _watch(self) -> None:
        """Compare the partitions of pods with those of the proxy, again and again."""
        while True:
            started = time.monotonic()
            try:
                found = {each.uid: each for each in await self._proxy.partitions("Pod")}
            except ProxyError as error:
                _log.warning("partitions of pods not read", error=str(error))
            else:
                self._compare(found, started)
            await asyncio.sleep(self._seconds)

    def _compare(self, found: dict[str, PartitionState], started: float) -> None:
        """Note the partitions of a list. ``started``: when it was requested; it has no later ones."""
        for uid, known in list(self._partitions.items()):
            if self._since.get(uid, 0.0) >= started:
                continue
            pod = self._pods.get(known.name)
            has_ended = pod is None or progress.phase(pod) in _ENDED
            if not has_ended and (uid not in found or (found[uid].is_lost and not known.is_lost)):
                text = f"Partition {known.id} was removed or has failed. Delete the pod and create it again."
                self._note(known.name, uid, "PartitionLost", text, warning=True)
            if uid not in found:
                del self._partitions[uid]
                self._queue.add(known.name)
        for uid, state in found.items():
            is_new = uid not in self._partitions
            self._partitions[uid] = state
            if is_new:
                self._queue.add(state.name)  # reserved by a former leader: the pod may have ended

    def _note(self, name: Key, uid: str, reason: str, text: str, *, warning: bool = False) -> None:
        pod = self._pods.get(name)
        if pod is not None and pod["metadata"]["uid"] == uid:
            self._notes.put_nowait((pod, reason, text, warning))

    async def _write_events(self) -> None:
        while True:
            pod, reason, text, warning = await self._notes.get()
            await self._events.record(pod, reason, text, warning=warning)
