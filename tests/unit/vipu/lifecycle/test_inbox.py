# SPDX-License-Identifier: GPL-3.0-or-later
"""Inbox of committed changes: order, isolation and retries."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from openipu.vipu.domain.model import Agent, Change, Delete, Kind, Put
from openipu.vipu.domain.state import State
from openipu.vipu.lifecycle import inbox
from openipu.vipu.lifecycle.inbox import Inbox

OLD, NEW, OTHER = Agent("ag01", "10.0.0.1"), Agent("ag01", "10.0.0.2"), Agent("ag02", "10.0.0.3")


@pytest.mark.parametrize(
    ("current", "retried"), [([NEW, OTHER], Put(NEW)), ([OLD, OTHER], Put(OLD)), ([OTHER], Delete(Kind.AGENT, "ag01"))]
)
def test_a_failed_change_is_retried_with_the_current_record(
    monkeypatch: pytest.MonkeyPatch, current: list[Agent], retried: Change
) -> None:
    monkeypatch.setattr(inbox, "FIRST_RETRY", 0.001)
    handled: list[Change] = []

    async def body() -> None:
        done = asyncio.Event()

        def handle(change: Change, committed: float) -> None:
            handled.append(change)
            if len(handled) in (1, 3):
                raise ValueError("injected")
            if len(handled) == 4:
                done.set()

        state = State(agents={agent.id: agent for agent in current})
        records: Any = SimpleNamespace(state=state)
        box = Inbox(records, asyncio.get_running_loop(), handle)
        with capture_logs() as logs:
            box.put([Put(OLD), Put(OTHER)])
            async with asyncio.timeout(10):
                await done.wait()
        assert [(entry["kind"], entry["id"]) for entry in logs] == [("agent", "ag01")] * 2

    asyncio.run(body())
    assert handled == [Put(OLD), Put(OTHER), retried, retried]


def test_nothing_is_handled_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "FIRST_RETRY", 0.001)
    handled: list[Change] = []

    async def body() -> None:
        def handle(change: Change, committed: float) -> None:
            handled.append(change)
            box.stop()
            raise ValueError("injected")

        records: Any = SimpleNamespace(state=State())
        box = Inbox(records, asyncio.get_running_loop(), handle)
        box.put([Put(OLD)])
        await asyncio.sleep(0.01)
        box.put([Put(OTHER)])
        await asyncio.sleep(0.01)

    asyncio.run(body())
    assert handled == [Put(OLD)]
