# SPDX-License-Identifier: GPL-3.0-or-later
"""Order in which plain pods receive partitions."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping

from openipu.kubernetes.domain.job_queue import PATIENCE_SECONDS
from openipu.kubernetes.domain.names import Name
from openipu.kubernetes.operator.pod_queue import PodQueue, WaitingPod
from openipu.kubernetes.operator.proxy_client import NO_CAPACITY, ProxyError

GROUP = ("pod001:8090",)


class Site:
    """A queue, and a proxy with a number of free IPUs."""

    def __init__(self, free: int, older_job: str | None = None) -> None:
        self.free = free
        self.reserved: list[str] = []
        self.refused: dict[str, str] = {}
        self.older_job = older_job
        self.gate = asyncio.Event()  # requests wait for it
        self.gate.set()
        self.queue = PodQueue(
            self,  # type: ignore[arg-type]
            lambda pod, partition: self.reserved.append(partition),
            lambda pod, reason: self.refused.update({pod.name[1]: reason}),
            lambda namespace, created: self.older_job,
            retry_seconds=0.01,
        )

    async def reserve_for_pod(self, pod: Name, uid: str, ipus: int, node_labels: Mapping[str, str]) -> str:
        await self.gate.wait()
        if ipus > 32:
            raise ProxyError("At most 32.", "TooLarge")
        if ipus > self.free:
            raise ProxyError(f"No {ipus} free IPUs.", NO_CAPACITY)
        self.free -= ipus
        return pod[1]

    def add(self, name: str, ipus: int, group: tuple[str, ...] = GROUP, *, waited: float = 0.0) -> None:
        since = time.monotonic() - waited
        self.queue.add(WaitingPod(("ns", name), name, name, ipus, group, {}, since))  # created in the order of names

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.queue.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def until(self, *reserved: str) -> None:
        async with asyncio.timeout(20):
            while sorted(self.reserved) != sorted(reserved):
                await asyncio.sleep(0)


async def _counts() -> None:
    site = Site(free=4)
    assert (len(site.queue), site.queue.unschedulable, site.queue.longest_wait) == (0, 0, 0.0)
    site.add("a", 8, waited=30.0)
    site.add("b", 64, ("pod002:8090",), waited=60.0)
    async with site.running(), asyncio.timeout(20):
        while len(site.refused) < 2:
            await asyncio.sleep(0)
        assert (len(site.queue), site.queue.unschedulable) == (2, 1)
        assert 30.0 <= site.queue.longest_wait < 60.0  # of a pod that can run
        site.free = 8
        await site.until("a")
        assert (len(site.queue), site.queue.unschedulable, site.queue.longest_wait) == (1, 1, 0.0)


async def _order() -> None:
    site = Site(free=4)
    site.add("a", 8)
    site.add("b", 1)
    site.add("elsewhere", 1, ("pod002:8090",))
    async with site.running():
        await site.until("elsewhere")
        assert site.refused == {"a": "No 8 free IPUs."}
        site.free += 8
        await site.until("elsewhere", "a", "b")
    assert site.reserved == ["elsewhere", "a", "b"]


async def _withdrawal() -> None:
    site = Site(free=8)
    site.gate.clear()
    site.add("a", 8)
    site.add("b", 8)
    async with site.running():
        await asyncio.sleep(0)
        withdrawal = asyncio.create_task(site.queue.withdraw(("ns", "a")))
        await asyncio.sleep(0)
        assert not withdrawal.done()  # its request is in progress
        site.gate.set()
        await withdrawal
        assert site.reserved == ["a"]  # so that the caller releases it
        assert ("ns", "a") not in site.queue
        site.free = 8
        await site.until("a", "b")


async def _older_jobs(waited: float) -> Site:
    site = Site(free=8, older_job="job")
    site.add("a", 8, waited=waited)
    async with site.running(), asyncio.timeout(20):
        while not site.reserved and not site.refused:
            await asyncio.sleep(0)
        if site.refused:
            assert site.refused == {"a": "Job ns/job is older and comes first."}
            assert site.reserved == []
            site.older_job = None
            await site.until("a")
    return site


def test_waiting_pods_are_counted() -> None:
    asyncio.run(_counts())


def test_a_small_pod_never_overtakes_a_large_one_of_its_controller() -> None:
    asyncio.run(_order())


def test_a_withdrawal_waits_for_a_request_in_progress() -> None:
    asyncio.run(_withdrawal())


def test_older_jobs_come_first() -> None:
    assert asyncio.run(_older_jobs(0)).refused


def test_older_jobs_come_first_for_ten_minutes_only() -> None:
    assert not asyncio.run(_older_jobs(PATIENCE_SECONDS + 1)).refused
