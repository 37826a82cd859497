# SPDX-License-Identifier: GPL-3.0-or-later
"""Pauses of the controller differ from silence of an agent: time jumps in the event loop."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import pytest

from openipu.vipu.fleet import connection

SILENCE = 0.1  # seconds
ROUNDS = 100


class JumpingLoop(asyncio.SelectorEventLoop):
    """Event loop whose clock can be set forward, as it appears to a process that was stopped."""

    jumped = 0.0

    def time(self) -> float:
        return super().time() + self.jumped


class Stream:
    """Stream of messages from an agent."""

    def __init__(self) -> None:
        self._messages: asyncio.Queue[int] = asyncio.Queue()
        self.send = self._messages.put_nowait

    async def read(self) -> int:
        return await self._messages.get()


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
        stream = Stream()
        for number in range(ROUNDS):
            reading = loop.create_task(connection._read(stream, SILENCE))
            await asyncio.sleep(generator.uniform(0, SILENCE / 4))
            loop.jumped += SILENCE + 0.5 + generator.expovariate(1 / 20)  # the process was stopped
            await asyncio.sleep(0.001)  # the deadline has passed, and no message was processed yet
            stream.send(number)
            assert await reading == number

    run(main())


def test_a_silent_agent_is_noticed_also_after_a_pause() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, JumpingLoop)
        with pytest.raises(TimeoutError):
            await connection._read(Stream(), SILENCE)
        reading = loop.create_task(connection._read(Stream(), SILENCE))
        await asyncio.sleep(0)
        loop.jumped += 60.0
        begun = loop.time()
        with pytest.raises(TimeoutError):
            await reading
        assert loop.time() - begun > SILENCE / 2

    run(main())
