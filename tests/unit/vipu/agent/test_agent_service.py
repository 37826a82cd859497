# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent API over a real connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from openipu.shared.pod.topology import Layout
from openipu.twin.cables.wiring import Wiring
from openipu.twin.machine.hardware import TwinHardware
from openipu.vipu.agent.ownership import Ownership
from openipu.vipu.agent.server import AgentServer
from openipu.vipu.agent_api.contract import agent
from openipu.vipu.agent_api.limits import MAX_PARTITIONS_PER_CALL
from openipu.vipu.domain.model import Routing, SyncType
from tests.agent_owner import OWNER, controller_stub


@asynccontextmanager
async def connected(**options: Any) -> AsyncIterator[tuple[TwinHardware, Any]]:
    hardware = TwinHardware("127.83.0.1", "127.83.5.1", "8203921-0001", **options)
    ownership = Ownership()
    ownership.take_over(OWNER)
    server = AgentServer(hardware, "127.83.0.1", 0, ownership=ownership)
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.83.0.1:{server.port}") as channel:
            yield hardware, controller_stub(channel)
    finally:
        await server.stop()


def scenario(body: Callable[[TwinHardware, Any], Awaitable[None]], **options: Any) -> None:
    async def run() -> None:
        async with asyncio.timeout(10), connected(**options) as (hardware, stub):
            await body(hardware, stub)

    asyncio.run(run())


def share(id: str, *ipus: int, **options: Any) -> Any:
    return agent.PartitionShare(
        partition_id=id,
        ipus=[agent.ShareIpu(ipu=ipu, routing_id=7 - ipu, ipulink_segment_id=1) for ipu in ipus],
        ipulink_routing_type=Routing.DNC,
        sync_type=SyncType.GS2_DEFAULT,
        **options,
    )


def test_configure_responds_share_by_share() -> None:
    async def body(hardware: TwinHardware, stub: Any) -> None:
        shares = [share("low", 1, 0), share("nothing"), share("odd", 3), share("high", 3, 2)]
        shares[2].ipulink_routing_type = 99
        reply = await stub.Configure(agent.ConfigureRequest(shares=shares))
        assert [result.partition_id for result in reply.results] == ["low", "nothing", "odd", "high"]
        assert [bool(result.error) for result in reply.results] == [False, True, True, False]
        low = reply.results[0]
        assert [(d.ipu_id, d.routing_id, d.ipulink_segment_id, d.ip) for d in low.devices] == [
            (1, 6, 1, "127.83.5.1"),
            (0, 7, 1, "127.83.5.1"),
        ]
        assert low.ipuof_server_version == "v1.3.3"
        assert hardware.partition_ids == ["high", "low"]
        assert (reply.boot_id, reply.revision) == (hardware.boot_id, 1)
        released = await stub.Release(agent.ReleaseRequest(partition_ids=["low", "stranger"]))
        assert [result.error for result in released.results] == ["", ""]
        assert released.revision == 2
        assert hardware.partition_ids == ["high"]

    scenario(body)


def test_events_list_held_partitions_with_a_revision() -> None:
    async def body(hardware: TwinHardware, stub: Any) -> None:
        call = stub.Watch(agent.WatchRequest(heartbeat_milliseconds=50))
        first = await call.read()
        assert (first.boot_id, list(first.shares), first.revision) == (hardware.boot_id, [], 0)
        reply = await stub.Configure(agent.ConfigureRequest(shares=[share("p", 1, 0)]))
        event = await call.read()
        while event.revision < reply.revision:
            event = await call.read()
        assert [share.partition_id for share in event.shares] == ["p"]
        hardware.fail_ipu(1, "broken")
        hardware.fail_ipu(3, "unused")
        event = await call.read()
        while not event.faults:
            event = await call.read()
        assert [(fault.partition_id, fault.ipu, fault.reason) for fault in event.faults] == [("p", 1, "broken")]
        hardware.reboot()
        event = await call.read()
        while event.boot_id != hardware.boot_id:
            event = await call.read()
        assert (list(event.shares), event.revision) == ([], 0)
        call.cancel()

    scenario(body)


