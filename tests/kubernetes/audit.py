# SPDX-License-Identifier: GPL-3.0-or-later
"""Observer of partitions from both sides: V-IPU controller and API server.

It collects what must never be: an IPU in two partitions, a partition without a record, and a job with two partitions.
It also collects pods whose partition belongs to another job or to none.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import grpc

from openipu.kubernetes.cluster.client import CONFIG_MAPS, IPUJOBS, PODS, ApiError, Client, Object
from openipu.kubernetes.domain import reserved
from openipu.shared.vipu.contract import virmgrpc
from tests.integration.vipu_servers import Client as VipuClient
from tests.integration.vipu_servers import listed

TRACKER = "ipu-partitions-tracker"
_PAUSE_SECONDS = 0.05
_RELEASE_SECONDS = 60.0  # until the last partitions are released
_PARTITION = ("IPUOF_VIPU_API_PARTITION_ID", "IPUJOB_PARTITION")  # in workers, in launchers
_ENDED = ("Succeeded", "Failed")
_OPTIONS = [("grpc.max_reconnect_backoff_ms", 200), ("grpc.initial_reconnect_backoff_ms", 50)]


@dataclass
class Audit:
    """Observer of a namespace with its tracker. ``found``: violations. ``rounds``: complete observations."""

    client: Client
    namespace: str
    vipu: str  # address of the V-IPU controller
    found: list[str] = field(default_factory=list)
    rounds: int = 0
    _suspects: frozenset[str] = frozenset()

    async def run(self) -> None:
        """Observe until cancelled."""
        async with grpc.aio.insecure_channel(self.vipu, _OPTIONS) as channel:
            while True:
                with contextlib.suppress(ApiError, grpc.RpcError):  # one of them is down
                    await self._observe(channel)
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _observe(self, channel: Any) -> None:
        # A record exists before its partition and after it. So it is in one of two readings around a list.
        before = await self._records()
        listed, (pods, _) = await asyncio.gather(
            _partitions(channel), self.client.list(PODS, self.namespace, reserved.JOB_LABEL)
        )
        after = await self._records()
        suspects = frozenset(
            [
                *_shared_ipus(listed),
                *_without_record(listed, {**before, **after}),
                *_of_pods(pods, before, after),
            ]
        )
        # What is seen in two rounds is no artefact of readings at different times.
        self.found += [*_doubles(before), *(suspects & self._suspects)]
        self._suspects = suspects
        self.rounds += 1

    async def _records(self) -> dict[str, Any]:
        found = await self.client.get(CONFIG_MAPS, self.namespace, TRACKER)
        return {id: json.loads(text) for id, text in (found.get("data") or {}).items()}


async def survey(client: Client, namespace: str, vipu: str) -> str:
    """Return jobs, pods, records and partitions as lines of text, for a failed test."""
    jobs, _ = await client.list(IPUJOBS, namespace)
    pods, _ = await client.list(PODS, namespace, reserved.JOB_LABEL)
    tracker = await client.get(CONFIG_MAPS, namespace, TRACKER)
    async with grpc.aio.insecure_channel(vipu, _OPTIONS) as channel:
        partitions = await _partitions(channel)
    lines = [
        f"job {job['metadata']['name']}, deleted {job['metadata'].get('deletionTimestamp')}, "
        f"suspended {job['spec'].get('suspend')}: {json.dumps(job.get('status', {}))}"
        for job in jobs
    ]
    lines += [
        f"pod {pod['metadata']['name']} on {pod['spec'].get('nodeName')}, "
        f"deleted {pod['metadata'].get('deletionTimestamp')}: {json.dumps(pod['status'])}"
        for pod in pods
    ]
    lines += [f"record {id}: {text}" for id, text in (tracker.get("data") or {}).items()]
    lines += [f"partition {id}: {sorted(ipus)}" for id, ipus in partitions.items()]
    return "\n".join(lines)


async def wait_released(client: Client, namespace: str, vipu: VipuClient) -> None:
    """Wait until neither the V-IPU controller nor the API server has anything of the jobs of a namespace."""
    left: Any = None
    deadline = asyncio.get_running_loop().time() + _RELEASE_SECONDS
    while left is None or any(left):
        assert asyncio.get_running_loop().time() < deadline, f"left after {_RELEASE_SECONDS:g} s: {left}"
        tracker = await client.get(CONFIG_MAPS, namespace, TRACKER)
        pods, _ = await client.list(PODS, namespace, reserved.JOB_LABEL)
        left = listed(vipu), tracker.get("data") or {}, [each["metadata"]["name"] for each in pods]
        await asyncio.sleep(_PAUSE_SECONDS)


async def _partitions(channel: Any) -> dict[str, set[tuple[str, int, int]]]:
    """Return partition id -> its IPUs, from the V-IPU controller."""
    reply = await virmgrpc.stub(channel, "UserService").ListPartitions(virmgrpc.ListPartitionsRequest(), timeout=2)
    return {
        each.id: {(each.spec.cluster_id, ipu.ipulink_domain_topology_id, ipu.topology_id) for ipu in each.spec.ipus}
        for each in reply.partitions
    }


def _shared_ipus(listed: dict[str, set[tuple[str, int, int]]]) -> list[str]:
    counts = Counter(ipu for ipus in listed.values() for ipu in ipus)
    shared = {ipu for ipu, count in counts.items() if count > 1}
    return [f"partition {id} shares IPUs with another one" for id, ipus in listed.items() if ipus & shared]


def _without_record(listed: Iterable[str], records: dict[str, Any]) -> list[str]:
    return [f"partition {id} has no record" for id in listed if id not in records]


def _doubles(records: dict[str, Any]) -> list[str]:
    """Return the jobs with two partitions. One that is being released does not count."""
    ids = defaultdict(list)
    for id, record in records.items():
        if record["phase"] != "releasing":
            ids[record["uid"], record["instance"]].append(id)
    return [f"job {uid} has the partitions {', '.join(each)}" for (uid, _), each in ids.items() if len(each) > 1]


def _of_pods(pods: list[Object], before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return the pods that may use IPUs which are not reserved for their job."""
    found = []
    for pod in pods:
        if pod["status"].get("phase") in _ENDED:
            continue
        metadata, (owner,) = pod["metadata"], pod["metadata"]["ownerReferences"]
        id = _partition(pod)
        valid = [
            record["uid"] == owner["uid"] and record["phase"] == "reserved"
            for record in (before.get(id), after.get(id))
            if record is not None
        ]
        if not any(valid):
            found.append(
                f"pod {metadata['name']} ({metadata['uid']}) uses partition {id}, which is not reserved for it"
            )
    return found


def _partition(pod: Object) -> str:
    containers = [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]
    variables = (each for container in containers for each in container.get("env", []))
    return next(each["value"] for each in variables if each["name"] in _PARTITION)
