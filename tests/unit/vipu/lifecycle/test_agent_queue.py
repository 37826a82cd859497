# SPDX-License-Identifier: GPL-3.0-or-later
"""Queue of one agent: limits and errors."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from openipu.vipu.agent_api.limits import MAX_PARTITIONS_PER_CALL
from openipu.vipu.lifecycle.agent_queue import AgentQueue, CallScheduler


def test_invented_partitions_cannot_fill_the_queue() -> None:
    down: Any = SimpleNamespace(up=False)
    unused: Any = None
    queue = AgentQueue(down, unused, unused, 1.0)
    for number in range(10_000):
        queue.release_unknown(f"x{number}")
    assert len(queue._releases) == MAX_PARTITIONS_PER_CALL
    queue.release("p")
    assert list(queue._releases)[-1] == "p", "releases of removed partitions are not limited"


class Failing:
    """Operation whose message cannot be made, a stub, and a connection to it."""

    up = True
    id = "ag01"
    attempts = 0

    def __init__(self) -> None:
        self.record = SimpleNamespace(id="p")
        self.attempted: set[str] = set()

    def share(self, agent_id: str) -> Any:
        self.attempts += 1
        raise ValueError("value out of range")


def test_an_unexpected_error_is_retried_after_a_pause() -> None:
    async def run() -> int:
        failing: Any = Failing()
        unused: Any = None
        queue = AgentQueue(failing, unused, CallScheduler(), 1.0)
        queue.configure(failing)
        for _ in range(100):
            await asyncio.sleep(0)
        first: int = failing.attempts
        queue.retry_now()
        for _ in range(100):
            await asyncio.sleep(0)
        assert failing.attempts == 2
        return first

    assert asyncio.run(run()) == 1
