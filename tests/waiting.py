# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for conditions instead of fixed times."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

SHORTEST_PAUSE, LONGEST_PAUSE = 0.002, 0.05


def within(condition: Callable[[], Any], seconds: float) -> Any:
    """Evaluate a condition until its value is true or the time is over, with growing pauses. Return the last value."""
    deadline, pause = time.monotonic() + seconds, SHORTEST_PAUSE
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE)
    return found


def until(condition: Callable[[], Any], seconds: float = 20.0, what: str | Callable[[], str] = "") -> Any:
    """Evaluate a condition as ``within`` does, and return its value, which must become true.

    The timeout is generous, because busy machines are slow. ``what``: description of the condition, or a function
    that returns the state at the timeout.
    """
    found = within(condition, seconds)
    assert found, f"not within {seconds:g} s: {what() if callable(what) else what or condition}"
    return found
