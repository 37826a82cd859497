# SPDX-License-Identifier: GPL-3.0-or-later
"""Rounds of the survey while partitions are created and removed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from openipu.kubernetes.domain.controllers import Controller
from openipu.kubernetes.domain.tracking import Owner, Phase, Record
from openipu.kubernetes.domain.visibility import Partition
from openipu.kubernetes.proxy.controller import Inventory
from openipu.kubernetes.proxy.survey import Survey
from openipu.shared.vipu.client import VipuError

CONTROLLER = Controller("pod001", 8090, ("ipunode", "node1"))
SIZES = (8, 16)


@dataclass
class ControllerStub:
    """A controller with 32 IPUs. ``before`` and ``after`` are called while it answers, around the list."""

    controller: Controller = CONTROLLER
    partitions: dict[str, int] = field(default_factory=dict)
    fails: bool = False
    responds: bool = True
    before: Callable[[], None] = lambda: None
    after: Callable[[], None] = lambda: None

    async def inventory(self, sizes: tuple[int, ...]) -> Inventory:
        if self.fails:
            raise VipuError("it is down", "UNAVAILABLE")
        free = 32 - sum(self.partitions.values())
        self.before()
        found = {id: Partition("ACTIVE", ipus) for id, ipus in self.partitions.items()}
        self.after()
        return Inventory(32, free, {size: free // size for size in sizes}, found)


def record(id: str, size: int = 8, phase: Phase = Phase.RESERVED) -> Record:
    return Record(id, Owner("IPUJob", "a", id, id), 0, size, 1, CONTROLLER.address, phase)


def survey(stub: ControllerStub, records: list[Record]) -> Survey:
    pool: Any = [stub]
    return Survey(pool, records, sizes=SIZES)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_usable_ipus_stay_equal_while_own_partitions_come_and_go(moment: str) -> None:
    stub, records = ControllerStub(), [record("leaving")]
    stub.partitions = {"leaving": 8, "foreign": 4}
    found = survey(stub, records)

    def change() -> None:
        stub.partitions = {"foreign": 4, "coming": 16}
        records[:] = [record("coming", 16)]

    for action in (lambda: None, change, lambda: None):
        setattr(stub, moment, action)
        asyncio.run(found.read())
        assert found.usable() == {CONTROLLER: 28}


def test_reservations_since_the_last_round_take_room() -> None:
    stub, records = ControllerStub(), [record("old", 16)]
    stub.partitions = {"old": 16}
    found = survey(stub, records)
    asyncio.run(found.read())
    assert found.rooms()[CONTROLLER].has(16)
    records.append(record("new", 8, Phase.RESERVING))
    assert (found.rooms()[CONTROLLER].has(16), found.rooms()[CONTROLLER].has(8)) == (False, True)
    stub.partitions["new"] = 8
    asyncio.run(found.read())
    records[1] = replace(records[1], phase=Phase.RELEASING)
    assert found.rooms()[CONTROLLER].has(8)  # its IPUs count once


def test_a_silent_controller_has_no_room_but_keeps_its_usable_ipus() -> None:
    stub = ControllerStub()
    found = survey(stub, [])
    assert (found.usable(), found.rooms()[CONTROLLER].responds) == ({CONTROLLER: None}, False)
    asyncio.run(found.read())
    assert (found.usable(), found.rooms()[CONTROLLER].has(16), found.free) == ({CONTROLLER: 32}, True, 32)
    stub.fails = True
    asyncio.run(found.read())
    assert (found.usable(), found.rooms()[CONTROLLER].has(8), found.free) == ({CONTROLLER: 32}, False, 0)


def test_new_partitions_are_not_lost() -> None:
    stub, old = ControllerStub(), record("old")
    stub.partitions, records = {"old": 8}, [old]
    found = survey(stub, records)
    assert found.state(old) == ""  # not read yet
    asyncio.run(found.read())
    new = record("new")
    records.append(new)
    assert (found.state(old), found.state(new)) == ("ACTIVE", "")
    stub.partitions = {}
    asyncio.run(found.read())
    assert (found.state(old), found.state(new)) == ("REMOVED", "REMOVED")


def test_reservations_start_a_new_round_soon() -> None:
    async def body() -> None:
        rounds: asyncio.Queue[None] = asyncio.Queue()
        records: list[Record] = []
        pool: Any = [ControllerStub()]
        found = Survey(pool, records, seconds=3600.0, sizes=SIZES)
        found.listen(lambda: rounds.put_nowait(None))
        task = asyncio.create_task(found.run())
        async with asyncio.timeout(20):
            await rounds.get()
            records.append(record("new"))
            await rounds.get()
        task.cancel()

    asyncio.run(body())
