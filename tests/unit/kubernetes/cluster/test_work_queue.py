# SPDX-License-Identifier: GPL-3.0-or-later
"""Queue of keys: order, repetition and failures."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from openipu.kubernetes.cluster.work_queue import RetryLaterError, WorkQueue


def run(body: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(20):
            await body()

    asyncio.run(limited())


def test_a_key_that_is_added_twice_is_handled_once() -> None:
    async def body() -> None:
        handled: list[str] = []
        done = asyncio.Event()

        async def handle(key: str) -> None:
            handled.append(key)
            if key == "last":
                done.set()

        queue = WorkQueue(handle, workers=1)
        for key in ("a", "b", "a", "last"):
            queue.add(key)
        assert len(queue) == 3
        task = asyncio.create_task(queue.run())
        await done.wait()
        task.cancel()
        assert handled == ["a", "b", "last"]

    run(body)


def test_a_key_that_changes_while_it_is_handled_is_handled_again_afterwards() -> None:
    async def body() -> None:
        active, most, handled = 0, 0, 0
        started, release, again = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def handle(key: str) -> None:
            nonlocal active, most, handled
            active += 1
            most = max(most, active)
            handled += 1
            started.set()
            await release.wait()
            active -= 1
            if handled == 2:
                again.set()

        queue = WorkQueue(handle)
        task = asyncio.create_task(queue.run())
        queue.add("a")
        await started.wait()
        queue.add("a")
        queue.add("a")
        release.set()
        await again.wait()
        task.cancel()
        assert (handled, most) == (2, 1)

    run(body)


def test_a_failure_is_repeated_and_does_not_stop_others() -> None:
    async def body() -> None:
        attempts = 0
        done = asyncio.Event()

        async def handle(key: str) -> None:
            nonlocal attempts
            if key == "good":
                return
            attempts += 1
            if attempts < 3:
                raise ValueError("not yet")
            done.set()

        queue = WorkQueue(handle, workers=1)
        queue.add("bad")
        queue.add("good")
        task = asyncio.create_task(queue.run())
        await done.wait()
        task.cancel()
        assert attempts == 3

    run(body)


def test_a_key_that_is_added_during_a_requested_pause_waits_for_its_end() -> None:
    async def body() -> None:
        loop, turns = asyncio.get_running_loop(), list[float]()
        done = asyncio.Event()

        async def handle(key: str) -> None:
            turns.append(loop.time())
            if len(turns) == 1:
                queue.add(key)  # as an event that arrives meanwhile
                raise RetryLaterError("later", 0.5)
            done.set()

        queue = WorkQueue(handle)
        task = asyncio.create_task(queue.run())
        queue.add("a")
        while not done.is_set():
            await asyncio.sleep(0.01)
            if len(turns) == 1:
                queue.add("a")
        task.cancel()
        assert turns[1] - turns[0] >= 0.5

    run(body)


def test_a_handler_can_ask_for_another_turn() -> None:
    async def body() -> None:
        turns = 0
        done = asyncio.Event()

        async def handle(key: str) -> float | None:
            nonlocal turns
            turns += 1
            if turns == 3:
                done.set()
                return None
            return 0.0

        queue = WorkQueue(handle)
        queue.add("a")
        task = asyncio.create_task(queue.run())
        await done.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert turns == 3
        assert len(queue) == 0

    run(body)


def test_the_earlier_of_two_times_counts() -> None:
    async def body() -> None:
        done = asyncio.Event()

        async def handle(key: str) -> None:
            done.set()

        queue = WorkQueue(handle)
        queue.add_later("a", 60.0)
        queue.add_later("a", 0.0)
        queue.add_later("a", 60.0)
        task = asyncio.create_task(queue.run())
        await done.wait()
        task.cancel()

    run(body)
