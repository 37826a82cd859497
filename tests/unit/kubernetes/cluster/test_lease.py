# SPDX-License-Identifier: GPL-3.0-or-later
"""Election of a leader: takeover, loss and release of the lease."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from openipu.kubernetes.cluster.client import ApiError
from openipu.kubernetes.cluster.lease import Election, LeaseTimes

TIMES = LeaseTimes(duration=1.0, renew=0.3, retry=0.02)


class Leases:
    """API server with one lease, which requires the present version of each writer."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.reachable = True
        self.delay = 0.0  # of answers to writes

    async def find(self, *name: Any) -> dict[str, Any] | None:
        self._check()
        return copy.deepcopy(self.lease)

    async def create(self, resource: Any, lease: dict[str, Any]) -> None:
        self._check()
        if self.lease is not None:
            raise ApiError("it exists", 409, "AlreadyExists")
        self._store(lease)
        await asyncio.sleep(self.delay)

    async def replace(self, resource: Any, lease: dict[str, Any]) -> None:
        self._check()
        if lease["metadata"].get("resourceVersion") != str(self.version):
            raise ApiError("it has changed", 409, "Conflict")
        self._store(lease)
        await asyncio.sleep(self.delay)

    @property
    def holder(self) -> str:
        return "" if self.lease is None else self.lease["spec"]["holderIdentity"]

    def _check(self) -> None:
        if not self.reachable:
            raise ApiError("The API server does not respond.")

    def _store(self, lease: dict[str, Any]) -> None:
        self.version += 1
        self.lease = copy.deepcopy(lease)
        self.lease["metadata"]["resourceVersion"] = str(self.version)


class Candidate:
    """A candidate, and whether its work runs."""

    def __init__(self, leases: Leases, name: str) -> None:
        client: Any = leases
        self.election = Election(client, "system", "operator", name, TIMES)
        self.works = False
        self.task = asyncio.create_task(self.election.run(self._work))

    async def _work(self) -> None:
        self.works = True
        try:
            await asyncio.Event().wait()
        finally:
            self.works = False

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


def run(body: Callable[[Leases], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(20):
            await body(Leases())

    asyncio.run(limited())


def test_one_of_two_candidates_leads_and_the_other_follows_at_once() -> None:
    async def body(leases: Leases) -> None:
        first = Candidate(leases, "first")
        await until(lambda: first.works)
        second = Candidate(leases, "second")
        await asyncio.sleep(10 * TIMES.retry)
        assert not second.works
        await first.stop()
        assert leases.holder != "first"  # released, so that no candidate waits for its end
        await until(lambda: second.works)
        assert not first.works
        assert leases.lease is not None
        assert leases.lease["spec"]["leaseTransitions"] == 1
        await second.stop()

    run(body)


def test_a_leader_without_api_server_stops_before_another_one_leads() -> None:
    async def body(leases: Leases) -> None:
        leader = Candidate(leases, "first")
        await until(lambda: leader.works)
        leases.reachable = False
        await until(lambda: not leader.works)
        leases.reachable = True
        await until(lambda: leader.works)
        await leader.stop()

    run(body)


def test_a_killed_leader_is_replaced_after_the_duration() -> None:
    async def body(leases: Leases) -> None:
        leases.lease = {
            "metadata": {"resourceVersion": "0"},
            "spec": {"holderIdentity": "killed", "renewTime": "1970-01-01T00:00:00Z", "leaseDurationSeconds": 1},
        }
        started = asyncio.get_running_loop().time()
        candidate = Candidate(leases, "second")
        await until(lambda: candidate.works)
        # Clocks may differ: the time counts from the first look at the lease.
        assert asyncio.get_running_loop().time() - started >= 1.0
        await candidate.stop()

    run(body)


def test_a_leader_that_was_replaced_stops() -> None:
    async def body(leases: Leases) -> None:
        leader = Candidate(leases, "first")
        await until(lambda: leader.works)
        assert leases.lease is not None
        taken = copy.deepcopy(leases.lease)
        taken["spec"] |= {"holderIdentity": "other", "leaseDurationSeconds": 3600}
        await leases.replace(None, taken)
        await until(lambda: not leader.works)
        assert leases.holder == "other"
        await leader.stop()
        assert leases.holder == "other"

    run(body)


def test_a_lease_counts_from_the_request_and_not_from_its_answer() -> None:
    async def body(leases: Leases) -> None:
        leases.delay = 1.1 * TIMES.renew
        candidate = Candidate(leases, "first")
        await until(lambda: leases.version == 2)
        assert not candidate.works  # the first answer came too late: another candidate may lead soon
        leases.delay = 0.0
        await until(lambda: candidate.works)
        await candidate.stop()

    run(body)


def test_a_leader_that_was_stopped_must_not_write() -> None:
    async def body(leases: Leases) -> None:
        leader = Candidate(leases, "first")
        await until(lambda: leader.works)
        leader.election.check()
        time.sleep(1.1 * TIMES.renew)  # nothing runs meanwhile
        assert leader.works
        with pytest.raises(ApiError, match="This operator leads no longer"):
            leader.election.check()
        await leader.stop()

    run(body)
