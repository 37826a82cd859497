# SPDX-License-Identifier: GPL-3.0-or-later
"""Builders that all verdicts share, mainly for agents that do not respond. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from openipu.vipu.cluster_test.model import End, Failure, FailureKind, Test, Verdict
from openipu.vipu.cluster_test.readings import Readings, Unreachable

NOT_TESTED = " (not tested)"  # suffix of a printed connection whose agents did not respond

_Response = TypeVar("_Response")


def unreachable_failures(readings: Readings[_Response], traffic_test: int = 0) -> list[Failure]:
    """Return a failure for each agent that did not respond."""
    return [
        Failure(
            FailureKind.AGENT_UNREACHABLE,
            f"Agent '{agent}' did not respond: {response.reason}.",
            agent=agent,
            traffic_test=traffic_test,
        )
        for agent, response in readings.items()
        if isinstance(response, Unreachable)
    ]


def untested_connection(
    a: End, b: End, agents: Sequence[str], found: End | None = None, found_b: End | None = None
) -> Failure:
    """Return the failure of a connection that was not tested because agents did not respond."""
    reason = f"{' and '.join(agents)} did not respond, so this connection was not tested."
    return Failure(FailureKind.AGENT_UNREACHABLE, reason, a, b, found, found_b)


def make_verdict(
    test: Test, passed: int, total: int, passing: str, lines: Iterable[str], failures: Sequence[Failure]
) -> Verdict:
    """Return a verdict: passed with the line ``passing``, or failed with ``lines`` and the unreachable agents."""
    if not failures:
        return Verdict(test, passed, total, (passing,))
    unreachable = [failure for failure in failures if failure.kind is FailureKind.AGENT_UNREACHABLE and not failure.a]
    reasons = dict.fromkeys(failure.reason for failure in unreachable)
    return Verdict(test, passed, total, (*lines, *reasons), tuple(failures))
