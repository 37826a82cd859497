# SPDX-License-Identifier: GPL-3.0-or-later
"""Slots for short work: limit, order, and work that takes too long."""

from __future__ import annotations

import asyncio

import pytest

from openipu.vipu.fleet.slots import Slots

LONG = 60.0  # seconds; a test never waits for it


def test_the_limit_and_the_order() -> None:
    async def run() -> None:
        slots, running, most, order = Slots(3, LONG), 0, 0, []

        async def work(number: int) -> None:
            nonlocal running, most
            async with slots.slot():
                order.append(number)
                running += 1
                most = max(most, running)
                await asyncio.sleep(0)
                running -= 1

        await asyncio.gather(*map(work, range(20)))
        assert most == 3
        assert order == list(range(20))

    asyncio.run(run())


def test_work_that_takes_long_frees_its_slot_once() -> None:
    async def run() -> None:
        slots, end, entered = Slots(1, 0.01), asyncio.Event(), asyncio.Semaphore(0)

        async def hang() -> None:
            async with slots.slot():
                entered.release()
                await end.wait()

        tasks = [asyncio.create_task(hang()) for _ in range(3)]
        for _ in tasks:
            async with asyncio.timeout(10):
                await entered.acquire()  # although the earlier ones still run
        end.set()
        await asyncio.gather(*tasks)
        async with slots.slot():  # exactly one slot is free
            blocked = asyncio.create_task(hang())
            await asyncio.sleep(0)
            assert entered.locked()
        async with asyncio.timeout(10):
            await blocked

    asyncio.run(run())


def test_a_failure_frees_its_slot() -> None:
    async def run() -> None:
        slots = Slots(1, LONG)
        with pytest.raises(ValueError, match="broken"):
            async with slots.slot():
                raise ValueError("broken")
        async with asyncio.timeout(10), slots.slot():
            pass

    asyncio.run(run())
