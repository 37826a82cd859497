# SPDX-License-Identifier: GPL-3.0-or-later
"""Writing of transitions of partitions: in order, together, and repeated after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from openipu.vipu.domain.model import Change, Delete, Kind, Partition, Put
from openipu.vipu.domain.state import State
from openipu.vipu.lifecycle import result_writer
from openipu.vipu.lifecycle.result_writer import ResultWriter
from openipu.vipu.storage.store import StoreError


class Writer:
    """Records whose commits the test controls."""

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


def test_waiting_transitions_share_a_commit_in_order() -> None:
    async def body() -> None:
        writer = Writer(partition("p"), partition("q"), partition("r"))
        box = ResultWriter(writer, asyncio.get_running_loop())
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


def test_a_failed_write_is_repeated_before_newer_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_writer, "RETRY", 0.01)

    async def body() -> None:
        writer = Writer(partition("p"))
        box = ResultWriter(writer, asyncio.get_running_loop())
        box.put("p", lambda record: replace(record, retries=1))
        await settle()
        box.put("p", lambda record: replace(record, retries=record.retries + 1))
        writer.fail(StoreError("The disk is full."))
        async with asyncio.timeout(5):
            while not writer.pending:
                await asyncio.sleep(0.001)
        assert writer.commit() == [Put(replace(partition("p"), retries=2))]

    asyncio.run(body())


def test_losses_that_cannot_be_written_do_not_accumulate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_writer, "RETRY", 0.0)

    async def body() -> None:
        writer = Writer(partition("p"))
        box = ResultWriter(writer, asyncio.get_running_loop())
        for _ in range(10):
            queued = [box.put_loss("p", f"{number}.", lambda record: record) for number in range(20)]
            await settle()
            writer.fail(StoreError("The disk is full."))
            async with asyncio.timeout(5):
                while not writer.pending:
                    await asyncio.sleep(0.001)
        assert not any(queued)
        changed: list[str] = []

        def count(record: Partition) -> Partition:
            changed.append(record.id)
            return record

        box.put("p", count)
        writer.commit()
        await settle()
        writer.commit()
        assert changed == ["p"]
        assert len(box._losses) == 0
        assert box.put_loss("p", "0.", count)  # it is new again

    asyncio.run(body())


def test_a_transition_that_raises_does_not_block_others() -> None:
    def broken(record: Partition) -> Partition:
        raise ValueError(record.id)

    async def body() -> None:
        writer = Writer(partition("p"), partition("q"))
        box = ResultWriter(writer, asyncio.get_running_loop())
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


def test_only_the_transition_that_cannot_be_written_is_dropped() -> None:
    async def body() -> None:
        writer = Writer(*(partition(id) for id in "pqr"))
        box = ResultWriter(writer, asyncio.get_running_loop())
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


def test_large_batches_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_writer, "MAX_BATCH", 2)

    async def body() -> None:
        writer = Writer(*(partition(f"p{number}") for number in range(5)))
        box = ResultWriter(writer, asyncio.get_running_loop())
        for number in range(5):
            box.put(f"p{number}", lambda record: replace(record, retries=1))
        sizes = []
        for _ in range(3):
            await settle()
            sizes.append(len(writer.commit()))
        assert sizes == [2, 2, 1]

    asyncio.run(body())
