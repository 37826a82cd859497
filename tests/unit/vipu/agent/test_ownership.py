# SPDX-License-Identifier: GPL-3.0-or-later
"""Owner of an agent: rules, storage and calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from openipu.twin.machine.hardware import TwinHardware
from openipu.vipu.agent.ownership import Ownership, OwnershipError, rejection
from openipu.vipu.agent.server import AgentServer
from openipu.vipu.agent_api import identity
from openipu.vipu.agent_api.contract import agent
from tests.agent_owner import OTHER, OWNER, controller_stub

LATER = OWNER._replace(epoch=2)
SHARE = agent.PartitionShare(partition_id="p", ipus=[agent.ShareIpu(ipu=0)], ipulink_routing_type=1, sync_type=1)


def test_only_the_owner_and_its_later_epochs_are_accepted() -> None:
    assert rejection(OWNER, OWNER) == ""
    assert rejection(OWNER, LATER) == ""
    assert rejection(LATER, OWNER).startswith("a later controller of deployment 0123456789abcdef uses it (epoch 2")
    assert rejection(OWNER, OTHER).startswith("it belongs to deployment 0123456789abcdef, not to fedcba9876543210.")
    assert rejection(None, OWNER).startswith("it has no owner")
    assert rejection(OWNER, None) == "the call names no deployment"


def test_the_first_claim_wins() -> None:
    ownership = Ownership()
    assert ownership.claim(OWNER) == ""
    assert ownership.claim(OTHER) != ""
    assert ownership.claim(LATER) == ""
    assert ownership.claim(OWNER) != ""
    assert ownership.owner == LATER


def test_only_an_idle_machine_becomes_another_agent() -> None:
    first, second = OWNER._replace(agent="ag01"), LATER._replace(agent="ag02")
    ownership = Ownership()
    assert ownership.claim(first) == ""
    assert ownership.claim(second) == (
        "the machine at its endpoint is registered as agent 'ag01'. Correct the endpoint of agent 'ag02'. If it is "
        "right, 'vipu-admin take-over agent ag02 --other-agent' releases the partitions of the other agent"
    )
    assert ownership.claim(LATER) == "", "earlier releases of the controller name no agent"
    ownership.take_over(first)
    assert ownership.claim(second, is_idle=True) == ""
    assert ownership.rejection(first) != ""
    assert ownership.claim(OTHER._replace(agent="ag02"), is_idle=True).startswith("it belongs to deployment")


def test_the_owner_survives_a_restart(tmp_path: Path) -> None:
    owner = OWNER._replace(agent="ag01")
    Ownership(tmp_path).claim(owner)
    again = Ownership(tmp_path)
    assert again.owner == owner
    again.give_up()
    assert Ownership(tmp_path).owner is None


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "[" * 100_000),
        *('{"deployment": "a"}', '{"deployment": "x", "epoch": 1}', '{"deployment": 1, "epoch": 1}'),
        *(
            '{"deployment": "a", "epoch": "y"}',
            '{"deployment": "a", "epoch": 1e400}',
            '{"deployment": "a", "epoch": -1}',
        ),
        *('{"deployment": "a", "epoch": 1, "agent": null}', '{"deployment": "a", "epoch": 1, "agent": "\\u001b"}'),
        f'{{"deployment": "a", "epoch": 1, "agent": "{"x" * 64}"}}',
    ],
)
def test_a_damaged_file_is_not_taken_for_no_owner(tmp_path: Path, text: str) -> None:
    (tmp_path / "owner.json").write_text(text)
    with pytest.raises(OwnershipError, match="Cannot read the owner of the agent"):
        Ownership(tmp_path)


def test_an_owner_that_cannot_be_stored_is_not_changed(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    ownership = Ownership(folder)
    folder.rmdir()
    folder.touch()
    with pytest.raises(OwnershipError, match="The owner was not changed"):
        ownership.claim(OWNER)
    assert ownership.owner is None


@pytest.mark.parametrize(
    "metadata",
    [
        (),
        (("openipu-deployment", "0123"),),
        (("openipu-deployment", "../x"), ("openipu-epoch", "1")),
        (("openipu-deployment", "0" * 65), ("openipu-epoch", "1")),
        (("openipu-deployment", "0123"), ("openipu-epoch", "-1")),
        (("openipu-deployment", "0123"), ("openipu-epoch", "9" * 19)),
        (("openipu-deployment", "0123"), ("openipu-epoch", "1"), ("openipu-agent", "../x")),
    ],
)
def test_invalid_metadata_names_no_controller(metadata: Any) -> None:
    assert identity.caller(metadata) is None


@asynccontextmanager
async def machine() -> AsyncIterator[tuple[TwinHardware, grpc.aio.Channel]]:
    """Yield a machine and a channel to its agent."""
    hardware = TwinHardware("127.83.0.2", "127.83.5.2", "8203921-0002")
    server = AgentServer(hardware, "127.83.0.2", 0)
    await server.start()
    try:
        async with asyncio.timeout(10), grpc.aio.insecure_channel(f"127.83.0.2:{server.port}") as channel:
            yield hardware, channel
    finally:
        await server.stop()


@asynccontextmanager
async def stubs() -> AsyncIterator[tuple[TwinHardware, Any, Any, Any]]:
    """Yield a machine, and stubs of the owner, another controller and an anonymous caller."""
    async with machine() as (hardware, channel):
        owner, other = controller_stub(channel, OWNER), controller_stub(channel, OTHER)
        yield hardware, owner, other, agent.stub(channel, "AgentService")


async def rejected(call: Any) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    return str(caught.value.details())


def test_others_change_nothing() -> None:
    async def body() -> None:
        async with stubs() as (hardware, owner, other, _):
            assert "it has no owner" in await rejected(owner.Configure(agent.ConfigureRequest(shares=[SHARE])))
            await owner.Watch(agent.WatchRequest()).read()
            await owner.Configure(agent.ConfigureRequest(shares=[SHARE]))
            for method in agent.service("AgentService").methods:
                if method.name not in ("Watch", "TakeOver") and not method.name.startswith(("Get", "List", "Read")):
                    request = getattr(agent, f"{method.name}Request")()
                    assert "it belongs to deployment" in await rejected(getattr(other, method.name)(request))
            assert hardware.partition_ids == ["p"]
            assert (await other.GetInfo(agent.GetInfoRequest())).num_ipus == 4

    asyncio.run(body())


def test_a_takeover_ends_the_events_of_the_former_owner() -> None:
    async def body() -> None:
        async with stubs() as (hardware, owner, other, _):
            events = owner.Watch(agent.WatchRequest(heartbeat_milliseconds=60_000))
            await events.read()
            await owner.Configure(agent.ConfigureRequest(shares=[SHARE]))
            await other.TakeOver(agent.TakeOverRequest())
            assert "it belongs to deployment fedcba" in await rejected(events.read())
            assert "it belongs to deployment fedcba" in await rejected(
                owner.Release(agent.ReleaseRequest(partition_ids=["p"]))
            )
            assert hardware.partition_ids == ["p"]
            await other.GiveUp(agent.GiveUpRequest())
            await owner.Watch(agent.WatchRequest()).read()

    asyncio.run(body())


def test_calls_that_wait_during_a_takeover_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        async with stubs() as (hardware, owner, other, _):
            started, end = asyncio.Event(), asyncio.Event()

            async def slow_release(id: str) -> None:
                started.set()
                await end.wait()

            monkeypatch.setattr(hardware, "release", slow_release)
            await owner.Watch(agent.WatchRequest()).read()
            running = owner.Release(agent.ReleaseRequest(partition_ids=["q"]))
            await started.wait()
            waiting = [
                owner.Configure(agent.ConfigureRequest(shares=[SHARE])),
                owner.Release(agent.ReleaseRequest(partition_ids=["p"])),
            ]
            await owner.GetInfo(agent.GetInfoRequest())  # the agent has received the calls before
            await other.TakeOver(agent.TakeOverRequest())
            end.set()
            await running
            for call in waiting:
                assert "it belongs to deployment fedcba" in await rejected(call)
            assert hardware.partition_ids == []

    asyncio.run(body())


def test_a_takeover_needs_a_deployment() -> None:
    async def body() -> None:
        async with stubs() as (_, _, _, anonymous):
            assert "names no deployment" in await rejected(anonymous.TakeOver(agent.TakeOverRequest()))
            await anonymous.Watch(agent.WatchRequest()).read()

    asyncio.run(body())


def test_a_machine_becomes_another_agent_after_the_release_of_its_partitions() -> None:
    async def body() -> None:
        async with machine() as (_, channel):
            first, second = (controller_stub(channel, OWNER._replace(agent=id)) for id in ("ag01", "ag02"))
            events = first.Watch(agent.WatchRequest(heartbeat_milliseconds=60_000))
            await events.read()
            await first.Configure(agent.ConfigureRequest(shares=[SHARE]))
            assert "is registered as agent 'ag01'" in await rejected(second.Watch(agent.WatchRequest()).read())
            await first.Release(agent.ReleaseRequest(partition_ids=["p"]))
            await events.read()  # after the release
            assert "is registered as agent 'ag01'" in await rejected(second.Watch(agent.WatchRequest()).read())
            events.cancel()
            while not await follows(second):
                pass
            assert "is registered as agent 'ag02'" in await rejected(first.Release(agent.ReleaseRequest()))

    asyncio.run(body())


async def follows(stub: Any) -> bool:
    """Return whether an agent accepts a stream of events."""
    try:
        await stub.Watch(agent.WatchRequest()).read()
    except grpc.aio.AioRpcError as error:
        assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
        return False
    return True


def test_a_takeover_of_another_agent_of_the_owner_is_explicit() -> None:
    async def body() -> None:
        async with machine() as (_, channel):
            first, second = (controller_stub(channel, OWNER._replace(agent=id)) for id in ("ag01", "ag02"))
            events = first.Watch(agent.WatchRequest())
            await events.read()
            events.cancel()
            while not await follows(second):  # the machine is idle
                pass
            await second.Configure(agent.ConfigureRequest(shares=[SHARE]))
            assert "is registered as agent 'ag02'" in await rejected(first.TakeOver(agent.TakeOverRequest()))
            await first.TakeOver(agent.TakeOverRequest(other_agent=True))
            await first.Watch(agent.WatchRequest()).read()

    asyncio.run(body())


def test_other_agents_are_rejected_while_the_machine_configures_a_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        started = asyncio.Event()

        async def configure(*_: Any) -> None:
            started.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(TwinHardware, "configure", configure)
        async with machine() as (_, channel):
            first, second = (controller_stub(channel, OWNER._replace(agent=id)) for id in ("ag01", "ag02"))
            await first.Watch(agent.WatchRequest()).read()
            call = asyncio.ensure_future(first.Configure(agent.ConfigureRequest(shares=[SHARE])))
            await started.wait()
            assert "is registered as agent 'ag01'" in await rejected(second.Watch(agent.WatchRequest()).read())
            call.cancel()

    asyncio.run(body())
