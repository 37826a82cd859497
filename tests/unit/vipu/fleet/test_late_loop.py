# SPDX-License-Identifier: GPL-3.0-or-later
"""Pauses of the controller differ from silence of an agent: time jumps in the event loop."""

from __future__ import annotations

import asyncio
import random
import selectors
from collections.abc import Coroutine
from typing import Any

import pytest

from openipu.vipu.fleet.silence import LATE, Silence

SECONDS = 0.1  # of silence
ROUNDS = 100


class JumpingLoop(asyncio.SelectorEventLoop):
    """Event loop whose clock can be set forward, as it appears to a process that was stopped.

    Otherwise its clock moves only to the next timer, without waiting. So pauses of the test itself have no effect.
    """

    def __init__(self) -> None:
        self.jumped = 0.0
        super().__init__(_Idle(self))

    def time(self) -> float:
        return self.jumped


class _Idle(selectors.DefaultSelector):
    """Selector that moves the clock of its loop instead of waiting."""

    def __init__(self, loop: JumpingLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "the loop waits for ever"
        self._loop.jumped += timeout
        return super().select(0)


def run(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(main)


def test_pauses_of_the_controller_are_no_silence() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    generator = random.Random(seed)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, JumpingLoop)
        messages: asyncio.Queue[int] = asyncio.Queue()
        async with Silence(SECONDS) as silence:
            for number in range(ROUNDS):
                reading = loop.create_task(messages.get())
                await asyncio.sleep(generator.uniform(0, SECONDS / 4))
                loop.jumped += SECONDS + LATE + generator.expovariate(1 / 20)  # the process was stopped
                await asyncio.sleep(0.001)  # the time is over, and no message was processed yet
                messages.put_nowait(number)
                assert await reading == number
                silence.restart()

    run(main())


def test_a_silent_agent_is_noticed_also_after_a_pause() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, JumpingLoop)
        with pytest.raises(TimeoutError):
            async with Silence(SECONDS):
                await loop.create_future()
        resumed = None
        with pytest.raises(TimeoutError):
            async with Silence(SECONDS):
                await asyncio.sleep(0)
                loop.jumped += 60.0
                resumed = loop.time()
                await loop.create_future()
        assert resumed is not None
        assert SECONDS / 2 < loop.time() - resumed < 60.0

    run(main())


def test_messages_restart_the_time() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, JumpingLoop)
        async with Silence(10.0) as silence:
            for _ in range(5):
                loop.jumped += 7.0
                silence.restart()
                await asyncio.sleep(0.001)  # due timers run

    run(main())
