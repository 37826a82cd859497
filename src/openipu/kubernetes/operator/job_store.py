# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs at the API server. The operator finds its own writes at once, even if the cache does not have them yet."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from openipu.kubernetes.cluster.client import IPUJOBS, Client, Object
from openipu.kubernetes.cluster.informer import Informer, Key
from openipu.kubernetes.domain import status as statuses
from openipu.kubernetes.domain.status import Status

FINALIZER = "ipu.finalizers.graphcore.ai"


def has_finalizer(job: Object) -> bool:
    """Return whether a job stays until its partitions are released."""
    return FINALIZER in (job["metadata"].get("finalizers") or [])


def needed(job: Object) -> Object:
    """Return the part of a job that the operator needs: all but the managed fields, which are half of it."""
    return {**job, "metadata": {name: each for name, each in job["metadata"].items() if name != "managedFields"}}


class JobStore:
    """Reads jobs from a cache, and writes their finalizers and their status."""

    def __init__(self, client: Client, cache: Informer) -> None:
        self._client = client
        self._cache = cache
        self._newest: dict[Key, Object] = {}  # as this operator has written them

    def find(self, name: Key) -> Object | None:
        """Return the newest known version of a job."""
        cached, written = self._cache.get(name), self._newest.get(name)
        if cached is None or written is None:
            self._newest.pop(name, None)
            return cached
        if _revision(written) > _revision(cached) and written["metadata"]["uid"] == cached["metadata"]["uid"]:
            return written
        del self._newest[name]
        return cached

    def receive(self, name: Key, job: Object) -> bool:
        """Note that the cache has a version of a job. Return whether others have written it.

        Each own write demands that nothing else has changed since the job was read. So an own version, or one before
        it, has only changes that were handled.
        """
        written = self._newest.get(name)
        if written is None or written["metadata"]["uid"] != job["metadata"]["uid"]:
            return True
        if _revision(job) >= _revision(written):
            del self._newest[name]
        return _revision(job) > _revision(written)

    def discard(self, name: Key) -> None:
        """Discard the written version of a job that no longer exists."""
        self._newest.pop(name, None)

    async def change_finalizers(self, name: Key, job: Object, *, add: bool) -> Object:
        """Add or remove the finalizer and return the job. Raises ApiError, for example if the job has changed."""
        metadata = job["metadata"]
        others = [each for each in metadata.get("finalizers") or [] if each != FINALIZER]
        patch = {
            "metadata": {
                "resourceVersion": metadata["resourceVersion"],
                "finalizers": [*others, FINALIZER] if add else others,
            }
        }
        return self._written(name, await self._client.patch(IPUJOBS, *name, patch))

    async def write_status(self, name: Key, job: Object, status: Mapping[str, Any]) -> Object:
        """Write a status, if it differs, and return the job. Raises ApiError, for example if the job has changed."""
        before: Status = job.get("status") or {}
        if {**before, **status} == before and not before.keys() - status.keys():
            return job
        changed = {key: value for key, value in status.items() if before.get(key) != value}
        changed.update(dict.fromkeys(before.keys() - status.keys()))
        if "workersStatus" in changed:  # merged field by field
            gone = before.get("workersStatus", {}).keys() - status["workersStatus"].keys()
            changed["workersStatus"] = {**status["workersStatus"], **dict.fromkeys(gone)}
        changed["lastReconcileTime"] = statuses.timestamp(time.time())
        patch = {"metadata": {"resourceVersion": job["metadata"]["resourceVersion"]}, "status": changed}
        return self._written(name, await self._client.patch(IPUJOBS, *name, patch, "status"))

    def _written(self, name: Key, job: Object) -> Object:
        self._newest[name] = kept = needed(job)
        return kept


def _revision(job: Object) -> int:
    return int(job["metadata"]["resourceVersion"])
