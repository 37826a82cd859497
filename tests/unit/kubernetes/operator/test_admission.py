# SPDX-License-Identifier: GPL-3.0-or-later
"""Order in which jobs receive partitions, even when some of them cannot run."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from openipu.kubernetes.domain import job as jobs
from openipu.kubernetes.domain.environment import Partition
from openipu.kubernetes.domain.job import Job
from openipu.kubernetes.domain.job_queue import PATIENCE_SECONDS
from openipu.kubernetes.domain.status import DENIED, UNSCHEDULABLE
from openipu.kubernetes.operator.admission import Admission
from openipu.kubernetes.operator.proxy_client import NO_CAPACITY, UNAVAILABLE, ProxyError
from tests.unit.kubernetes.domain.ipujobs import first_form, workers


class Site:
    """An admission, and a proxy with a controller of some IPUs for the nodes of each pool."""

    def __init__(self, total: int, **pools: int) -> None:
        self.total = {"": total, **pools}
        self.free = dict(self.total)
        self.silent: set[str] = set()
        self.reserved: list[str] = []
        self.requests: list[str] = []
        self.gate = asyncio.Event()  # requests wait for it
        self.gate.set()
        self.admission = Admission(self, lambda name: None, retry_seconds=0.01)  # type: ignore[arg-type]

    async def reserve(self, job: Job, instance: int) -> Partition:
        self.requests.append(job.name[1])
        await self.gate.wait()
        await asyncio.sleep(0)
        pool = job.node_selector.get("pool", "")
        if pool not in self.total:
            raise ProxyError("No label.", "NoController")
        if pool in self.silent:
            raise ProxyError("No response.", UNAVAILABLE)
        if job.shape.ipus > self.total[pool]:
            raise ProxyError(f"At most {self.total[pool]}.", "TooLarge")
        if job.shape.ipus > self.free[pool]:
            raise ProxyError("Full.", NO_CAPACITY)
        self.free[pool] -= job.shape.ipus
        self.reserved.append(job.name[1])
        return Partition(job.name[1], "host", 1)

    def add(self, name: str, ipus: int, namespace: str = "ns", pool: str = "", *, denied: bool = False) -> None:
        template = workers(nodeSelector={"pool": pool}) if pool else workers()
        ipujob = first_form(modelReplicas=str(ipus), workers=template)
        ipujob["metadata"] = {"name": name, "namespace": namespace, "uid": f"{namespace}/{name}"}
        self.admission.enqueue(jobs.read(ipujob), 0, name, denied=denied)  # created in the order of names

    def reason(self, name: str, namespace: str = "ns") -> str:
        return self.admission.obstacle((namespace, name)).reason

    def text(self, name: str, namespace: str = "ns") -> str:
        return self.admission.obstacle((namespace, name)).text

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.admission.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                await asyncio.sleep(0)

    async def tried(self, *names: str) -> None:
        """Wait until jobs were tried again."""
        self.requests.clear()
        await self.until(lambda: set(names) <= set(self.requests))


async def _too_large() -> None:
    site = Site(total=32)
    site.add("a", 64)
    site.add("b", 32)
    site.add("c", 64)
    site.add("d", 4)
    async with site.running():
        await site.until(lambda: bool(site.text("d")))
        assert site.reserved == ["b"]
        assert [site.reason(name) for name in "acd"] == [UNSCHEDULABLE, UNSCHEDULABLE, ""]
        assert site.text("a") == "At most 32. Until then, other jobs come first."
        assert site.text("d") == "Position 1 of the jobs in namespace ns that wait for IPUs. Full."
        assert site.admission.unschedulable == 2
        assert "c" not in site.requests  # the same demand was rejected for the first job
        site.total[""], site.free[""] = 64, 32
        await site.until(lambda: site.text("d").startswith("Position 3"))
        assert site.reason("a") == site.reason("c") == ""
        await site.tried("a")
        assert site.reserved == ["b"]  # the large job has its place again: it waits, and blocks the small one
        site.free[""] = 64
        await site.until(lambda: site.reserved == ["b", "a"])


async def _resized() -> None:
    site = Site(total=32)
    site.add("a", 8)
    async with site.running():
        await site.until(lambda: site.reserved == ["a"])

    def is_outdated(**spec: Any) -> bool:
        ipujob = first_form(modelReplicas="8", **spec)
        ipujob["metadata"] = {"name": "a", "namespace": "ns", "uid": "ns/a"}
        found = site.admission.grant("ns/a", 0)
        assert found is not None
        return found.is_outdated(jobs.read(ipujob))

    assert not is_outdated()
    assert is_outdated(ipusPerModelReplica="2")
    assert is_outdated(workers=workers(2))


async def _forgotten() -> None:
    site = Site(total=32)
    names = [f"job{ipus}" for ipus in (64, 128, 256)]
    for name, ipus in zip(names, (64, 128, 256), strict=True):
        site.add(name, ipus)
    site.add("other", 64)
    async with site.running():
        await site.until(lambda: len(site.admission.rejected) == 3)
        await site.admission.withdraw(("ns", "job64"))
        assert len(site.admission.rejected) == 3  # another job has the same demand
        for name in ("other", *names[1:]):
            await site.admission.withdraw(("ns", name))
        assert site.admission.rejected == set()


async def _withdrawn_during_a_request() -> None:
    site = Site(total=32)
    site.silent.add("silent")
    for name, ipus, pool in (("a", 64, ""), ("b", 4, "silent")):
        site.gate.clear()
        site.add(name, ipus, pool=pool)
        async with site.running():
            await site.until(lambda name=name: name in site.requests)
            withdrawal = asyncio.create_task(site.admission.withdraw(("ns", name)))
            await asyncio.sleep(0)
            site.gate.set()
            await withdrawal
        assert site.admission.rejected == set()
    assert ("ns", "b") not in site.admission.unserved


async def _changed() -> None:
    site = Site(total=32)
    site.free[""] = 4
    site.add("a", 8, pool="unknown")
    async with site.running():
        await site.until(lambda: site.reason("a") == UNSCHEDULABLE)
        site.add("a", 8)  # its node selector was changed
        assert site.reason("a") == ""
        assert site.admission.unschedulable == len(site.admission.rejected) == 0
        site.add("b", 4)
        await site.until(lambda: site.text("b").startswith("Position 2"))
        site.free[""] = 12
        await site.until(lambda: site.reserved == ["a", "b"])


async def _wrong_nodes() -> None:
    site = Site(total=32)
    site.add("a", 4, pool="unknown")
    site.add("b", 4)
    async with site.running():
        await site.until(lambda: site.reserved == ["b"])
        assert site.reason("a") == UNSCHEDULABLE
        site.total["unknown"] = site.free["unknown"] = 8
        await site.until(lambda: site.reserved == ["b", "a"])


async def _denied() -> None:
    site = Site(total=32)
    site.free[""] = 4
    site.add("a", 8, denied=True)
    site.add("b", 4)
    async with site.running():
        await site.until(lambda: site.reserved == ["b"])
        await site.until(lambda: bool(site.text("a")))
        assert site.reason("a") == DENIED
        assert site.text("a") == "Its pods were denied, so other jobs come first. Full."
        site.add("c", 8)
        await site.tried("a", "c")
        site.free[""] = 8
        await site.until(lambda: len(site.reserved) == 2)
        assert site.reserved == ["b", "a"]  # it is tried before later ones


async def _other_namespaces(clock: list[float], *, pool: str, silent: bool) -> list[str]:
    site = Site(total=4, other=0)
    site.free[""] = 0 if not pool else 4
    if silent:
        site.silent.add("other")
    site.add("a", 4, "x", pool)
    async with site.running():
        await site.tried("a")
        await site.until(lambda: bool(site.text("a", "x")))
        clock[0] += PATIENCE_SECONDS
        site.add("b", 1, "y", "")
        await site.until(lambda: bool(site.reserved or site.text("b", "y")))
    return [*site.reserved, site.text("b", "y")]


def test_a_job_that_is_too_large_blocks_nobody_until_it_can_run() -> None:
    asyncio.run(_too_large())


def test_a_partition_of_another_size_is_outdated() -> None:
    asyncio.run(_resized())


def test_rejections_end_with_the_jobs_that_have_the_demand() -> None:
    asyncio.run(_forgotten())


def test_a_withdrawn_job_leaves_no_rejection() -> None:
    asyncio.run(_withdrawn_during_a_request())


def test_a_job_with_a_changed_demand_keeps_its_place() -> None:
    asyncio.run(_changed())


def test_a_job_for_nodes_without_a_controller_blocks_nobody() -> None:
    asyncio.run(_wrong_nodes())


def test_a_denied_job_blocks_nobody_and_is_tried_first() -> None:
    asyncio.run(_denied())


@pytest.mark.parametrize(
    ("pool", "silent", "expected"),
    [
        (
            "",
            False,
            [
                "Position 1 of the jobs in namespace y that wait for IPUs. Job x/a has waited for a long time and "
                "comes first."
            ],
        ),
        ("other", False, ["b", ""]),  # too large
        ("unknown", False, ["b", ""]),
        ("other", True, ["b", ""]),  # its controller does not respond
    ],
)
def test_only_jobs_that_can_run_block_other_namespaces(
    monkeypatch: pytest.MonkeyPatch, pool: str, silent: bool, expected: list[str]
) -> None:
    clock = [0.0]
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + clock[0])
    monkeypatch.setattr("openipu.kubernetes.operator.admission.time", later)
    assert asyncio.run(_other_namespaces(clock, pool=pool, silent=silent)) == expected
