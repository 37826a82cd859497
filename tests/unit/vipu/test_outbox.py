# SPDX-License-Identifier: GPL-3.0-or-later
"""Writing the progress of partitions: in order, together, and again when a write failed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from openipu.vipu import outbox
from openipu.vipu.model import Change, Delete, Kind, Partition, Put, State
from openipu.vipu.outbox import Outbox
from openipu.vipu.store import StoreError


class Writer:
    """Records whose commits this test decides on."""

    def __init__(self, *partitions: Partition) -> None:
        self.state = State()
        self.state.partitions = {partition.id: partition for partition in partitions}
        self.pending: list[tuple[Any, Future[Any]]] = []

    def submit(self, command: Any) -> Future[Any]:
        self.pending.append((command, Future()))
        return self.pending[-1][1]

    def subscribe(self, callback: Any) -> None:
        raise NotImplementedError

    def commit(self) -> Sequence[Change]:
        command, future = self.pending.pop(0)
        changes: Sequence[Change] = command(self.state)[0]
        for change in changes:
            if isinstance(change, Put):
                assert isinstance(change.record, Partition)
                self.state.partitions[change.record.id] = change.record
            else:
                del self.state.partitions[change.id]
        future.set_result(None)
        return changes

    def fail(self, error: Exception) -> None:
        self.pending.pop(0)[1].set_exception(error)


def partition(id: str) -> Partition:
    return Partition(id, "a0", "cl0", ())


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_what_waits_goes_together_and_each_sees_the_one_before() -> None:
    async def body() -> None:
        writer = Writer(partition("p"), partition("q"), partition("r"))
        box = Outbox(writer, asyncio.get_running_loop())
        box.put("p", lambda record: replace(record, retries=record.retries + 1))
        box.put("p", lambda record: replace(record, retries=record.retries * 10))
        box.put("q", lambda record: None)
        box.put("q", lambda record: replace(record, retries=99))
        box.put("r", lambda record: record)
        box.put("gone", lambda record: replace(record, retries=99))
        await settle()
        assert len(writer.pending) == 1
        box.put("r", lambda record: replace(record, retries=5))
        await settle()
        assert len(writer.pending) == 1, "one command at a time"
        assert writer.commit() == [Put(replace(partition("p"), retries=10)), Delete(Kind.PARTITION, "q")]
        await settle()
        assert writer.commit() == [Put(replace(partition("r"), retries=5))]
        await settle()
        assert not writer.pending

    asyncio.run(body())


def test_a_write_that_failed_is_tried_again_before_anything_newer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "RETRY", 0.01)

    async def body() -> None:
        writer = Writer(partition("p"))
        box = Outbox(writer, asyncio.get_running_loop())
        box.put("p", lambda record: replace(record, retries=1))
        await settle()
        box.put("p", lambda record: replace(record, retries=record.retries + 1))
        writer.fail(StoreError("The disk is full."))
        async with asyncio.timeout(5):
            while not writer.pending:
                await asyncio.sleep(0.001)
        assert writer.commit() == [Put(replace(partition("p"), retries=2))]

    asyncio.run(body())


def test_a_transition_that_raises_keeps_nobody_back() -> None:
    def broken(record: Partition) -> Partition:
        raise ValueError(record.id)

    async def body() -> None:
        writer = Writer(partition("p"), partition("q"))
        box = Outbox(writer, asyncio.get_running_loop())
        box.put("p", lambda record: replace(record, retries=1))
        box.put("p", broken)
        box.put("p", lambda record: replace(record, retries=record.retries + 1))
        box.put("q", broken)
        with capture_logs() as logs:
            await settle()
            assert writer.commit() == [Put(replace(partition("p"), retries=2))]
        await settle()
        assert not writer.pending
        assert [(entry["log_level"], entry["partition"]) for entry in logs] == [("error", "p"), ("error", "q")]

    asyncio.run(body())


def test_what_cannot_be_written_is_dropped_alone() -> None:
    async def body() -> None:
        writer = Writer(*(partition(id) for id in "pqr"))
        box = Outbox(writer, asyncio.get_running_loop())
        for id in "pqr":
            box.put(id, lambda record: replace(record, retries=1))
        await settle()
        with capture_logs() as logs:
            writer.fail(TypeError("no such column"))
            await settle()
            assert writer.commit() == [Put(replace(partition("p"), retries=1))]
            await settle()
            writer.fail(TypeError("no such column"))
            await settle()
            assert writer.commit() == [Put(replace(partition("r"), retries=1))]
            await settle()
        assert not writer.pending
        assert [entry["partition"] for entry in logs] == ["q"]
        for id in "pr":
            box.put(id, lambda record: replace(record, retries=2))
        await settle()
        assert len(writer.commit()) == 2, "together again"

    asyncio.run(body())


def test_large_batches_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "MOST_AT_ONCE", 2)

    async def body() -> None:
        writer = Writer(*(partition(f"p{number}") for number in range(5)))
        box = Outbox(writer, asyncio.get_running_loop())
        for number in range(5):
            box.put(f"p{number}", lambda record: replace(record, retries=1))
        sizes = []
        for _ in range(3):
            await settle()
            sizes.append(len(writer.commit()))
        assert sizes == [2, 2, 1]

    asyncio.run(body())
