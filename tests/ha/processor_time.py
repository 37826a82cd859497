# SPDX-License-Identifier: GPL-3.0-or-later
"""Time in which processes could work: without the time that their threads waited for a processor.

A busy machine delays all parts of a test. A limit in this time fails for a part that hangs, and not for a busy machine.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path

_INTERVAL = 1.0  # seconds between two readings, each of which reads a file per thread

Times = dict[str, tuple[int, int]]  # nanoseconds that each thread ran and waited for a processor


def read(pids: Iterable[int]) -> Times:
    """Return the times of all threads of the processes that exist."""
    found: Times = {}
    for pid in pids:
        for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError, ValueError):  # the thread has ended
                ran, waited, _ = map(int, file.read_text().split())
                found[file.parent.name] = ran, waited
    return found


def share(before: Times, after: Times) -> float:
    """Return the share that threads got of the processor time that they needed between two readings. Idle: all."""
    pairs = [(before[thread], times) for thread, times in after.items() if thread in before]
    ran = sum(new[0] - old[0] for old, new in pairs)
    waited = sum(new[1] - old[1] for old, new in pairs)
    return ran / (ran + waited) if ran + waited else 1.0


class ProcessorTime:
    """Clock of some processes, from 0. It runs as slowly as they do."""

    def __init__(self, pids: Callable[[], Iterable[int]], clock: Callable[[], float] = time.monotonic) -> None:
        """``pids``: of the processes that run now."""
        self._pids, self._clock = pids, clock
        self._start = self._at = clock()
        self._times = read(pids())
        self._usable = 0.0

    @property
    def share(self) -> float:
        """Share of the time since the start in which the processes could work."""
        passed = self._at - self._start
        return self._usable / passed if passed else 1.0

    def seconds(self) -> float:
        """Return the time, as of a second ago at most."""
        now = self._clock()
        if now - self._at >= _INTERVAL:
            times = read(self._pids())
            self._usable += (now - self._at) * share(self._times, times)
            self._at, self._times = now, times
        return self._usable
