# SPDX-License-Identifier: GPL-3.0-or-later
"""Measuring commands and calls: CPU and wall, alternating runs, medians."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass
class Sample:
    """One run: CPU seconds (user and system, with all children) and wall seconds."""

    cpu: float
    wall: float


@dataclass
class Figure:
    """One row of the table: what was measured, what it is held against, and the target."""

    name: str
    value: str
    peer: str = ""
    target: str = ""
    met: bool | None = None


@dataclass
class Table:
    """Rows in the order in which they were measured."""

    title: str
    rows: list[Figure] = field(default_factory=list)

    def add(self, name: str, value: str, peer: str = "", target: str = "", met: bool | None = None) -> None:
        """Append a row."""
        self.rows.append(Figure(name, value, peer, target, met))


def command(arguments: Sequence[str], env: dict[str, str] | None = None, cwd: str | None = None) -> Sample:
    """Run a command to its end; raises RuntimeError with its output when it fails."""
    start = time.perf_counter()
    process = subprocess.Popen(
        arguments, env={**os.environ, **(env or {})}, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    output = process.stdout.read() if process.stdout else b""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    if process.returncode:
        raise RuntimeError(f"{' '.join(arguments)} ended with {process.returncode}:\n{output.decode()}")
    return Sample(usage.ru_utime + usage.ru_stime, wall)


def alternate(
    rounds: int, runs: dict[str, Callable[[], Sample]], before: dict[str, Callable[[], None]] | None = None
) -> dict[str, Sample]:
    """Run all contenders in turn, so that noise falls on all alike; the median of each.

    ``before`` prepares single contenders, unmeasured.
    """
    samples: dict[str, list[Sample]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            if before and name in before:
                before[name]()
            samples[name].append(run())
    return {
        name: Sample(statistics.median(s.cpu for s in taken), statistics.median(s.wall for s in taken))
        for name, taken in samples.items()
    }


def median_of(rounds: int, call: Callable[[], float]) -> float:
    """The median of several results of one call."""
    return statistics.median(call() for _ in range(rounds))
