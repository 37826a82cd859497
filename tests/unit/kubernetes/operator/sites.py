# SPDX-License-Identifier: GPL-3.0-or-later
"""A job on its partition, and the part of the operator that reconciles it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from openipu.kubernetes.cluster.client import ApiError
from openipu.kubernetes.domain import job as jobs
from openipu.kubernetes.domain import status as statuses
from openipu.kubernetes.domain.environment import Partition
from openipu.kubernetes.domain.status import State
from openipu.kubernetes.operator.admission import Admission
from openipu.kubernetes.operator.job_store import FINALIZER
from openipu.kubernetes.operator.partition_watch import PartitionWatch
from openipu.kubernetes.operator.proxy_client import PartitionState
from openipu.kubernetes.operator.reconciler import Reconciler
from tests.unit.kubernetes.domain.ipujobs import first_form
from tests.unit.kubernetes.domain.objects import launcher, worker

NAME = ("default", "sample")
UID = "1234-5678"


class Proxy:
    """Proxy with the partitions of one job."""

    def __init__(self) -> None:
        self.states = {"p-0": "ACTIVE"}
        self.released = 0

    async def reserve(self, job: jobs.Job, instance: int) -> Partition:
        return Partition(f"p-{instance}", "host", 1)

    async def release(self, job: Any, uid: str, instance: int | None = None) -> bool:
        self.released += 1
        return True

    async def partitions(self) -> list[PartitionState]:
        return [PartitionState(UID, 0, id, state) for id, state in self.states.items()]


class Site:
    """A job that runs on its partition, and the part of the operator that reconciles it."""

    def __init__(self, release_seconds: float, **spec: Any) -> None:
        self.thing = first_form(**spec)
        self.thing["metadata"] |= {"finalizers": [FINALIZER], "creationTimestamp": "2021-03-22T10:10:31Z"}
        self.job = jobs.read(self.thing)
        self.thing["status"] = statuses.entered({}, State.RUNNING, NAME, 0.0)
        self.pods = [launcher(self.job), worker(self.job)]
        self.created: list[str] = []
        self.rejection: ApiError | None = None  # of new pods
        self.changed: list[str] = []
        self.proxy: Any = Proxy()
        self.admission = Admission(self.proxy, lambda name: None)
        self.watch = PartitionWatch(self.proxy, self.admission, self.changed.append, release_seconds=release_seconds)
        store: Any = SimpleNamespace(find=lambda name: self.thing, write_status=self._write_status)
        children: Any = SimpleNamespace(
            pods=lambda name, uid: self._pods(),
            pending=lambda name: set(),
            delete_pods=self._delete_pods,
            write_objects=self._nothing,
            create_pods=self._create_pods,
            until_check=lambda job: 300.0,
        )
        events: Any = SimpleNamespace(record=self._nothing)
        self.reconciler = Reconciler(store, children, self.admission, self.watch, self.proxy, events, 0.0)

    def _pods(self) -> list[Any]:
        for number, each in enumerate(self.pods):
            each["metadata"]["uid"] = str(number)
        return self.pods

    async def _delete_pods(self, name: Any, found: Any) -> None:
        gone = [each["metadata"]["name"] for each in found]
        self.pods = [each for each in self.pods if each["metadata"]["name"] not in gone]

    async def _create_pods(self, job: Any, instance: int, missing: Any, partition: Partition, attempt: int) -> bool:
        if self.rejection is not None:
            raise self.rejection
        self.created += missing
        return True

    async def _write_status(self, name: Any, thing: Any, status: Any) -> Any:
        self.thing = {**thing, "status": status}
        return self.thing

    async def _nothing(self, *arguments: Any, **options: Any) -> None:
        pass

    async def start(self) -> None:
        """Reserve the partition, and read it."""
        await self.admission.resume(self.job, 0)
        await self.watch.read()

    async def release(self) -> None:
        """Release the partition as a launcher does, and notice that."""
        self.proxy.states.clear()
        await self.watch.read()

    async def reconcile(self) -> State | None:
        await self.reconciler.reconcile(NAME)
        return statuses.state(self.thing["status"])
