# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for conditions instead of fixed times."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

SHORTEST_PAUSE, LONGEST_PAUSE = 0.002, 0.05


def until(condition: Callable[[], Any], seconds: float = 20.0, what: str | Callable[[], str] = "") -> Any:
    """Evaluate a condition until its value is true, with growing pauses, and return the value.

    The timeout is generous, because busy machines are slow. ``what``: description of the condition, or a function
    that returns the state at the timeout.
    """
    deadline, pause = time.monotonic() + seconds, SHORTEST_PAUSE
    while not (found := condition()):
        in_time = time.monotonic() < deadline
        assert in_time, f"not within {seconds:g} s: {what() if callable(what) else what or condition}"
        time.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE)
    return found