def test_a_fault_does_not_wait_for_the_heartbeat() -> None:
    async def body(hardware: TwinHardware, stub: Any) -> None:
        await stub.Configure(agent.ConfigureRequest(shares=[share("p", 0)]))
        call = stub.Watch(agent.WatchRequest(heartbeat_milliseconds=60_000))
        await call.read()
        hardware.fail_ipu(0, "broken")
        async with asyncio.timeout(2):
            assert (await call.read()).faults[0].partition_id == "p"
        call.cancel()

    scenario(body)


def test_changes_go_one_at_a_time() -> None:
    async def body(hardware: TwinHardware, stub: Any) -> None:
        configure = stub.Configure(agent.ConfigureRequest(shares=[share("p", 0)]))
        release = stub.Release(agent.ReleaseRequest(partition_ids=["p"]))
        replies = await asyncio.gather(configure, release)
        assert sorted(reply.revision for reply in replies) == [1, 2]
        assert hardware.partition_ids == ([] if replies[1].revision == 2 else ["p"])

    scenario(body, bring_up=0.05)


def test_a_caller_that_gives_up_leaves_the_agent_free() -> None:
    async def body(hardware: TwinHardware, stub: Any) -> None:
        hardware.hang()
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await stub.Configure(agent.ConfigureRequest(shares=[share("p", 0)]), timeout=0.1)
        assert error.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        hardware.heal()
        reply = await stub.Configure(agent.ConfigureRequest(shares=[share("q", 0)]), timeout=2)
        assert reply.results[0].error == ""
        assert "q" in hardware.partition_ids

    scenario(body)


def test_information_about_the_machine() -> None:
    async def body(hardware: TwinHardware, stub: Any) -> None:
        info = await stub.GetInfo(agent.GetInfoRequest())
        assert (info.boot_id, info.num_ipus, info.rnic_address) == (hardware.boot_id, 4, "127.83.5.1")
        assert info.facts[0].name == "Exporter"
        assert [ipu.ipu for ipu in info.ipus] == [0, 1, 2, 3]
        assert len(info.versions) == 6
        attributes = await stub.ListIpuAttributes(agent.ListIpuAttributesRequest())
        assert attributes.ipus[3].attributes["board type"] == "M2000"
        cables = await stub.ReadCables(agent.ReadCablesRequest())
        kinds = [port.kind for port in cables.ports]
        assert [kinds.count(kind) for kind in (agent.CablePort.IPU_LINK, agent.CablePort.GW_LINK, 3)] == [8, 2, 8]
        links = await stub.TrainLinks(agent.TrainLinksRequest())
        assert len(links.links) == 26
        pfc = await stub.ReadPfc(agent.ReadPfcRequest())
        assert list(pfc.interfaces["eth1"].classes) == list(range(8))

    scenario(body)


def two_wired_together(body: Callable[[Wiring, Any, Any], Awaitable[None]]) -> None:
    """Return two adjacent machines of a cluster of two domains; the other two machines are not called."""
    wiring = Wiring()
    ids = ["low", "high", "other-low", "other-high"]
    wiring.connect(Layout(2, 2, "mesh"), ids)
    for id in ids[2:]:
        TwinHardware("127.83.0.1", "127.83.5.1", "8203921-0001", agent_id=id, wiring=wiring)

    async def run() -> None:
        options = {"wiring": wiring}
        async with (
            asyncio.timeout(10),
            connected(agent_id="low", **options) as (_, low),
            connected(agent_id="high", **options) as (_, high),
        ):
            await body(wiring, low, high)

    asyncio.run(run())


