# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to the V-IPU proxy."""

from __future__ import annotations

import copy
import http
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp

from openipu.kubernetes.cluster import guard
from openipu.kubernetes.cluster.guard import Check
from openipu.kubernetes.domain.environment import Partition
from openipu.kubernetes.domain.job import Job
from openipu.kubernetes.domain.names import Name

_TIMEOUT_SECONDS = 240.0  # a reset waits until the partition is ACTIVE
_CONNECT_SECONDS = 5.0

NO_CAPACITY = "NoCapacity"
IMPOSSIBLE = frozenset({"NoController", "TooLarge"})  # no release of IPUs helps
UNAVAILABLE = "Unavailable"


class ProxyError(Exception):
    """Raised when the proxy rejects a request, or does not respond (reason ``Unavailable``)."""

    error_code = "OPU902"

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class PartitionState:
    """State of the partition of an instance of a job, or of a pod.

    ``name``: that of the owner. ``state``: empty if its controller does not respond.
    """

    uid: str
    instance: int
    id: str
    state: str
    name: Name = ("", "")

    @property
    def is_lost(self) -> bool:
        """Return whether jobs cannot use the partition any more."""
        return self.state in ("REMOVED", "ERROR")


class ProxyClient:
    """The partitions of jobs and pods. All methods raise ProxyError. Call ``close`` at the end."""

    def __init__(self, url: str, token: Path, failed: Callable[[str], None] = lambda reason: None) -> None:
        """``token``: file with the service account token for the proxy, which kubelet renews.

        ``failed`` is called with the reason of each failed request.
        """
        self._url = url.rstrip("/")
        self._token = token
        self._failed = failed
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS, sock_connect=_CONNECT_SECONDS)
        self._session = aiohttp.ClientSession(timeout=timeout)
        guard.install(self._session)
        self._check: Check | None = None

    def guarded(self, check: Check) -> ProxyClient:
        """Return a client with the same connections that calls ``check`` before each change."""
        found = copy.copy(self)
        found._check = check
        return found

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    async def partitions(self, kind: str = "IPUJob") -> list[PartitionState]:
        """Return the reserved partitions of all jobs, or of all pods."""
        found = await self._call("GET", "/v1/partitions", {"kind": kind})
        return [
            PartitionState(each["uid"], each["instance"], each["id"], each["state"], (each["namespace"], each["name"]))
            for each in found
            if each["kind"] == kind  # a proxy of an earlier release returns all
        ]

    async def reserve(self, job: Job, instance: int) -> Partition:
        """Return the partition of an instance, a new one if it has none, at a controller of the nodes of the job."""
        shape = job.shape
        body = {"uid": job.uid, "size": shape.ipus, "workers": shape.workers, "nodeSelector": dict(job.node_selector)}
        found = await self._call("PUT", f"{_path(job.name)}/{instance}", body=body)
        routing = found.get("routing", "")  # a proxy of an earlier release has none
        return Partition(found["id"], found["host"], found["port"], _label(found), routing=routing)

    async def reset(self, job: Name, uid: str, instance: int) -> None:
        """Reset the partition of an instance and wait until it is ACTIVE."""
        await self._call("POST", f"{_path(job)}/{instance}/reset", {"uid": uid})

    async def release(self, job: Name, uid: str, instance: int | None = None) -> bool:
        """Release the partitions of a job, or of one instance. Return False if a controller does not respond yet."""
        query = {"uid": uid} if instance is None else {"uid": uid, "instance": str(instance)}
        return await self._call("DELETE", _path(job), query) is None

    async def controllers(self) -> list[tuple[str, tuple[str, str] | None]]:
        """Return address and node label of the V-IPU controllers."""
        return [(each["address"], _label(each)) for each in await self._call("GET", "/v1/controllers")]

    async def reserve_for_pod(self, pod: Name, uid: str, ipus: int, node_labels: Mapping[str, str]) -> str:
        """Return the id of the partition of a pod, a new one if it has none, at a controller of its node."""
        body = {"uid": uid, "size": ipus, "nodeLabels": dict(node_labels)}
        found = await self._call("PUT", _path(pod, "pods", "partition"), body=body)
        return str(found["id"])

    async def release_of_pod(self, pod: Name, uid: str) -> bool:
        """Release the partition of a pod. Return False if its controller does not respond yet."""
        return await self._call("DELETE", _path(pod, "pods", "partition"), {"uid": uid}) is None

    async def _call(self, method: str, path: str, query: dict[str, str] | None = None, body: Any = None) -> Any:
        """Make a request. Return its answer, None for one without content, and True for one that is accepted."""
        try:
            return await self._send(method, path, query, body)
        except ProxyError as error:
            self._failed(error.reason)
            raise

    async def _send(self, method: str, path: str, query: dict[str, str] | None, body: Any) -> Any:
        try:
            headers = {"Authorization": f"Bearer {self._token.read_text(encoding='utf-8').strip()}"}
            with guard.checked(None if method == "GET" else self._check):
                request = await self._session.request(
                    method, self._url + path, params=query, json=body, headers=headers
                )
            async with request as answer:
                if answer.status == http.HTTPStatus.NO_CONTENT:
                    return None
                if answer.status == http.HTTPStatus.ACCEPTED:
                    return True
                found = await answer.json(content_type=None)
                if answer.ok:
                    return found
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            text = f"The V-IPU proxy {self._url} does not respond: {error or type(error).__name__}."
            raise ProxyError(text, UNAVAILABLE) from None
        if isinstance(found, dict) and "reason" in found:
            raise ProxyError(found["message"], found["reason"])
        raise ProxyError(f"The V-IPU proxy rejects the request: {found}", "Rejected")


def _path(owner: Name, kind: str = "jobs", what: str = "partitions") -> str:
    namespace, name = (quote(each, safe="") for each in owner)
    return f"/v1/{kind}/{namespace}/{name}/{what}"


def _label(answer: Mapping[str, Any]) -> tuple[str, str] | None:
    label = answer.get("nodeLabel")
    return (label["key"], label["value"]) if label else None
