# SPDX-License-Identifier: GPL-3.0-or-later
"""Room for partitions at real V-IPU controllers, now and when all other partitions are removed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from openipu.kubernetes.domain.controllers import Controller
from openipu.kubernetes.proxy.controller import ControllerClient, Fit
from openipu.shared.vipu.client import Connection
from openipu.shared.vipu.contract import admin
from tests.integration.vipu_servers import InProcess


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
    assert fits(server, 32, 64) == [Fit(1, 32), Fit(0, 32)]
    server.life.down = frozenset({"ag03"})
    assert fits(server, 32, 16, 64) == [Fit(0, 32), Fit(1, 32), Fit(0, 32)]


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
    assert found.now == 0
    assert found.largest < 16


def test_a_controller_with_the_public_api_only_keeps_its_size(vipu: Callable[..., InProcess]) -> None:
    server = vipu(8)
    host, _, port = server.address.rpartition(":")

    async def run() -> None:
        client = ControllerClient(Controller(host, int(port)), Connection(host, int(port)))
        client._public_only = True  # as after the answer of a controller without the other calls
        try:
            assert await client.fit(32) == Fit(1, 32)
            server.life.down = frozenset({"ag03"})  # the public API lists no IPUs of this agent
            assert await client.fit(32) == Fit(0, 32)
            assert await client.fit(64) == Fit(0, 32)
        finally:
            client.close()

    asyncio.run(run())
