# SPDX-License-Identifier: GPL-3.0-or-later
"""Health and readiness of a replica."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from openipu.kubernetes.cluster.lease import Election, LeaseTimes
from openipu.kubernetes.cluster.work_queue import WorkQueue
from openipu.kubernetes.operator.replica import Limits, Replica
from tests.unit.kubernetes.cluster.test_lease import Leases

LIMITS = Limits(election=0.5, stalled=0.05, unanswered=0.2)
PATIENT = replace(LIMITS, election=3600)  # a busy machine can delay the election of a test of queues


def run(body: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(20):
            await body()

    asyncio.run(limited())


async def until(condition: Callable[[], Any]) -> Any:
    while not (found := condition()):
        await asyncio.sleep(0.002)
    return found


def replica(leases: Leases, limits: Limits = LIMITS) -> Replica:
    client: Any = leases
    return Replica(Election(client, "system", "operator", "a", LeaseTimes(1.0, 0.3, 0.02)), limits=limits)


def test_a_standby_is_ready_when_the_api_server_answers() -> None:
    async def body() -> None:
        leases = Leases()
        leases.lease = {
            "metadata": {"resourceVersion": "0"},
            "spec": {"holderIdentity": "other", "leaseDurationSeconds": 3600},
        }
        standby = replica(leases)
        assert "cannot lead" in standby.unready()
        task = asyncio.create_task(standby.election.run(asyncio.Event().wait))
        await until(lambda: not standby.unready())
        leases.reachable = False
        assert "cannot lead" in await until(standby.unready)
        assert standby.stuck() == ""  # a restart would not help
        leases.reachable = True
        await until(lambda: not standby.unready())
        task.cancel()

    run(body)


def test_an_election_that_hangs_needs_a_restart() -> None:
    async def body() -> None:
        found = replica(Leases())
        assert found.stuck() == ""
        assert "election has made no attempt" in await until(found.stuck)  # it does not run

    run(body)


def test_a_leader_is_ready_when_its_caches_are_complete() -> None:
    found = replica(Leases())
    controller: Any = SimpleNamespace(synced=False, queues={})
    found.controller = controller
    assert "caches" in found.unready()
    controller.synced = True
    assert found.unready() == ""


@pytest.mark.parametrize("of_pods", [False, True])
def test_a_queue_whose_handlers_hang_needs_a_restart(of_pods: bool) -> None:
    async def body() -> None:
        leases = Leases()
        release = asyncio.Event()

        async def hang(key: str) -> None:
            await release.wait()

        queue = WorkQueue(hang, workers=1)
        leader = replica(leases, PATIENT)
        controllers: Any = [SimpleNamespace(synced=True, queues=each) for each in ({"jobs": queue}, {})]
        leader.controller, leader.pods = reversed(controllers) if of_pods else controllers
        tasks = [
            asyncio.create_task(queue.run()),
            asyncio.create_task(leader.election.run(asyncio.Event().wait)),
        ]
        queue.add("first")
        await until(lambda: queue.longest_seconds > LIMITS.stalled)
        assert leader.stuck() == ""  # no other key waits for it
        queue.add("second")
        assert leader.stuck() == ""
        assert "queue jobs" in await until(leader.stuck)
        release.set()
        await until(lambda: len(queue) == 0)
        assert (leader.stuck(), queue.longest_seconds) == ("", 0.0)
        for each in tasks:
            each.cancel()

    run(body)