def test_cables_pulses_links_and_traffic_between_machines() -> None:
    kinds = agent.CablePort
    pulses = agent.PulseSyncRequest.Pulses

    async def arrived(stub: Any) -> set[tuple[int, int, int]]:
        return {(item.kind, item.port, item.count) for item in (await stub.ReadSync(agent.ReadSyncRequest())).ports}

    async def up(stub: Any, *link_kinds: int) -> dict[str, bool]:
        links = (await stub.TrainLinks(agent.TrainLinksRequest(kinds=link_kinds))).links
        return {link.link: link.up for link in links}

    async def serials(stub: Any) -> dict[tuple[int, int], str]:
        ports = (await stub.ReadCables(agent.ReadCablesRequest())).ports
        return {(port.kind, port.port): port.serial for port in ports}

    async def body(wiring: Wiring, low: Any, high: Any) -> None:
        below, above = await serials(low), await serials(high)
        assert below[kinds.IPU_LINK, 5] == above[kinds.IPU_LINK, 1] != ""
        assert below[kinds.SYNC_LINK, 7] == above[kinds.SYNC_LINK, 3] != ""
        assert below[kinds.IPU_LINK, 1] == ""

        sent = [pulses(kind=kinds.SYNC_LINK, port=6, count=3), pulses(kind=kinds.SYNC_LINK, port=7, count=4)]
        for stub in (low, high):
            await stub.ClearSync(agent.ClearSyncRequest())
        await low.PulseSync(agent.PulseSyncRequest(ports=sent))
        assert await arrived(high) == {(kinds.SYNC_LINK, 2, 3), (kinds.SYNC_LINK, 3, 4)}
        assert await arrived(low) == set()
        await high.ClearSync(agent.ClearSyncRequest())
        assert await arrived(high) == set()

        assert await up(low, kinds.GW_LINK) == {"gw1": True, "gw2": True}
        trained = await up(low, kinds.IPU_LINK)
        assert {link for link, is_up in trained.items() if not is_up} == {"1", "2", "3", "4"}
        assert len(trained) == 24

        wiring.degrade(wiring.place("high:2"), corrected_errors=327)
        wiring.unplug(wiring.place("high:3"))
        reply = await low.RunTraffic(agent.RunTrafficRequest(traffic_test=1, ports=[5, 6, 7]))
        outside = {link.link: (link.up, link.corrected_errors) for link in reply.links if link.link.isdigit()}
        assert outside == {"5": (True, 0), "6": (True, 327), "7": (False, 0)}
        assert len(reply.links) == 16 + 3

    two_wired_together(body)


@pytest.mark.parametrize(
    ("method", "request_", "message"),
    [
        (
            "PulseSync",
            agent.PulseSyncRequest(ports=[agent.PulseSyncRequest.Pulses(kind=3, port=8, count=1)]),
            "Cannot send sync pulses: Sync-Link port 8 carries no sync.",
        ),
        (
            "RunTraffic",
            agent.RunTrafficRequest(traffic_test=1, ports=[5, 9]),
            "Cannot run the traffic test: there is no IPU-Link port 9.",
        ),
        ("TrainLinks", agent.TrainLinksRequest(kinds=[0]), "Cannot train the links: it has no cables of kind 0."),
        ("TrainLinks", agent.TrainLinksRequest(kinds=[99]), "Cannot train the links: it has no cables of kind 99."),
    ],
)
def test_a_missing_port_is_rejected(method: str, request_: Any, message: str) -> None:
    async def body(hardware: TwinHardware, stub: Any) -> None:
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await getattr(stub, method)(request_)
        assert error.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert error.value.details() == message

    scenario(body)


def test_a_call_with_too_many_partitions_is_rejected() -> None:
    async def body(hardware: TwinHardware, stub: Any) -> None:
        ids = [f"p{number}" for number in range(MAX_PARTITIONS_PER_CALL + 1)]
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await stub.Release(agent.ReleaseRequest(partition_ids=ids))
        assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await stub.Release(agent.ReleaseRequest(partition_ids=["x" * (2 << 20)]))
        assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED

    scenario(body)
