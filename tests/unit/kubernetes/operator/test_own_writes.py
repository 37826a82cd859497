# SPDX-License-Identifier: GPL-3.0-or-later
"""Own writes of jobs: they start no reconciliation, so each reconciliation takes all steps that follow them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from openipu.kubernetes.cluster.client import IPUJOBS, ApiError, Object, Resource
from openipu.kubernetes.domain.status import State
from openipu.kubernetes.operator.controller import JobController
from tests.unit.kubernetes.domain.ipujobs import first_form
from tests.unit.kubernetes.domain.objects import OPTIONS, worker
from tests.unit.kubernetes.operator.sites import Site

NAME = ("default", "sample")


def version(number: int) -> Object:
    """Return a job as the API server has it."""
    job = first_form()
    return {**job, "metadata": {**job["metadata"], "resourceVersion": str(number)}}


class Server:
    """API server with changes of one job. ``client`` of a controller."""

    def __init__(self) -> None:
        self.changes: asyncio.Queue[tuple[str, Object]] = asyncio.Queue()

    async def list(self, *arguments: Any) -> tuple[list[Object], str]:
        return [], "1"

    async def patch(self, *arguments: Any) -> Object:
        return version(5)

    async def watch(self, resource: Resource, *arguments: Any) -> AsyncIterator[tuple[str, Object]]:
        while resource is IPUJOBS:
            yield await self.changes.get()
            self.changes.task_done()
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("kind", "number", "waiting"),
    [
        ("MODIFIED", 4, 0),  # before the own write, so it was handled
        ("MODIFIED", 5, 0),  # the own write
        ("MODIFIED", 6, 1),
        ("DELETED", 5, 1),
    ],
)
def test_only_changes_of_others_start_reconciliations(kind: str, number: int, waiting: int) -> None:
    async def run() -> None:
        server: Any = Server()
        proxy: Any = None
        controller = JobController(server, proxy, OPTIONS)
        following = asyncio.create_task(controller.jobs.run())
        await controller.store.write_status(NAME, version(3), {"restartCount": 1})
        server.changes.put_nowait((kind, version(number)))
        await asyncio.wait_for(server.changes.join(), 20)
        assert len(controller.queue) == waiting
        following.cancel()

    asyncio.run(run())


def test_a_job_with_invalid_pods_is_cleaned_up_in_the_same_reconciliation() -> None:
    async def run() -> None:
        site = Site(release_seconds=60, cleanPodPolicy="All")
        site.pods = [worker(site.job, phase="Pending")]  # the launcher is missing
        site.rejection = ApiError("The name of a volume is wrong.", 422, "Invalid")
        await site.start()
        assert await site.reconcile() is State.FAILED
        assert site.pods == []
        assert len(site.admission) == 0

    asyncio.run(run())
