# SPDX-License-Identifier: GPL-3.0-or-later
"""The tracker at a real API server: two writers, many changes at once, and the size of a ConfigMap."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from openipu.kubernetes.cluster.client import CONFIG_MAPS, Client, open_client
from openipu.kubernetes.domain import tracking
from openipu.kubernetes.domain.tracking import Owner, Phase, Record
from openipu.kubernetes.proxy.tracker import Tracker, TrackerError
from tests.kubernetes.cluster import Cluster

NAME = "tracker"
LIMIT = 1 << 20  # bytes of all keys and values of a ConfigMap


@dataclass
class Site:
    """The API server, with the number of requests by method."""

    client: Client
    namespace: str
    requests: Counter[str] = field(default_factory=Counter)

    async def tracker(self) -> Tracker:
        """Return a tracker as another proxy would have it."""
        made = Tracker(self.client, self.namespace, NAME)
        await made.load()
        return made

    async def stored(self) -> dict[str, Any]:
        found = await self.client.get(CONFIG_MAPS, self.namespace, NAME)
        return {id: json.loads(text) for id, text in (found.get("data") or {}).items()}


def run(cluster: Cluster, body: Callable[[Site], Awaitable[None]]) -> None:
    """Run a test with access to the API server."""

    async def main() -> None:
        requests: Counter[str] = Counter()
        client = await open_client(str(cluster.kubeconfig), lambda method, code: requests.update([method]))
        async with client:
            await body(Site(client, cluster.namespace, requests))

    asyncio.run(main())


def record(id: str, size: int = 4) -> Record:
    owner = Owner("IPUJob", "default", id.removeprefix("p-"), str(uuid.uuid4()))
    return Record(id, owner, 0, size, 1, "pod001:8090", Phase.RESERVED)


def test_two_proxies_never_overwrite_records_of_each_other(cluster: Cluster) -> None:
    async def body(site: Site) -> None:
        first, second = await site.tracker(), await site.tracker()
        await first.write({"p-a": record("p-a")})
        await second.write({"p-b": record("p-b")})  # it has not read the first record
        assert set(await site.stored()) == {"p-a", "p-b"}
        assert {each.id for each in second} == {"p-a", "p-b"}
        await first.write({"p-a": replace(record("p-a"), size=8)})  # it has not read the second one
        assert set(await site.stored()) == {"p-a", "p-b"}
        with pytest.raises(TrackerError, match="another proxy has changed the same records"):
            await second.write({"p-a": None})
        assert (await site.stored())["p-a"]["size"] == 8
        await second.write({"p-a": None})  # as after the next decision with the present record
        assert set(await site.stored()) == {"p-b"}

    run(cluster, body)


def test_concurrent_changes_share_a_write(cluster: Cluster) -> None:
    async def body(site: Site) -> None:
        tracker = await site.tracker()
        before = site.requests["PATCH"]
        records = [record(f"p-{number}") for number in range(200)]
        await asyncio.gather(*(tracker.write({each.id: each}) for each in records))
        assert site.requests["PATCH"] - before <= 2
        assert await site.stored() == {each.id: json.loads(each.encoded()) for each in records}

    run(cluster, body)


def test_the_tracker_stays_below_the_limit_of_the_api_server(cluster: Cluster) -> None:
    async def body(site: Site) -> None:
        tracker = await site.tracker()
        size = len("p-00000") + len(record("p-00000").encoded())
        most = tracking.MAX_BYTES // size
        full = [record(f"p-{number:05}") for number in range(most)]
        await tracker.write({each.id: each for each in full})
        with pytest.raises(TrackerError, match=f"it has {most} partitions, which is the most that fit"):
            await tracker.write({"p-99999": record("p-99999")})
        assert len(await site.stored()) == most
        # What exists can still be released.
        await tracker.write({full[0].id: replace(full[0], phase=Phase.RELEASING)})
        await tracker.write({full[0].id: None})
        await tracker.write({"p-99999": record("p-99999")})
        found = await site.client.get(CONFIG_MAPS, site.namespace, NAME)
        assert len(found["data"]) == most
        assert tracking.MAX_BYTES - size < sum(len(id) + len(text) for id, text in found["data"].items()) < LIMIT

    run(cluster, body)
