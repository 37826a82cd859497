# SPDX-License-Identifier: GPL-3.0-or-later
"""Measurement of commands and calls: CPU and wall time, alternating runs, medians."""

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
    """Result of one run: CPU seconds (user and system, with all children) and wall seconds.

    ``memory``: MB of the largest process of a command, 0 for other runs.
    """

    cpu: float
    wall: float
    memory: float = 0.0


@dataclass(frozen=True)
class Target:
    """Target of a figure, as text and as a number in the unit of the figure."""

    text: str
    limit: float
    at_least: bool = False  # True: larger figures are better

    def verdict(self, measured: float) -> str:
        """Return 'met', or the missing share of a figure."""
        shortfall = 1 - measured / self.limit if self.at_least else measured / self.limit - 1
        return "met" if shortfall <= 0 else f"short by {shortfall:.0%}"


@dataclass
class Table:
    """Table of figures in the order of their measurement."""

    title: str
    rows: list[tuple[str, str, str, str, str]] = field(default_factory=list)

    def add(self, name: str, value: str, peer: str, target: Target | None = None, measured: float = 0.0) -> None:
        """Append a row. ``measured`` is compared with the target."""
        verdict = (target.text, target.verdict(measured)) if target else ("", "")
        self.rows.append((name, value, peer, *verdict))

    @property
    def missed(self) -> list[str]:
        """Names of the figures that miss their targets."""
        return [row[0] for row in self.rows if row[-1].startswith("short")]

    def text(self) -> str:
        """Return the table as text."""
        headers = ("figure", "measured", "peer", "target", "result")
        return f"{self.title}\n\n{tabulate(self.rows, headers)}"


def command(arguments: Sequence[str], expect: str = "", env: dict[str, str] | None = None, forbid: str = "") -> Sample:
    """Run a command to its end.

    Raises RuntimeError with the output when the command fails, or the output lacks ``expect`` or contains ``forbid``.
    """
    start = time.perf_counter()
    process = subprocess.Popen(
        arguments, env={**os.environ, **(env or {})}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    output = process.stdout.read() if process.stdout else b""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    text = output.decode()
    if process.returncode or expect not in text or (forbid and forbid in text):
        raise RuntimeError(f"Cannot measure '{' '.join(arguments)}': exit status {process.returncode}, output:\n{text}")
    return Sample(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024)


def alternate(
    rounds: int,
    runs: dict[str, Callable[[], Sample]],
    before: dict[str, Callable[[], None]],
    at_most: dict[str, int] | None = None,
) -> dict[str, Sample]:
    """Run all candidates alternately, so that noise affects all equally. Return the median of each.

    ``before`` has functions that run before a candidate and are not measured. ``at_most`` limits the rounds of slow
    candidates.
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
        name: Sample(statistics.median(s.cpu for s in values), statistics.median(s.wall for s in values))
        for name, values in samples.items()
    }
