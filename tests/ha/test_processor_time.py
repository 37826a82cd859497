# SPDX-License-Identifier: GPL-3.0-or-later
"""The clock of busy processes runs as slowly as they do, and that of idle ones as fast as the true one."""

from __future__ import annotations

import os
import time

import pytest

from tests.ha import processor_time
from tests.ha.processor_time import ProcessorTime, Times, read, share


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"1": (0, 0)}, {"1": (0, 0)}, 1.0),  # idle
        ({"1": (5, 5)}, {"1": (15, 35)}, 0.25),
        ({"1": (0, 0), "2": (0, 0)}, {"1": (10, 0), "2": (0, 30)}, 0.25),
        ({"1": (7, 7)}, {"2": (1, 9)}, 1.0),  # only ended and new threads
    ],
)
def test_the_share_of_the_needed_time(before: Times, after: Times, expected: float) -> None:
    assert share(before, after) == expected


def test_the_clock_runs_as_slowly_as_its_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([{"1": (0, 0)}, {"1": (10, 0)}, {"1": (20, 30)}])
    monkeypatch.setattr(processor_time, "read", lambda pids: next(readings))
    now = [100.0]
    clock = ProcessorTime(lambda: [1], lambda: now[0])
    for at, expected in ((100.5, 0.0), (102.0, 2.0), (102.5, 2.0), (106.0, 3.0)):
        now[0] = at
        assert clock.seconds() == expected
    assert clock.share == 0.5


def test_the_time_of_a_busy_thread_grows() -> None:
    before = read([os.getpid()])
    end = time.thread_time() + 0.05
    while time.thread_time() < end:
        pass
    after = read([os.getpid()])
    thread = str(os.getpid())  # the first one
    assert after[thread][0] - before[thread][0] > 40_000_000
    assert read([1 << 30]) == {}, "such a process does not exist"
