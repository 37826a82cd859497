# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory of faults in an agent."""

from __future__ import annotations

import asyncio

from openipu.twin.machine.hardware import TwinHardware
from openipu.vipu.agent.faults import Faults
from openipu.vipu.agent.hardware import PartitionFault
from openipu.vipu.agent.ownership import Ownership
from openipu.vipu.agent.service import AgentService
from openipu.vipu.agent_api.contract import agent
from openipu.vipu.agent_api.limits import MAX_FAULTS_PER_EVENT

MANY = [PartitionFault(f"p{number}", number % 4, "overheated") for number in range(10_000)]


def test_the_last_faults_are_kept() -> None:
    faults = Faults()
    for fault in MANY:
        faults.add(fault)
    assert faults.all() == MANY[-MAX_FAULTS_PER_EVENT:]
    again = PartitionFault(MANY[-2].partition_id, MANY[-2].ipu, "no power")
    faults.add(again)
    assert faults.all()[-2:] == [MANY[-1], again], "the newest fault of an IPU replaces the earlier one"
    faults.keep(lambda id: id == again.partition_id)
    assert faults.all() == [again]


def test_faults_are_taken_once() -> None:
    async def body() -> None:
        faults = Faults()
        assert await faults.take(0.001) == []
        waiting = asyncio.create_task(faults.take(10))
        await asyncio.sleep(0)
        faults.add(MANY[0])
        assert await waiting == [MANY[0]]
        assert await faults.take(0.001) == []

    asyncio.run(body())


class Anonymous:
    """Context of a call that names no controller."""

    def invocation_metadata(self) -> tuple[()]:
        return ()


def test_a_controller_that_does_not_read_uses_bounded_memory() -> None:
    async def body() -> None:
        service = AgentService(TwinHardware("127.83.0.1", "127.83.5.1", "8203921-0001"), Ownership())
        events = service.Watch(agent.WatchRequest(heartbeat_milliseconds=10_000), Anonymous())
        await anext(events)  # it reads no further event
        for fault in MANY:
            service._report_fault(fault)
        (news,) = service._watchers
        assert len(news.all()) == len(service._faults.all()) == MAX_FAULTS_PER_EVENT
        event = await anext(events)
        assert [fault.partition_id for fault in event.faults] == [
            fault.partition_id for fault in MANY[-MAX_FAULTS_PER_EVENT:]
        ]
        await events.aclose()
        assert service.watchers == 0

    asyncio.run(body())
