# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster test of a controller: one at a time, and the last one in memory only."""

from __future__ import annotations

import asyncio
import enum
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import structlog

from openipu.vipu.agents import Link
from openipu.vipu.checks import Code, Refused, RuleError, shown
from openipu.vipu.cluster_test.conduct import Conductor
from openipu.vipu.cluster_test.plan import Test, Verdict, skipped
from openipu.vipu.model import Cluster, State
from openipu.vipu.ports import StoppedError

_log: structlog.stdlib.BoundLogger = structlog.get_logger("vipu-server")


class RunState(enum.IntEnum):
    """What became of a run; the numbers are those of the admin API."""

    NONE = 0
    RUNNING = 1
    FINISHED = 2
    STOPPED = 3
    ABORTED = 4


@dataclass(frozen=True, slots=True)
class Run:
    """One run of tests, as far as it is."""

    id: str
    cluster: Cluster
    asked: tuple[Test, ...]
    partitions: tuple[str, ...]  # that were in the cluster when it began
    started: float  # seconds since 1970
    state: RunState = RunState.RUNNING
    verdicts: tuple[Verdict, ...] = ()
    running: Test | None = None
    ended: float = 0.0
    error: str = ""

    @property
    def ok(self) -> bool:
        """Whether it finished, and found nothing wrong."""
        return self.state is RunState.FINISHED and all(verdict.ok for verdict in self.verdicts)


@dataclass(frozen=True, slots=True)
class Results:
    """What is known of the tests of one cluster, as it is cabled in ``cluster``, since the controller started."""

    cluster: Cluster
    ended: float = 0.0  # the last run; seconds since 1970
    verdicts: Mapping[Test, Verdict] = field(default_factory=dict)  # of when each test ran last
    outcomes: Mapping[str, int] = field(default_factory=dict)  # how runs ended -> how many did

    def after(self, run: Run) -> Results:
        """What is known once a run is over."""
        outcome = run.state.name if run.state is not RunState.FINISHED else "PASSED" if run.ok else "FAILED"
        verdicts = {verdict.test: verdict for verdict in run.verdicts if not verdict.skipped}
        counted = self.outcomes.get(outcome, 0) + 1
        return Results(run.cluster, run.ended, {**self.verdicts, **verdicts}, {**self.outcomes, outcome: counted})


class Runs:
    """Begins, tells of and stops runs. ``last`` and ``wait`` are for any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, links: Callable[[], Mapping[str, Link]]) -> None:
        """``links``: those of all agents, asked for in the loop."""
        self._loop = loop
        self._links = links
        self._last: Run | None = None
        self._results: dict[str, Results] = {}
        self._changed = threading.Condition()
        self._task: asyncio.Task[None] | None = None

    @property
    def last(self) -> Run | None:
        """The last run, of whatever cluster."""
        return self._last

    @property
    def results(self) -> Mapping[str, Results]:
        """By cluster, of those that were tested."""
        return self._results.copy()

    @property
    def under_test(self) -> str:
        """The cluster that is tested now; empty for none."""
        run = self._last
        return run.cluster.id if run and run.state is RunState.RUNNING else ""

    def begin(self, state: State, cluster_id: str, tests: tuple[Test, ...]) -> Run:
        """Begin a run, in the writer thread, so that what it may not meet cannot slip in. Raises RuleError."""
        try:
            cluster = state.clusters.get(cluster_id)
            if cluster is None:
                raise Refused(Code.NOT_FOUND, "it does not exist")
            if self.under_test:
                raise Refused(
                    Code.FAILED_PRECONDITION,
                    f"the test of cluster {shown(self.under_test)} is in progress, and there is one at a time; "
                    "wait until it is over, or stop it",
                )
        except Refused as refusal:
            raise RuleError(refusal.code, f"Cannot test cluster {shown(cluster_id)}: {refusal.reason}.") from None
        partitions = sorted(
            partition
            for allocation in state.allocations_in.get(cluster_id, ())
            for partition in state.partitions_in.get(allocation, ())
        )
        run = Run(secrets.token_hex(8), cluster, tests, tuple(partitions), time.time())
        with self._changed:  # it must not go on before it is known
            try:
                self._loop.call_soon_threadsafe(self._launch, run)
            except RuntimeError:  # the loop is closed
                raise StoppedError from None
            self._last = run
        _log.info("cluster test began", cluster=cluster.id, tests=[str(test) for test in tests])
        return run

    def wait(self, known: int, seconds: float) -> Run | None:
        """The last run, once it is over or has more verdicts than ``known``, or after so many seconds."""

        def news() -> bool:
            run = self._last
            return run is None or run.state is not RunState.RUNNING or len(run.verdicts) > known

        with self._changed:
            self._changed.wait_for(news, seconds)
        return self._last

    async def stop(self, run_id: str = "") -> Run | None:
        """Stop the run that is in progress, if any, and tell the last one; in the loop.

        One that is named is stopped only as long as it is the last one, which is for the caller to see.
        """
        if self._task and run_id in ("", self._last.id if self._last else ""):
            self._task.cancel()
            await asyncio.wait([self._task])
            run = self._last
            if run and run.state is RunState.RUNNING:  # it was stopped before its first step
                self._end(run, RunState.STOPPED)
        return self._last

    def _launch(self, run: Run) -> None:
        self._task = self._loop.create_task(self._conduct(run))

    async def _conduct(self, run: Run) -> None:
        conductor = Conductor(run.cluster, self._links())
        try:
            for test in run.asked:
                verdict = skipped(test, run.asked, run.verdicts, run.partitions)
                if verdict is None:
                    run = replace(run, running=test)
                    self._tell(run)
                    verdict = await conductor.conduct(test)
                run = replace(run, verdicts=(*run.verdicts, verdict), running=None)
                self._tell(run)
        except asyncio.CancelledError:
            self._end(run, RunState.STOPPED)
        except Exception:  # noqa: BLE001 - an odd answer must not leave the cluster under test for ever
            _log.exception("cluster test failed", cluster=run.cluster.id, test=str(run.running))
            trouble = f"Cannot end the test {run.running} of cluster {shown(run.cluster.id)}: see the controller's log."
            self._end(run, RunState.ABORTED, trouble)
        else:
            self._end(run, RunState.FINISHED)

    def _end(self, run: Run, state: RunState, error: str = "") -> None:
        run = replace(run, state=state, running=None, ended=time.time(), error=error)
        before = self._results.get(run.cluster.id)
        if before is None or before.cluster != run.cluster:  # nothing that was found there is of this one
            before = Results(run.cluster)
        self._results[run.cluster.id] = before.after(run)
        self._tell(run)
        _log.info("cluster test ended", cluster=run.cluster.id, state=state.name, ok=run.ok)

    def _tell(self, run: Run) -> None:
        with self._changed:
            self._last = run
            self._changed.notify_all()
