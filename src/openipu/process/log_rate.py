# SPDX-License-Identifier: GPL-3.0-or-later
"""Limit of log lines that one remote party can cause."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, MutableMapping
from typing import Any

from openipu.process.plain_structlog import structlog

WINDOW = 60.0  # seconds
MAX_LINES = 20  # of one event about one party in a window
PARTY = "party"  # the party that causes an event; it is not logged
AGENT = "agent"  # the party of an event without PARTY. Other events are not limited.
MAX_KEYS = 4096  # the oldest window is dropped first


class RateLimit:
    """Processor of structlog that drops an event after MAX_LINES lines about one party in WINDOW seconds.

    The first line of the next window has the number of dropped lines in ``suppressed``. Only the first line of a
    window about a PARTY has a traceback.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()  # any thread may log
        self._windows: OrderedDict[tuple[str, str], tuple[float, int]] = OrderedDict()  # start, number of lines

    def __call__(self, logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Return the event, or raise ``structlog.DropEvent``."""
        named = event.pop(PARTY, None)
        party = named or event.get(AGENT)
        if party is None:
            return event
        with self._lock:
            lines, suppressed = self._count((str(event["event"]), str(party)))
        if lines > MAX_LINES:
            raise structlog.DropEvent
        if named and lines > 1:
            event.pop("exc_info", None)
        if suppressed:
            event["suppressed"] = suppressed
        return event

    def _count(self, key: tuple[str, str]) -> tuple[int, int]:
        """Count a line. Return the lines of its window, and how many lines of the last window were dropped."""
        now, suppressed = self._clock(), 0
        start, lines = self._windows.get(key, (now, 0))
        if now >= start + WINDOW:
            suppressed = max(0, lines - MAX_LINES)
            del self._windows[key]
            start, lines = now, 0
        self._windows[key] = start, lines + 1
        if len(self._windows) > MAX_KEYS:
            self._windows.popitem(last=False)
        return lines + 1, suppressed
