# SPDX-License-Identifier: GPL-3.0-or-later
"""Results of cluster tests. No I/O."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from openipu.vipu.cluster_test.model import Test, Verdict
from openipu.vipu.domain.model import Cluster


class RunState(enum.IntEnum):
    """States of a run, with the numbers of the admin API."""

    NONE = 0
    RUNNING = 1
    FINISHED = 2
    STOPPED = 3
    ABORTED = 4


@dataclass(frozen=True, slots=True)
class Run:
    """Run of tests, finished or in progress."""

    id: str
    cluster: Cluster
    requested: tuple[Test, ...]
    partitions: tuple[str, ...]  # in the cluster at the start of the run
    started: float  # seconds since 1970
    state: RunState = RunState.RUNNING
    verdicts: tuple[Verdict, ...] = ()
    running: Test | None = None
    ended: float = 0.0
    error: str = ""

    @property
    def ok(self) -> bool:
        """Success: the run finished without failures."""
        return self.state is RunState.FINISHED and all(verdict.ok for verdict in self.verdicts)


@dataclass(frozen=True, slots=True)
class Results:
    """Results of one cluster, with the configuration ``cluster``, since the start of the controller."""

    cluster: Cluster
    ended: float = 0.0  # end of the last run; seconds since 1970
    last: Run | None = None  # the last run that ended
    verdicts: Mapping[Test, Verdict] = field(default_factory=dict)  # the last verdict of each test
    outcomes: Mapping[str, int] = field(default_factory=dict)  # outcome -> number of runs

    def with_run(self, run: Run) -> Results:
        """Return the results with those of a run that ended."""
        outcome = run.state.name if run.state is not RunState.FINISHED else "PASSED" if run.ok else "FAILED"
        verdicts = {verdict.test: verdict for verdict in run.verdicts if not verdict.skipped}
        counted = self.outcomes.get(outcome, 0) + 1
        return Results(run.cluster, run.ended, run, {**self.verdicts, **verdicts}, {**self.outcomes, outcome: counted})
