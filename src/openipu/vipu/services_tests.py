# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of cluster tests as messages of the admin API."""

from __future__ import annotations

from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin
from ansible_collections.openipu.pod.plugins.module_utils.vipu.names import CABLE_KIND, CLUSTER_TEST, TEST_FAILURE

from openipu.vipu import services_messages as messages
from openipu.vipu.checks import Code, RuleError, shown
from openipu.vipu.cluster_test.plan import End, Failure, Test, Verdict, chosen
from openipu.vipu.cluster_test.runs import Run
from openipu.vipu.services_messages import Message


def tests(request: Message) -> tuple[Test, ...]:
    """The tests that a request asks for, in their order. Raises RuleError."""
    try:
        return chosen(Test(CLUSTER_TEST.text(number)) for number in request.tests)
    except ValueError:
        raise RuleError(
            Code.INVALID_ARGUMENT,
            f"Cannot test cluster {shown(request.cluster_id)}: it asks for a test that is not known; "
            f"choose from {', '.join(Test)}.",
        ) from None


def check_last(run_id: str, last: Run | None) -> None:
    """Refuse to speak of a run that is not the last one; none named means the last. Raises RuleError."""
    if run_id and (last is None or last.id != run_id):
        raise RuleError(
            Code.NOT_FOUND,
            f"Cannot tell of cluster test {shown(run_id)}: the controller keeps its last test only, "
            "and that is another one.",
        )


def run(item: Run | None) -> Message:
    """A run; an empty one for None."""
    if item is None:
        return admin.ClusterTestRun()
    return admin.ClusterTestRun(
        state=int(item.state),
        run_id=item.id,
        cluster=messages.cluster_message(item.cluster, ()).spec,
        asked=[_number(test) for test in item.asked],
        results=map(_result, item.verdicts),
        running=_number(item.running),
        error=item.error,
        ok=item.ok,
        started_unix=int(item.started),
        ended_unix=int(item.ended),
    )


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
