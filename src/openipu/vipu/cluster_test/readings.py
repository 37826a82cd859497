# SPDX-License-Identifier: GPL-3.0-or-later
"""What machines answer to a cluster test, and what all verdicts have in common. Pure.

Readings are mappings from agent to what it answered; ``Silent`` stands for one that did not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ansible_collections.openipu.pod.plugins.module_utils.pod.topology import Cable, CableKind

from openipu.vipu.cluster_test.plan import End, Failure, FailureKind, Test, Verdict
from openipu.vipu.model import Cluster

NOT_TESTED = " (not tested)"  # after a printed connection whose agents did not answer


@dataclass(frozen=True, slots=True)
class Silent:
    """An agent that did not answer; why, as a clause."""

    reason: str


@dataclass(frozen=True, slots=True)
class Link:
    """A link as one machine sees it."""

    up: bool
    corrected_errors: int


_Answer = TypeVar("_Answer")
Readings = Mapping[str, _Answer | Silent]
Cables = Mapping[tuple[CableKind, int], str]  # chassis port -> serial id of the cable in it
Pulses = Mapping[tuple[CableKind, int], int]  # chassis port -> sync pulses that arrived
Links = Mapping[str, Link]  # name as in the contract of agents


def ends(cluster: Cluster, cable: Cable) -> tuple[End, End]:
    """The chassis ports at both ends of an expected cable."""
    a, b = (End(cluster.agents[end.position], cable.kind, end.port) for end in (cable.a, cable.b))
    return a, b


def answers(readings: Readings[_Answer]) -> Iterator[tuple[str, _Answer]]:
    """The agents that answered, and what."""
    for agent, answer in readings.items():
        if not isinstance(answer, Silent):
            yield agent, answer


def reading_at(readings: Readings[Mapping[tuple[CableKind, int], _Answer]], end: End) -> _Answer | None:
    """What was read at one chassis port; None when nothing was."""
    answer = readings[end.agent]
    return None if isinstance(answer, Silent) else answer.get((end.kind, end.port))


def silent_among(readings: Readings[_Answer], *of: End) -> list[str]:
    """The agents of these ends that did not answer."""
    return list(dict.fromkeys(end.agent for end in of if isinstance(readings[end.agent], Silent)))


def silences(readings: Readings[_Answer], traffic_test: int = 0) -> list[Failure]:
    """One failure for every agent that did not answer."""
    return [
        Failure(
            FailureKind.AGENT_UNREACHABLE,
            f"Agent '{agent}' did not answer: {answer.reason}.",
            agent=agent,
            traffic_test=traffic_test,
        )
        for agent, answer in readings.items()
        if isinstance(answer, Silent)
    ]


def untested(a: End, b: End, silent: Sequence[str], found: End | None = None, found_b: End | None = None) -> Failure:
    """A connection of which nothing is known, because of its agents."""
    reason = f"{' and '.join(silent)} did not answer, so this could not be tested."
    return Failure(FailureKind.AGENT_UNREACHABLE, reason, a, b, found, found_b)


def verdict(
    test: Test, passed: int, total: int, passing: str, lines: Iterable[str], failures: Sequence[Failure]
) -> Verdict:
    """Passed with the line ``passing``, or failed with ``lines`` and a sentence for each silent agent."""
    if not failures:
        return Verdict(test, passed, total, (passing,))
    silent = [failure for failure in failures if failure.kind is FailureKind.AGENT_UNREACHABLE and not failure.a]
    told = dict.fromkeys(failure.reason for failure in silent)
    return Verdict(test, passed, total, (*lines, *told), tuple(failures))
