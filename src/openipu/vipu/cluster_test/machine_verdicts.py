# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts of the tests that compare versions and settings of machines. No I/O.

Printed lines have the form of Graphcore's V-IPU administrator guide where it shows one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from openipu.vipu.cluster_test.model import Failure, FailureKind, Test, Verdict
from openipu.vipu.cluster_test.readings import Readings, Unreachable, responses
from openipu.vipu.cluster_test.verdict_builders import make_verdict, unreachable_failures
from openipu.vipu.domain.model import Cluster

PFC_CLASSES = tuple(range(8))  # priority classes with flow control on every RNIC


def versions(cluster: Cluster, readings: Readings[Mapping[str, str]]) -> Verdict:
    """Return the verdict on versions: each component must have the same version on all agents.

    When an agent does not respond, no component passes.
    """
    reported = dict(responses(readings))
    components = dict.fromkeys(component for versions in reported.values() for component in versions)
    failures = unreachable_failures(readings)
    mismatched = 0
    lines = []
    read: dict[str, dict[str, str]] = {}
    for component in components:
        by_agent = {agent: reported[agent].get(component, "none") for agent in cluster.agents if agent in reported}
        read[component] = by_agent
        if len(set(by_agent.values())) > 1:
            mismatched += 1
            lines += [f"{agent}-{component}: {version}" for agent, version in by_agent.items()]
            reason = f"{component} has {len(set(by_agent.values()))} versions: {_grouped(by_agent)}."
            failures.append(Failure(FailureKind.VERSION_MISMATCH, reason, component=component, versions=by_agent))
    if reported and not components:
        failures.append(Failure(FailureKind.VERSION_MISMATCH, "The agents report no components."))
        lines.append("No components reported")
    passed = 0 if len(reported) < len(cluster.agents) else len(components) - mismatched
    if mismatched:
        lines.insert(0, "Components with mismatched versions found:")
    passing = "All component versions are consistent"
    return replace(make_verdict(Test.VERSION, passed, len(components), passing, lines, failures), versions=read)


def pfc_settings(cluster: Cluster, readings: Readings[Mapping[str, Sequence[int]]]) -> Verdict:
    """Return the verdict on PFC: all eight classes must be on at every RNIC port. It counts agents."""
    expected = " ".join(map(str, PFC_CLASSES))
    failures = unreachable_failures(readings)
    lines = []
    passed = 0
    for agent in cluster.agents:
        interfaces = readings[agent]
        if isinstance(interfaces, Unreachable):
            continue
        wrong = {name: got for name, got in sorted(interfaces.items()) if tuple(sorted(got)) != PFC_CLASSES}
        if interfaces and not wrong:
            passed += 1
            continue
        problems = ", ".join(
            f"{name}: pfc classes: got {list(got)}, expected [{expected}]" for name, got in wrong.items()
        )
        problems = problems or "no RNIC interface"
        lines.append(f"{agent}: {{{problems}}}")
        failures.append(Failure(FailureKind.PFC_CLASSES, f"{agent} has {problems}.", agent=agent))
    if lines:
        lines.insert(0, "PFC settings not as expected:")
    return make_verdict(Test.PFC_SETTINGS, passed, len(cluster.agents), "All PFC settings as expected", lines, failures)


def _grouped(by_agent: Mapping[str, str]) -> str:
    """Return versions with their agents: ``1.6.0 (ag1, ag2, ag3 and 5 more), 1.5.1 (ag9)``."""
    groups: dict[str, list[str]] = {}
    for agent, version in by_agent.items():
        groups.setdefault(version, []).append(agent)
    parts = []
    for version, agents in sorted(groups.items(), key=lambda group: -len(group[1])):
        more = f" and {len(agents) - 3} more" if len(agents) > 3 else ""
        parts.append(f"{version} ({', '.join(agents[:3])}{more})")
    return ", ".join(parts)
