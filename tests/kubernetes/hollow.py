# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that exists at the API server only. Its pods report that they run, without any process."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openipu.kubernetes.cluster.client import NODES, PODS, ApiError, Client, Object, open_client
from openipu.kubernetes.cluster.informer import Informer, Key, key
from openipu.kubernetes.cluster.work_queue import WorkQueue

_HEARTBEAT_SECONDS = 10.0
_READY_SECONDS = 60.0


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class HollowNode:
    """A node whose pods start at once, and end when they are deleted.

    ``broken_images``: images that cannot be pulled, so that their pods stay Pending. ``end_seconds``: time that a
    deleted pod needs to end.
    ``init_containers``: those that the test runs itself. Their pods stay Pending until it reports them as running.
    """

    kubeconfig: Path
    name: str = "hollow-1"
    labels: dict[str, str] = field(default_factory=lambda: {"ipunode": "node1"})
    broken_images: set[str] = field(default_factory=set)
    init_containers: set[str] = field(default_factory=set)
    end_seconds: float = 0.0
    _ending: dict[str, float] = field(default_factory=dict)  # UID of a deleted pod -> when it ends
    _thread: threading.Thread | None = None
    _loop: asyncio.AbstractEventLoop | None = None
    _stop: asyncio.Event | None = None
    _ready: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name=self.name)
        self._thread.start()
        assert self._ready.wait(_READY_SECONDS)

    def stop(self) -> None:
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread is not None:
            self._thread.join()

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with await open_client(str(self.kubeconfig)) as client:
            await self._register(client)

            async def sync(name: Key) -> float | None:
                pod = pods.get(name)
                if pod is None or pod["spec"].get("nodeName") != self.name:
                    return None
                return await self._sync(client, pod)

            queue: WorkQueue[Key] = WorkQueue(sync)  # repeats what fails while the API server is down
            pods = Informer(client, PODS, lambda pod: queue.add(key(pod)))
            others = [asyncio.create_task(each) for each in (pods.run(), queue.run(), self._beat(client))]
            await pods.synced.wait()
            self._ready.set()
            await self._stop.wait()
            for each in others:
                each.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            # No later pod is bound to a node that never ends it.
            await client.delete(NODES, "", self.name)

    async def _register(self, client: Client) -> None:
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name, "labels": self.labels}}
        try:
            await client.create(NODES, node)
        except ApiError as error:
            if not error.already_exists:
                raise
        await self._report(client)

    async def _beat(self, client: Client) -> None:
        while True:
            await asyncio.sleep(_HEARTBEAT_SECONDS)
            with contextlib.suppress(ApiError):
                await self._report(client)

    async def _report(self, client: Client) -> None:
        capacity = {"cpu": "4000", "memory": "4000Gi", "pods": "10000", "graphcore.ai/ipu": "100000"}
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "",
            "lastHeartbeatTime": _now(),
        }
        patch = {"status": {"capacity": capacity, "allocatable": capacity, "conditions": [ready]}}
        await client.patch(NODES, "", self.name, patch, "status")

    async def _sync(self, client: Client, pod: Object) -> float | None:
        """Start or end a pod. Return the seconds until it ends, None if it does not."""
        metadata, status = pod["metadata"], pod.get("status") or {}
        try:
            if metadata.get("deletionTimestamp"):
                now = asyncio.get_running_loop().time()
                left = self._ending.setdefault(metadata["uid"], now + self.end_seconds) - now
                if left > 0:
                    return left
                await client.delete(PODS, metadata["namespace"], metadata["name"], metadata["uid"], grace_seconds=0)
                self._ending.pop(metadata["uid"], None)
            elif status.get("phase") == "Pending" and not status.get("startTime"):
                await self.report(client, pod, waiting=self._obstacle(pod["spec"]))
        except ApiError as error:
            if not (error.is_missing or error.is_conflict):
                raise
        return None

    def _obstacle(self, spec: Object) -> str:
        if {each["image"] for each in spec["containers"]} & self.broken_images:
            return "ErrImagePull"
        is_initialising = {each["name"] for each in spec.get("initContainers") or []} & self.init_containers
        return "PodInitializing" if is_initialising else ""

    async def report(self, client: Client, pod: Object, *, waiting: str = "") -> None:
        """Write the status of a pod that runs, or that cannot start."""
        now = _now()
        state: dict[str, Any] = {"waiting": {"reason": waiting}} if waiting else {"running": {"startedAt": now}}
        ready = "False" if waiting else "True"
        conditions = [
            {"type": each, "status": ready, "lastTransitionTime": now}
            for each in ("Initialized", "Ready", "ContainersReady")
        ]
        containers = [
            {
                "name": each["name"],
                "image": each["image"],
                "imageID": "",
                "ready": not waiting,
                "restartCount": 0,
                "state": state,
            }
            for each in pod["spec"]["containers"]
        ]
        status = {
            "phase": "Pending" if waiting else "Running",
            "startTime": now,
            "conditions": [*(pod["status"].get("conditions") or []), *conditions],
            "containerStatuses": containers,
        }
        metadata = pod["metadata"]
        patch = {"metadata": {"uid": metadata["uid"]}, "status": status}
        await client.patch(PODS, metadata["namespace"], metadata["name"], patch, "status")
