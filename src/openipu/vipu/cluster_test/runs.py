# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of cluster tests: one at a time. The last run and the results of each cluster are kept in memory."""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace

import structlog

from openipu.vipu.cluster_test.execute import TestExecutor
from openipu.vipu.cluster_test.model import Test
from openipu.vipu.cluster_test.results import Results, Run, RunState
from openipu.vipu.cluster_test.selection import skip_verdict
from openipu.vipu.domain.errors import Code, RuleError, RuleViolation, quoted
from openipu.vipu.domain.model import Change
from openipu.vipu.domain.state import State
from openipu.vipu.fleet.connection import AgentConnection
from openipu.vipu.storage.interface import Records, StoppedError

_log: structlog.stdlib.BoundLogger = structlog.get_logger("vipu-server")


def abort_message(test: str, cluster: str) -> str:
    """Return the error message of a run that an unexpected error ended.

    ``plugins/module_utils/vipu/transport/cli_tests.py`` recognises its beginning.
    """
    return f"Cannot end the test {test} of cluster {quoted(cluster)}: unexpected error. Read the controller's log."


class Runs:
    """Start, report and stop runs. ``start``, ``last`` and ``wait`` may be used from any thread."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, connections: Callable[[], Mapping[str, AgentConnection]]
    ) -> None:
        """Set the event loop, and the function that returns the connections of all agents in it."""
        self._loop = loop
        self._connections = connections
        self._last: Run | None = None
        self._reserved: Run | None = None  # its transaction is not durable yet
        self._results: dict[str, Results] = {}
        self._changed = threading.Condition()
        self._task: asyncio.Task[None] | None = None

    @property
    def last(self) -> Run | None:
        """Last run of any cluster."""
        return self._last

    @property
    def results(self) -> Mapping[str, Results]:
        """Results of each tested cluster."""
        return self._results.copy()

    @property
    def cluster_under_test(self) -> str:
        """Id of the cluster under test; empty for none."""
        run = self._reserved or self._last
        return run.cluster.id if run and run.state is RunState.RUNNING else ""

    def start(self, records: Records, cluster_id: str, tests: tuple[Test, ...]) -> Future[Run]:
        """Start a run when the transaction with its checks is durable. The future fails with RuleError or StoreError.

        The checks run in the writer thread and reserve the cluster, so that no conflicting change can happen
        in between. A failed transaction ends the reservation, and no machine is disturbed.
        """
        id = secrets.token_hex(8)
        started: Future[Run] = Future()

        def reserve(state: State) -> tuple[Sequence[Change], Run]:
            self._reserved = run = self._planned(state, id, cluster_id, tests)
            return [], run

        def committed(done: Future[Run]) -> None:
            try:
                run = done.result()
                self._begin(run)
            except Exception as error:  # noqa: BLE001 - passed on to the caller
                started.set_exception(error)
            else:
                started.set_result(run)
            finally:
                if self._reserved and self._reserved.id == id:
                    self._reserved = None

        records.submit(reserve).add_done_callback(committed)
        return started

    def _planned(self, state: State, id: str, cluster_id: str, tests: tuple[Test, ...]) -> Run:
        """Return a run that may start; raises RuleError."""
        try:
            cluster = state.clusters.get(cluster_id)
            if cluster is None:
                raise RuleViolation(Code.NOT_FOUND, "it does not exist. Check its id, or create it first")
            if self.cluster_under_test:
                raise RuleViolation(
                    Code.FAILED_PRECONDITION,
                    f"a test of cluster {quoted(self.cluster_under_test)} is in progress, and only one can run "
                    "at a time. Wait for its end, or stop it",
                )
        except RuleViolation as violation:
            raise RuleError(violation.code, f"Cannot test cluster {quoted(cluster_id)}: {violation.reason}.") from None
        partitions = sorted(
            partition
            for allocation in state.allocations_in.get(cluster_id, ())
            for partition in state.partitions_in.get(allocation, ())
        )
        return Run(id, cluster, tests, tuple(partitions), time.time())

    def _begin(self, run: Run) -> None:
        """Start a reserved run; raises StoppedError."""
        with self._changed:  # the task must not report progress before ``last`` is set
            try:
                self._loop.call_soon_threadsafe(self._launch, run)
            except RuntimeError:  # the loop is closed
                raise StoppedError from None
            self._last = run
        _log.info("cluster test started", cluster=run.cluster.id, tests=[str(test) for test in run.requested])

    def wait(self, known: int, seconds: float) -> Run | None:
        """Return the last run once it has ended or has more than ``known`` verdicts, or after ``seconds``."""

        def progressed() -> bool:
            run = self._last
            return run is None or run.state is not RunState.RUNNING or len(run.verdicts) > known

        with self._changed:
            self._changed.wait_for(progressed, seconds)
        return self._last

    def drop_results(self, cluster_id: str) -> None:
        """Drop the results of a deleted cluster; call it in the loop."""
        self._results.pop(cluster_id, None)

    async def stop(self, run_id: str = "") -> Run | None:
        """Stop the run in progress, if any, and return the last run; call it in the loop.

        With ``run_id``, only that run is stopped. The caller must check whether it is the returned one.
        """
        if self._task and run_id in ("", self._last.id if self._last else ""):
            self._task.cancel()
            await asyncio.wait([self._task])
            run = self._last
            if run and run.state is RunState.RUNNING:  # stopped before its first step
                self._end(run, RunState.STOPPED)
        return self._last

    def _launch(self, run: Run) -> None:
        self._task = self._loop.create_task(self._execute(run))

    async def _execute(self, run: Run) -> None:
        executor = TestExecutor(run.cluster, self._connections())
        try:
            for test in run.requested:
                verdict = skip_verdict(test, run.requested, run.verdicts, run.partitions)
                if verdict is None:
                    run = replace(run, running=test)
                    self._publish(run)
                    verdict = await executor.execute(test)
                run = replace(run, verdicts=(*run.verdicts, verdict), running=None)
                self._publish(run)
        except asyncio.CancelledError:
            self._end(run, RunState.STOPPED)
        except Exception:  # noqa: BLE001 - an unexpected error must not leave the cluster under test forever
            _log.exception("cluster test failed", cluster=run.cluster.id, test=str(run.running))
            self._end(run, RunState.ABORTED, abort_message(str(run.running), run.cluster.id))
        else:
            self._end(run, RunState.FINISHED)

    def _end(self, run: Run, state: RunState, error: str = "") -> None:
        run = replace(run, state=state, running=None, ended=time.time(), error=error)
        before = self._results.get(run.cluster.id)
        if before is None or before.cluster != run.cluster:  # earlier results belong to another configuration
            before = Results(run.cluster)
        self._results[run.cluster.id] = before.with_run(run)
        self._publish(run)
        _log.info("cluster test ended", cluster=run.cluster.id, state=state.name, ok=run.ok)

    def _publish(self, run: Run) -> None:
        with self._changed:
            self._last = run
            self._changed.notify_all()
