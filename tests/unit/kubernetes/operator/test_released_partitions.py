# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs whose launcher releases its partition before it ends, as the REST API of the proxy allows."""

from __future__ import annotations

import asyncio

import pytest

from openipu.kubernetes.domain.status import State
from tests.unit.kubernetes.domain.objects import ended, launcher
from tests.unit.kubernetes.operator.sites import UID, Site


def test_a_launcher_may_end_after_the_release() -> None:
    async def run() -> None:
        site = Site(release_seconds=60)
        await site.start()
        await site.release()
        assert await site.reconcile() is State.RUNNING
        site.pods[0] = launcher(site.job, **ended(0))
        assert await site.reconcile() is State.SUCCEEDED

    asyncio.run(run())


def test_a_launcher_that_continues_has_lost_the_partition() -> None:
    async def run() -> None:
        site = Site(release_seconds=0)
        await site.start()
        await site.release()
        assert site.changed == [UID]
        await site.watch.read()
        assert site.changed == [UID, UID]  # the time is over
        await site.watch.read()
        assert site.changed == [UID, UID]
        assert await site.reconcile() is State.FAILED
        assert "partition of instance 0 was removed or failed" in site.thing["status"]["lastMessage"]

    asyncio.run(run())


def test_a_job_that_starts_needs_its_partition() -> None:
    async def run() -> None:
        site = Site(release_seconds=60)
        await site.start()
        await site.release()
        site.pods[0] = launcher(site.job, phase="Pending")
        assert await site.reconcile() is State.FAILED

    asyncio.run(run())


@pytest.mark.parametrize("is_noticed", [True, False])
def test_a_restart_after_the_release_reserves_another_partition(is_noticed: bool) -> None:
    async def run() -> None:
        site = Site(release_seconds=60, restartPolicy={"type": "Always", "backOffLimit": 3})
        await site.start()
        site.proxy.states.clear()
        if is_noticed:
            await site.watch.read()
        site.pods[0] = launcher(site.job, **ended(0))
        assert await site.reconcile() is State.RESTARTING
        await site.watch.read()
        for _ in range(2):
            await site.reconcile()
        assert site.created == []  # they would use the former partition
        assert len(site.admission) == 1
        assert site.thing["status"]["restartCount"] == 1

    asyncio.run(run())
