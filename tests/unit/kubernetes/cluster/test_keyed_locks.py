# SPDX-License-Identifier: GPL-3.0-or-later
"""Locks by key."""

from __future__ import annotations

import asyncio

from openipu.kubernetes.cluster.keyed_locks import KeyedLocks


def test_one_task_holds_a_key_and_others_hold_other_keys() -> None:
    async def body() -> None:
        locks: KeyedLocks[str] = KeyedLocks()
        active: dict[str, int] = {"a": 0, "b": 0}
        together = most = 0

        async def work(key: str) -> None:
            nonlocal together, most
            async with locks.hold(key):
                active[key] += 1
                assert active[key] == 1
                together += 1
                most = max(most, together)
                await asyncio.sleep(0)
                together -= 1
                active[key] -= 1

        await asyncio.gather(*(work(key) for key in "ab" * 20))
        assert most == 2
        assert len(locks) == 0

    asyncio.run(body())


def test_a_task_that_gives_up_leaves_nothing() -> None:
    async def body() -> None:
        locks: KeyedLocks[str] = KeyedLocks()
        async with locks.hold("a"):
            waiting = asyncio.create_task(_hold(locks))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            assert len(locks) == 1
        assert len(locks) == 0

    asyncio.run(body())


async def _hold(locks: KeyedLocks[str]) -> None:
    async with locks.hold("a"):
        raise AssertionError
