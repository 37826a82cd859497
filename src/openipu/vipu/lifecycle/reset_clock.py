# SPDX-License-Identifier: GPL-3.0-or-later
"""Time since the automatic resets of partitions, which changes of the clock do not affect."""

from __future__ import annotations

import time
from collections.abc import Callable

from openipu.vipu.domain.model import Partition


class ResetClock:
    """Clock for comparisons with ``Partition.last_auto_reset``.

    Records store the time of the day, which an administrator or NTP may change. From the first use of a value on,
    monotonic time measures its age. A value in the future counts as now.
    """

    def __init__(self, wall: Callable[[], float] | None = None, steady: Callable[[], float] | None = None) -> None:
        self._wall = wall or time.time
        self._steady = steady or time.monotonic
        self._noted: dict[str, tuple[float, float]] = {}  # partition -> last reset, and steady time minus that time

    def now(self, record: Partition) -> float:
        """Return the time now, in seconds since 1970, as if the clock had not changed since the last reset."""
        last, steady = record.last_auto_reset, self._steady()
        if last is None:
            return self._wall()
        noted = self._noted.get(record.id)
        if noted is None or noted[0] != last:
            noted = self._noted[record.id] = last, steady - max(self._wall(), last)
        return steady - noted[1]

    def drop(self, id: str) -> None:
        """Drop the value of a deleted partition."""
        self._noted.pop(id, None)
