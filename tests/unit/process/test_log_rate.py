# SPDX-License-Identifier: GPL-3.0-or-later
"""Limit of log lines about one agent."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import structlog

from openipu.process import log_rate
from openipu.process.log_rate import MAX_LINES, WINDOW, RateLimit


class Log:
    """Events that pass a limit, with a clock."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.limit = RateLimit(lambda: self.now)
        self.lines: list[dict[str, Any]] = []

    def write(self, **event: Any) -> None:
        with contextlib.suppress(structlog.DropEvent):
            self.lines.append(dict(self.limit(None, "info", {"event": "agent down", **event})))


def test_one_agent_cannot_hide_others() -> None:
    log = Log()
    for _ in range(1000):
        log.write(agent="liar")
    log.write(agent="honest")
    log.write(agent="liar", event="agent up")
    assert len(log.lines) == MAX_LINES + 2
    log.now += WINDOW
    log.write(agent="liar")
    assert log.lines[-1] == {"event": "agent down", "agent": "liar", "suppressed": 1000 - MAX_LINES}
    log.write(agent="liar")
    assert "suppressed" not in log.lines[-1]


def test_other_events_are_not_limited() -> None:
    log = Log()
    for _ in range(1000):
        log.write()
    assert len(log.lines) == 1000


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_rate, "MAX_KEYS", 3)
    log = Log()
    for number in range(10):
        log.write(agent=str(number))
    assert len(log.lines) == 10
    assert len(log.limit._windows) == 3
