# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that are killed at the n-th write of a job, for every n. Their successors go on."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from openipu.kubernetes.cluster.client import open_client
from tests.kubernetes.audit import Audit, wait_released
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.hollow import HollowNode
from tests.kubernetes.lives import Api, Life, restart
from tests.kubernetes.program import Program
from tests.kubernetes.relay import DropError, Relay
from tests.kubernetes.victims import Site, open_site

pytestmark = [pytest.mark.usefixtures("node"), pytest.mark.timeout(600)]

# Least numbers of writes of a job that starts twice. Fewer would mean that the relay does not see them.
_OPERATOR_WRITES = 20
_PROXY_WRITES = 4  # two records of phases when it is reserved, two when it is released


@pytest.fixture(scope="module")
def node(control_plane: Cluster) -> Iterator[HollowNode]:
    """Yield a node whose pods need a moment to end."""
    node = HollowNode(control_plane.kubeconfig, end_seconds=0.2)
    node.start()
    yield node
    node.stop()


def test_operators_killed_after_any_write(cluster: Cluster, tmp_path: Path) -> None:
    async def run(site: Site) -> int:
        (operator,) = site.operators
        operator.kill()
        async with Relay() as relay:
            operator.kubeconfig = await relay.kubeconfig(cluster.kubeconfig, tmp_path / "relay.kubeconfig")
            operator.proxy_url = await relay.listen(site.proxy.url)
            return await _kill_at_each_write(site, relay, operator, lambda: operator.start(leads=False), "after")

    with open_site(cluster, tmp_path) as site:
        assert asyncio.run(run(site)) >= _OPERATOR_WRITES


@pytest.mark.parametrize("moment", ["before", "after"])
def test_proxies_killed_at_any_write(cluster: Cluster, tmp_path: Path, moment: str) -> None:
    """Between two writes, the V-IPU controller creates or removes a partition. So both moments count."""

    async def run(site: Site) -> int:
        site.proxy.kill()
        async with Relay() as relay:
            site.proxy.kubeconfig = await relay.kubeconfig(cluster.kubeconfig, tmp_path / "relay.kubeconfig")
            return await _kill_at_each_write(site, relay, site.proxy, site.proxy.start, moment)

    with open_site(cluster, tmp_path) as site:
        assert asyncio.run(run(site)) >= _PROXY_WRITES


async def _kill_at_each_write(
    site: Site, relay: Relay, program: Program, start: Callable[[], None], moment: str
) -> int:
    """Kill a program before or after the n-th write of the n-th job, and start it again.

    Return the number of writes of a job: the first one that needs fewer than n is the last one.
    """
    namespace = site.cluster.namespace
    await asyncio.to_thread(start)
    async with await open_client(str(site.cluster.kubeconfig)) as client:
        audit = Audit(client, namespace, site.vipu.address)
        auditing = asyncio.create_task(audit.run())
        for last in itertools.count(1):

            async def kill(number: int, write: str, last: int = last) -> None:
                if number == last:
                    program.kill()
                    if moment == "before":
                        raise DropError

            relay.reset(**{moment: kill})
            living = asyncio.create_task(_live(Life(Api(client), namespace, f"job-{last}")))
            while not living.done():
                if program.process is not None and program.process.poll() is not None:
                    await asyncio.to_thread(start)
                await asyncio.wait({living}, timeout=0.05)
            try:
                living.result()
                await wait_released(client, namespace, site.proxy.vipu)
            except AssertionError as error:
                raise AssertionError(f"killed {moment} write {last}, {relay.writes[last - 1]}: {error}") from error
            assert audit.found == [], f"killed {moment} write {last}, {relay.writes}"
            if len(relay.writes) < last:
                break
        auditing.cancel()
    return last - 1


async def _live(life: Life) -> None:
    await restart(life, "4")
    await life.delete()
