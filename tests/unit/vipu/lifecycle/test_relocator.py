# SPDX-License-Identifier: GPL-3.0-or-later
"""Relocation: number of searches, order, failures."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

from openipu.vipu.domain import partition_state, rules
from openipu.vipu.domain.context import Context
from openipu.vipu.domain.model import Change, Operation, Partition, Put
from openipu.vipu.domain.specs import PartitionSpec
from openipu.vipu.domain.state import State
from openipu.vipu.lifecycle import relocator
from openipu.vipu.lifecycle.relocator import Relocator
from openipu.vipu.storage.store import StoreError
from tests.unit.vipu.domain.rules_support import pod

DOWN = frozenset({"ag01", "ag02"})


class Writer:
    """Records whose commands run when the test wants it."""

    def __init__(self, count: int) -> None:
        self.state = pod(4)
        for number in range(count):
            self.state.apply(rules.create(self.state, PartitionSpec(f"p{number}", 1, "a1"), Context()))
        for record in list(self.state.partitions.values()):
            self.state.apply([Put(replace(record, operation=Operation.FAILED, relocatable=True))])
        self.pending: list[tuple[Any, Future[Any]]] = []
        self.commands = 0

    def submit(self, command: Any) -> Future[Any]:
        self.commands += 1
        self.pending.append((command, Future()))
        return self.pending[-1][1]

    def commit(self) -> Sequence[Change]:
        command, future = self.pending.pop(0)
        changes, result = command(self.state)
        self.state.apply(changes)
        future.set_result(result)
        return list(changes)

    @property
    def records(self) -> list[Partition]:
        return list(self.state.partitions.values())


@pytest.fixture(autouse=True)
def interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relocator, "INTERVAL", 0.001)


async def settle() -> None:
    await asyncio.sleep(0.01)


def box_of(writer: Any, down: Collection[str] = DOWN) -> Relocator:
    return Relocator(writer, asyncio.get_running_loop(), lambda: frozenset(down), dict)


@pytest.mark.parametrize("count", [4, 8, 16])
def test_the_cost_does_not_grow_with_the_number_of_events(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []

    def no_place(state: State, record: Partition, unavailable: frozenset[str], *_: Any) -> None:
        searched.append(record.id)

    monkeypatch.setattr(partition_state, "find_relocation", no_place)

    async def body() -> None:
        writer = Writer(count)
        box = box_of(writer, frozenset(writer.state.agents))
        for record in writer.records:
            box.add(record)
        for events in range(3):  # each burst: as many agents or removals as there are partitions
            await settle()
            for _ in range(count):
                box.search()
            assert len(writer.pending) == 1, f"burst {events}"
            writer.commit()
        await settle()
        writer.commit()
        await settle()
        assert writer.commands == 4
        assert searched == [f"p{number}" for number in range(count)] * 4

    asyncio.run(body())


def test_partitions_move_together() -> None:
    async def body() -> None:
        writer = Writer(8)
        box = box_of(writer)
        stranded = [record for record in writer.records if record.id != "p3"]
        for record in stranded:
            box.add(record)
        box.add(writer.state.partitions["p3"])
        box.discard("p3")
        writer.state.apply([Put(replace(writer.state.partitions["p4"], errors=("newer record",)))])
        await settle()
        moved = [change.record.id for change in writer.commit() if isinstance(change, Put)]
        assert moved == ["p0", "p1", "p2", "p5", "p6", "p7"]
        await settle()
        assert not writer.pending

    asyncio.run(body())


def test_a_partition_whose_agents_return_before_the_search_stays() -> None:
    async def body() -> None:
        writer = Writer(8)
        down = set(DOWN)
        box = box_of(writer, down)
        for record in writer.records:
            box.add(record)
        await settle()
        down.discard("ag01")
        moved = [change.record.id for change in writer.commit() if isinstance(change, Put)]
        assert moved == ["p4", "p5", "p6", "p7"]

    asyncio.run(body())


def test_a_failed_search_is_repeated() -> None:
    async def body() -> None:
        writer = Writer(1)
        box_of(writer).add(writer.records[0])
        await settle()
        writer.pending.pop(0)[1].set_exception(StoreError("The disk is full."))
        await settle()
        assert len(writer.commit()) == 1

    asyncio.run(body())


def test_no_search_without_partitions() -> None:
    async def body() -> None:
        writer = Writer(1)
        box_of(writer).search()
        await settle()
        assert not writer.pending

    asyncio.run(body())
