# SPDX-License-Identifier: GPL-3.0-or-later
"""Events at unfavourable times: late caches, pods that end slowly, and programs that start in an unusual order."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from openipu.kubernetes.cluster.client import PODS, Object, Resource, open_client
from openipu.kubernetes.domain import reserved
from tests.integration.vipu_servers import listed
from tests.kubernetes.audit import Audit
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.hollow import HollowNode
from tests.kubernetes.lives import Api, Life
from tests.kubernetes.operators import Operator
from tests.kubernetes.relay import DropError, Relay
from tests.kubernetes.victims import Site, open_site
from tests.unit.kubernetes.domain.ipujobs import first_form, second_form
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("node")

_QUOTAS = Resource("v1", "resourcequotas")
_ROUNDS = 4  # of the audit, so that it notices what is wrong
_SECONDS = 60.0


@pytest.fixture(scope="module")
def node(control_plane: Cluster) -> Iterator[HollowNode]:
    """Yield a node whose pods need a second to end."""
    node = HollowNode(control_plane.kubeconfig, end_seconds=1.0)
    node.start()
    yield node
    node.stop()


@pytest.fixture
def site(cluster: Cluster, tmp_path: Path) -> Iterator[Site]:
    """Yield an operator with its proxy and a V-IPU controller."""
    with open_site(cluster, tmp_path) as site:
        yield site


@dataclass
class Watched:
    """A site whose operator uses a relay, while an audit runs."""

    site: Site
    relay: Relay
    api: Api
    audit: Audit
    operator: Operator

    def life(self, name: str = "job") -> Life:
        return Life(self.api, self.site.cluster.namespace, name)

    async def pods(self, count: int) -> list[Object]:
        """Wait until there are so many pods of jobs."""
        while True:
            found = await self.api.list(PODS, self.site.cluster.namespace, reserved.JOB_LABEL)
            if len(found) == count:
                return found
            await asyncio.sleep(0.05)

    def pod_creations(self) -> int:
        """Return how often the operator has created a pod, or has tried to."""
        return sum(each.startswith("POST") and each.endswith("/pods") for each in self.relay.writes)

    async def audited(self) -> None:
        """Wait until the audit has noticed what is wrong now."""
        last = self.audit.rounds + _ROUNDS
        while self.audit.rounds < last:
            await asyncio.sleep(0.05)

    async def partitions(self, count: int) -> None:
        """Wait until there are so many partitions."""
        client = self.site.proxy.vipu
        await asyncio.to_thread(
            until, lambda: len(listed(client)) == count, _SECONDS, lambda: self.operator.log[-3000:]
        )


@contextlib.asynccontextmanager
async def watched(site: Site, folder: Path) -> AsyncIterator[Watched]:
    """Restart the operator of a site with a relay, and check that an audit finds nothing."""
    (operator,) = site.operators
    async with Relay() as relay, await open_client(str(site.cluster.kubeconfig)) as client:
        operator.kill()
        operator.kubeconfig = await relay.kubeconfig(site.cluster.kubeconfig, folder / "relay.kubeconfig")
        begun = len(operator.log)
        await asyncio.to_thread(operator.start, leads=False)
        await asyncio.to_thread(until, lambda: "jobs found" in operator.log[begun:], _SECONDS, lambda: operator.log)
        audit = Audit(client, site.cluster.namespace, site.vipu.address)
        auditing = asyncio.create_task(audit.run())
        try:
            yield Watched(site, relay, Api(client), audit, operator)
        finally:
            auditing.cancel()
        assert audit.found == []


async def handled(life: Life) -> None:
    """Wait until the operator has handled the last change of a specification."""
    await life.reach(
        lambda job: job is not None and job["status"].get("observedGeneration") == job["metadata"]["generation"],
        "handled",
    )


@pytest.mark.parametrize(
    ("ipujob", "pods", "change", "left"),
    [
        (first_form(), 2, {"suspend": True}, 0),
        (first_form(), 2, {"modelReplicas": "3"}, 0),
        (second_form(jobInstances=2), 2, {"jobInstances": 1}, 1),
    ],
    ids=["suspended", "invalid", "scaled"],
)
def test_ipus_are_kept_until_pods_end_that_the_cache_does_not_have_yet(
    site: Site, tmp_path: Path, ipujob: Object, pods: int, change: dict[str, Any], left: int
) -> None:
    async def run() -> None:
        async with watched(site, tmp_path) as found:
            life = found.life()
            found.relay.hold("/pods")
            await life.submit(ipujob)
            await found.pods(pods)
            await life.change(**change)
            await handled(life)
            await found.audited()
            found.relay.release()
            await found.partitions(left)
            await found.pods(left)

    asyncio.run(run())


def test_denied_pods_give_their_ipus_back_when_they_have_ended(site: Site, tmp_path: Path) -> None:
    async def run() -> None:
        async with watched(site, tmp_path) as found:
            namespace = site.cluster.namespace
            quota = {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"pods": "1"}}}
            await found.api.create(_QUOTAS, {**quota, "metadata": {"name": "pods", "namespace": namespace}})
            while not ((await found.api.get(_QUOTAS, namespace, "pods")) or {}).get("status", {}).get("used"):
                await asyncio.sleep(0.05)
            life = found.life()
            await life.submit(first_form())
            await life.reach(
                lambda job: "exceeded quota" in (job or {}).get("status", {}).get("lastMessage", ""), "denied"
            )
            creations = found.pod_creations()
            await found.partitions(0)
            await found.pods(0)
            await found.audited()
            assert found.pod_creations() == creations  # the next attempt follows after 30 s

    asyncio.run(run())


def test_a_partition_that_the_operator_did_not_know_is_used(site: Site, tmp_path: Path) -> None:
    """The second job has its partition already, and the first one waits for these IPUs."""

    async def run() -> None:
        async with watched(site, tmp_path) as found:
            operator = found.operator
            large, small = found.life("large"), found.life("small")

            async def kill(number: int, write: str) -> None:
                if write.startswith("POST") and write.endswith("/pods"):
                    operator.kill()
                    raise DropError

            found.relay.reset(before=kill)
            await large.submit(first_form(modelReplicas="32", suspend=True))
            await large.reach_state("Suspended")
            await small.submit(first_form(modelReplicas="16"))
            await found.partitions(1)
            while operator.process is None or operator.process.poll() is None:
                await asyncio.sleep(0.05)
            site.proxy.kill()
            await large.change(suspend=False)
            found.relay.reset()
            await asyncio.to_thread(operator.start, leads=False)
            text = "Position 2 of the jobs"
            await small.reach(lambda job: text in (job or {})["status"].get("lastMessage", ""), "reported as second")
            await asyncio.to_thread(site.proxy.start)
            await small.reach_state("Running")
            await small.delete()
            await large.reach_state("Running")

    asyncio.run(run())
