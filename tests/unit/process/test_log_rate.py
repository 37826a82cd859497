# SPDX-License-Identifier: GPL-3.0-or-later
"""Limit of log lines about one party."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
import structlog

from openipu.process import log, log_rate
from openipu.process.log_rate import MAX_LINES, WINDOW, RateLimit

BLOCKED = 0.2  # seconds; nothing else shows that a thread waits for a lock


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
    limited = Log()
    for _ in range(1000):
        limited.write(agent="liar")
    limited.write(agent="honest")
    limited.write(agent="liar", event="agent up")
    assert len(limited.lines) == MAX_LINES + 2
    limited.now += WINDOW
    limited.write(agent="liar")
    assert limited.lines[-1] == {"event": "agent down", "agent": "liar", "suppressed": 1000 - MAX_LINES}
    limited.write(agent="liar")
    assert "suppressed" not in limited.lines[-1]


def test_the_party_of_an_event_is_not_logged() -> None:
    limited = Log()
    for _ in range(1000):
        limited.write(party="clients 1", event="request rejected")
    limited.write(party="clients 2", event="request rejected")
    assert len(limited.lines) == MAX_LINES + 1
    assert limited.lines[-1] == {"event": "request rejected"}


def test_other_events_are_not_limited() -> None:
    limited = Log()
    for _ in range(1000):
        limited.write()
    assert len(limited.lines) == 1000


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_rate, "MAX_KEYS", 3)
    limited = Log()
    for number in range(10):
        limited.write(agent=str(number))
    assert len(limited.lines) == 10
    assert len(limited.limit._windows) == 3


class SharedWindows(OrderedDict[Any, Any]):
    """Windows that another thread tries to change between two steps of one."""

    def __init__(self, windows: OrderedDict[Any, Any], change: Callable[[], None]) -> None:
        super().__init__(windows)
        self.other = threading.Thread(target=change, daemon=True)

    def __delitem__(self, key: Any) -> None:
        super().__delitem__(key)
        if self.other.ident is None:
            self.other.start()
            self.other.join(BLOCKED)  # without a lock, it ends before


def test_threads_that_log_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    limited = Log()
    limited.write(agent="liar")
    monkeypatch.setattr(log_rate, "WINDOW", 0.0)  # every further line begins a window
    windows = SharedWindows(limited.limit._windows, lambda: limited.write(agent="liar"))
    limited.limit._windows = windows
    limited.write(agent="liar")
    windows.other.join(20)
    assert not windows.other.is_alive()
    assert len(limited.lines) == 3, "the other thread did not find the window"


def test_logs_of_services_are_limited(capsys: pytest.CaptureFixture[str]) -> None:
    before, root = structlog.get_config(), logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        log.configure("text", "info")
        for _ in range(100):
            structlog.get_logger("vipu-server").warning("agent down", agent="liar", reason="it lies")
    finally:
        structlog.configure(**before)
        root.handlers[:] = handlers
        root.setLevel(level)
    assert capsys.readouterr().err.count("agent down") == MAX_LINES
