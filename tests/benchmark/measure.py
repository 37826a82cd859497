# SPDX-License-Identifier: GPL-3.0-or-later
"""Measuring commands and calls: CPU and wall, alternating runs, medians."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tabulate import tabulate


@dataclass
class Sample:
    """One run: CPU seconds (user and system, with all children) and wall seconds."""

    cpu: float
    wall: float


@dataclass(frozen=True)
class Target:
    """What a figure is held against, in words and as a number in the figure's own unit."""

    text: str
    limit: float
    at_least: bool = False  # more is better

    def verdict(self, measured: float) -> str:
        """Whether it is met, or by how much it is not."""
        short = 1 - measured / self.limit if self.at_least else measured / self.limit - 1
        return "met" if short <= 0 else f"short by {short:.0%}"


@dataclass
class Table:
    """Rows in the order in which they were measured."""

    title: str
    rows: list[tuple[str, str, str, str, str]] = field(default_factory=list)

    def add(self, name: str, value: str, peer: str, target: Target | None = None, measured: float = 0.0) -> None:
        """Append a row; ``measured`` is the number that the target speaks of."""
        verdict = (target.text, target.verdict(measured)) if target else ("", "")
        self.rows.append((name, value, peer, *verdict))

    @property
    def missed(self) -> list[str]:
        """The figures that fall short of their targets."""
        return [row[0] for row in self.rows if row[-1].startswith("short")]

    def text(self) -> str:
        """The table, ready to be printed."""
        headers = ("figure", "measured", "peer", "target", "result")
        return f"{self.title}\n\n{tabulate(self.rows, headers)}"


def command(arguments: Sequence[str], expect: str = "", env: dict[str, str] | None = None, refuse: str = "") -> Sample:
    """Run a command to its end.

    Raises RuntimeError with its output when it fails, lacks what is expected or has what is refused.
    """
    start = time.perf_counter()
    process = subprocess.Popen(
        arguments, env={**os.environ, **(env or {})}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    output = process.stdout.read() if process.stdout else b""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    said = output.decode()
    if process.returncode or expect not in said or (refuse and refuse in said):
        raise RuntimeError(f"{' '.join(arguments)} ended with {process.returncode}:\n{said}")
    return Sample(usage.ru_utime + usage.ru_stime, wall)


def alternate(
    rounds: int,
    runs: dict[str, Callable[[], Sample]],
    before: dict[str, Callable[[], None]],
    at_most: dict[str, int] | None = None,
) -> dict[str, Sample]:
    """Run all contenders in turn, so that noise falls on all alike; the median of each.

    ``before`` prepares single contenders, unmeasured; ``at_most`` bounds the rounds of slow ones.
    """
    samples: dict[str, list[Sample]] = {name: [] for name in runs}
    for number in range(rounds):
        for name, run in runs.items():
            if number >= (at_most or {}).get(name, rounds):
                continue
            if name in before:
                before[name]()
            samples[name].append(run())
    return {
        name: Sample(statistics.median(s.cpu for s in taken), statistics.median(s.wall for s in taken))
        for name, taken in samples.items()
    }
