# SPDX-License-Identifier: GPL-3.0-or-later
"""Relocation of partitions after pauses of the controller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from openipu.vipu.domain import rules
from openipu.vipu.domain.context import Context
from openipu.vipu.domain.model import Operation, Put
from openipu.vipu.domain.specs import PartitionSpec
from openipu.vipu.domain.state import State
from openipu.vipu.fleet.status import AgentState, AgentStatus
from openipu.vipu.lifecycle.recovery import Recovery
from tests.unit.vipu.domain.rules_support import pod
from tests.unit.vipu.fleet.test_late_loop import JumpingLoop, run

DELAY = 0.3  # seconds until partitions move
PAUSE = 60.0


class Stranded:
    """Recovery with one relocatable partition, whose agent is Down since now."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, JumpingLoop)
        self.loop = loop
        self.state = pod(2)
        self.state.apply(rules.create(self.state, PartitionSpec("p", 4, "a1"), Context()))
        self.record = replace(self.state.partitions["p"], operation=Operation.UNREACHABLE, relocatable=True)
        self.state.apply([Put(self.record)])
        (self.agent,) = {agent for agent, _ in self.state.machines_of(self.record)}
        down = AgentStatus(AgentState.DOWN)
        connection = SimpleNamespace(status=down, down_since=self.loop.time())
        supervisor: Any = SimpleNamespace(
            status=lambda id: down, connections={self.agent: connection}, unavailable=frozenset({self.agent})
        )
        self.recovery = Recovery(self, None, supervisor, dict, lambda id: (self.agent,), DELAY, self.loop)  # type: ignore[arg-type]

    def submit(self, command: Callable[[State], tuple[Any, Any]]) -> Future[Any]:
        done: Future[Any] = Future()
        changes, result = command(self.state)
        self.state.apply(changes)
        done.set_result(result)
        return done

    @property
    def moved(self) -> bool:
        return self.state.partitions["p"].ipus != self.record.ipus


@pytest.mark.parametrize("timer_first", [True, False])
def test_the_delay_starts_again_after_a_pause(timer_first: bool) -> None:
    async def main() -> None:
        stranded = Stranded()
        await asyncio.sleep(0)
        stranded.recovery.recover("p")
        stranded.loop.jumped += PAUSE  # the agent may return meanwhile, without being noticed
        if not timer_first:
            stranded.recovery.recover("p")  # because of another event
        await asyncio.sleep(DELAY / 2)
        assert not stranded.moved
        await asyncio.sleep(DELAY)
        assert stranded.moved

    run(main())


def test_partitions_move_after_the_delay() -> None:
    async def main() -> None:
        stranded = Stranded()
        stranded.recovery.recover("p")
        await asyncio.sleep(DELAY / 2)
        assert not stranded.moved
        await asyncio.sleep(DELAY)
        assert stranded.moved

    run(main())
