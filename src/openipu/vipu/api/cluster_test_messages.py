# SPDX-License-Identifier: GPL-3.0-or-later
"""Conversion of cluster test runs to messages of the admin API."""

from __future__ import annotations

from collections.abc import Mapping

from openipu.shared.vipu.contract import admin
from openipu.shared.vipu.names import CABLE_KIND, CLUSTER_TEST, TEST_FAILURE
from openipu.vipu.api import convert as messages
from openipu.vipu.api.convert import Message
from openipu.vipu.cluster_test.model import End, Failure, Test, Verdict
from openipu.vipu.cluster_test.results import Results, Run
from openipu.vipu.cluster_test.selection import select_tests
from openipu.vipu.domain.errors import Code, RuleError, quoted


def tests(request: Message) -> tuple[Test, ...]:
    """Return the requested tests, in their order of execution. Raises RuleError."""
    try:
        return select_tests(Test(CLUSTER_TEST.text(number)) for number in request.tests)
    except ValueError:
        raise RuleError(
            Code.INVALID_ARGUMENT,
            f"Cannot test cluster {quoted(request.cluster_id)}: the request names an unknown test; "
            f"choose from {', '.join(Test)}.",
        ) from None


def check_last(run_id: str, last: Run | None) -> None:
    """Raise RuleError unless ``run_id`` is the last run. An empty id means the last run."""
    if run_id and (last is None or last.id != run_id):
        raise RuleError(
            Code.NOT_FOUND,
            f"Cannot get cluster test {quoted(run_id)}: the controller keeps only the last test, which has another id. "
            "Omit the id to get it.",
        )


def run(item: Run | None) -> Message:
    """Return a run, an empty message for None."""
    if item is None:
        return admin.ClusterTestRun()
    return admin.ClusterTestRun(
        state=int(item.state),
        run_id=item.id,
        cluster=messages.cluster_message(item.cluster, ()).spec,
        requested=[_number(test) for test in item.requested],
        results=map(_result, item.verdicts),
        running=_number(item.running),
        error=item.error,
        ok=item.ok,
        started_unix=int(item.started),
        ended_unix=int(item.ended),
    )


def others(results: Mapping[str, Results], last: Run | None) -> list[Message]:
    """Return the last run of each cluster, except that of the last run of all, by cluster id."""
    tested = last.cluster.id if last else ""
    return [run(each.last) for id, each in sorted(results.items()) if id != tested]


def _number(test: Test | None) -> int:
    return int(CLUSTER_TEST.number(test))


def _result(verdict: Verdict) -> Message:
    return admin.TestResult(
        test=_number(verdict.test),
        duration_seconds=verdict.duration,
        passed=verdict.passed,
        total=verdict.total,
        ok=verdict.ok,
        summary=verdict.lines,
        skipped=verdict.skipped,
        skipped_because=_number(verdict.skipped_because),
        disturbs=verdict.disturbs,
        failures=map(_failure, verdict.failures),
        versions=[
            admin.ComponentVersions(component=component, versions=versions)
            for component, versions in verdict.versions.items()
        ],
    )


def _failure(failure: Failure) -> Message:
    return admin.TestFailure(
        kind=TEST_FAILURE.number(failure.kind),
        reason=failure.reason,
        a=_port(failure.a),
        b=_port(failure.b),
        found=_port(failure.found),
        found_b=_port(failure.found_b),
        agent_id=failure.agent,
        link=failure.link,
        corrected_errors=failure.corrected_errors,
        traffic_test=failure.traffic_test,
        component=failure.component,
        versions=failure.versions,
        empty=failure.empty,
        empty_b=failure.empty_b,
    )


def _port(end: End | None) -> Message | None:
    return end and admin.ChassisPort(agent_id=end.agent, kind=CABLE_KIND.number(end.kind), port=end.port)
