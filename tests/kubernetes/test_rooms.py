# SPDX-License-Identifier: GPL-3.0-or-later
"""Room for partitions at real V-IPU controllers, now and when all other partitions are removed."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from openipu.kubernetes.domain.controllers import Controller
from openipu.kubernetes.proxy.controller import ControllerClient, Fit
from openipu.shared.vipu.client import Connection
from openipu.shared.vipu.contract import admin
from tests.integration.vipu_servers import InProcess, listed


def fits(server: InProcess, *sizes: int) -> list[Fit]:
    """Return the room for partitions, one size after the other."""
    host, _, port = server.address.rpartition(":")

    async def run() -> list[Fit]:
        client = ControllerClient(Controller(host, int(port)), Connection(host, int(port)))
        try:
            return [await client.fit(size) for size in sizes]
        finally:
            client.close()

    return asyncio.run(run())


def test_an_agent_that_is_down_makes_partitions_wait(vipu: Callable[..., InProcess]) -> None:
    server = vipu(8)
    assert fits(server, 32, 64) == [Fit(True), Fit(False, 32)]
    server.life.down = frozenset({"ag03"})
    assert fits(server, 32, 16, 64) == [Fit(False, 32), Fit(True), Fit(False, 32)]


def test_an_idle_allocation_has_the_room_of_neighbouring_machines(vipu: Callable[..., InProcess]) -> None:
    server = vipu(6)
    server.admin.RemoveAllocation(admin.RemoveRequest(id="a1"))
    server.admin.RemoveCluster(admin.RemoveRequest(id="cl0"))
    agents = [f"ag{number:02}" for number in range(1, 7)]
    server.admin.CreateCluster(
        admin.CreateClusterRequest(spec=admin.ClusterSpec(id="cl0", agent_ids=agents, num_ilds=2))
    )
    spec = admin.AllocationSpec(id="a1", cluster_id="cl0", size=4)
    server.admin.CreateAllocation(admin.CreateAllocationRequest(spec=spec))
    # Three machines of the first IPU-Link domain, and one of the second: no 16 IPUs are neighbours.
    (found,) = fits(server, 16)
    assert not found.fits
    assert found.largest < 16


def test_a_controller_with_the_public_api_only_keeps_its_size(vipu: Callable[..., InProcess]) -> None:
    server = vipu(8)
    host, _, port = server.address.rpartition(":")

    async def run() -> None:
        client = ControllerClient(Controller(host, int(port)), Connection(host, int(port)))
        client._public_only = True  # as after the answer of a controller without the other calls
        try:
            assert await client.fit(32) == Fit(True)
            server.life.down = frozenset({"ag03"})  # the public API lists no IPUs of this agent
            assert await client.fit(32) == Fit(False, 32)
            assert await client.fit(64) == Fit(False, 32)
        finally:
            client.close()

    asyncio.run(run())


def calls_per_partition(server: InProcess, size: int) -> list[int]:
    """Create partitions until none fits. Return the number of calls for each one."""
    host, _, port = server.address.rpartition(":")

    async def run() -> list[int]:
        client = ControllerClient(Controller(host, int(port)), Connection(host, int(port)))
        made, calls, call = 0, [], client._client.call

        def counted(*arguments: Any) -> Any:
            nonlocal made
            made += 1
            return call(*arguments)

        client._client.call = counted  # type: ignore[method-assign]
        try:
            for number in itertools.count():
                if not (await client.fit(size)).fits:
                    return calls
                await client.create(f"p{number}", size, 1)
                calls.append(made)
                made = 0
        finally:
            client.close()
        raise AssertionError

    return asyncio.run(run())


@pytest.mark.parametrize("size", [1, 4])
def test_the_calls_for_a_partition_do_not_grow_with_the_number_of_allocations(
    vipu: Callable[..., InProcess], size: int
) -> None:
    for count in (2, 8):
        server = vipu(count)
        server.admin.RemoveAllocation(admin.RemoveRequest(id="a1"))
        for number in range(count):
            spec = admin.AllocationSpec(id=f"own{number}", cluster_id="cl0", size=1)
            server.admin.CreateAllocation(admin.CreateAllocationRequest(spec=spec))
        calls = calls_per_partition(server, size)
        # Two lists of allocations, the room of one of them, and the creation.
        assert calls == [4] * (count * 4 // size)
        assert len(listed(server)) == len(calls)
