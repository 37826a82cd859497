# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts of the tests that train links and run traffic. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from openipu.shared.pod.topology import INTERNAL_LINKS, Cable, CableKind, Layout
from openipu.shared.vipu.cluster_test.cable_names import cable_name, link_name
from openipu.vipu.cluster_test.model import End, Failure, FailureKind, Test, Verdict
from openipu.vipu.cluster_test.readings import Links, Readings, Unreachable, ends, unreachable_among
from openipu.vipu.cluster_test.verdict_builders import (
    NOT_TESTED,
    make_verdict,
    unreachable_failures,
    untested_connection,
)
from openipu.vipu.domain.model import Cluster
from openipu.vipu.fleet.agent_messages import Link

MAX_CORRECTED_ERRORS = 300  # of one link in one traffic test; more is a failure


def ipu_link(cluster: Cluster, readings: Readings[Links]) -> Verdict:
    """Return the verdict on IPU-Links: all must train, 16 inside each machine and one per cable."""
    layout = Layout.of(cluster)
    failures = unreachable_failures(readings)
    lines = []
    passed = 0
    for agent in cluster.agents:
        links = readings[agent]
        if isinstance(links, Unreachable):
            continue
        internal = {name: link for name, link in links.items() if not name.removeprefix("gw").isdigit()}
        up = sum(link.up for link in internal.values())
        passed += min(up, INTERNAL_LINKS)
        for name in (name for name, link in internal.items() if not link.up):
            lines.append(link_name(agent, name))
            reason = f"The IPU-Link {link_name(agent, name)} does not train."
            failures.append(Failure(FailureKind.LINK_DOWN, reason, agent=agent, link=name))
        if len(internal) < INTERNAL_LINKS:
            lines.append(f"{agent}: {INTERNAL_LINKS - len(internal)} internal links missing")
            reason = f"{agent} reports {len(internal)} internal IPU-Links instead of {INTERNAL_LINKS}."
            failures.append(Failure(FailureKind.LINK_DOWN, reason, agent=agent))
    cables = [cable for cable in layout.cables() if cable.kind is CableKind.IPU_LINK]
    up, down, found = _trained(cluster, cables, readings)
    lines = ["Failed Links:", *down, *lines]
    return make_verdict(Test.IPU_LINK, passed + up, layout.ipu_links(), "All Links Passed", lines, failures + found)


def gw_link(cluster: Cluster, readings: Readings[Links]) -> Verdict:
    """Return the verdict on GW-Links: all must train. A cluster of one IPU-Link domain has none."""
    cables = list(Layout.of(cluster).gw_link_cables())
    if not cables:
        return Verdict(Test.GW_LINK, 0, 0, ("GW Link test skipped",), skipped=True)
    up, down, found = _trained(cluster, cables, readings)
    lines = ["Failed GW Links:", *down]
    failures = unreachable_failures(readings) + found
    return make_verdict(Test.GW_LINK, up, len(cables), "GW Link test passed", lines, failures)


def window_cables(cluster: Cluster) -> list[tuple[tuple[str, ...], list[Cable]]]:
    """Return the agents of each traffic test, and the IPU-Link cables between them."""
    layout = Layout.of(cluster)
    domains = [list(layout.ipu_link_cables(ild)) for ild in range(layout.ilds)]
    windows = []
    for positions in layout.traffic_windows():
        members = set(positions)
        inside = [
            cable
            for cable in domains[positions[0] // layout.machines_per_ild]
            if cable.a.position in members and cable.b.position in members
        ]
        windows.append((tuple(cluster.agents[position] for position in positions), inside))
    return windows


def traffic(cluster: Cluster, readings: Sequence[Readings[Links]]) -> Verdict:
    """Return the verdict on traffic: no link may correct more than 300 errors in a traffic test.

    ``readings`` are one per traffic test, in order.
    """
    windows = window_cables(cluster)
    failures: list[Failure] = []
    lines = ["Traffic test failed"]
    passed = 0
    for number, ((agents, cables), reading) in enumerate(zip(windows, readings, strict=True), 1):
        found = unreachable_failures(reading, number)
        # The upper machine of a cable is printed first, because it received the data with the errors.
        for cable in reversed(cables):
            found += _cable_failures(cluster, cable, reading, number)
        for agent in agents:
            found += _internal_failures(agent, reading[agent], number)
        if not found:
            passed += 1
            continue
        lines.append(f"Errors encountered in traffic test {number}")
        lines.append(f"corrected link errors: {sum(failure.corrected_errors for failure in found)}")
        lines += [f"- {_traffic_line(failure)}" for failure in found]
        failures += found
    return make_verdict(Test.TRAFFIC, passed, len(windows), "Traffic test passed", lines, failures)


def api_link(end: End) -> str:
    """Return the name of the link of a chassis port in the agent API."""
    return f"gw{end.port}" if end.kind is CableKind.GW_LINK else str(end.port)


def _link(readings: Readings[Links], end: End) -> Link:
    links = readings[end.agent]
    missing = Link(up=False, corrected_errors=0)
    return missing if isinstance(links, Unreachable) else links.get(api_link(end), missing)


def _trained(
    cluster: Cluster, cables: Iterable[Cable], readings: Readings[Links]
) -> tuple[int, list[str], list[Failure]]:
    """Return the number of cabled links that are up at both ends, and lines and failures of the others."""
    up = 0
    lines, failures = [], []
    for cable in cables:
        a, b = ends(cluster, cable)
        down = [end for end in (a, b) if not _link(readings, end).up]
        if not down:
            up += 1
            continue
        line = cable_name(a, b)
        if missing := unreachable_among(readings, a, b):
            lines.append(line + NOT_TESTED)
            failures.append(untested_connection(a, b, missing))
        else:
            lines.append(line)
            which = "both ends" if len(down) > 1 else str(down[0])
            reason = f"The link {line} does not train: it is down at {which}."
            failures.append(Failure(FailureKind.LINK_DOWN, reason, a, b))
    return up, lines, failures


def _cable_failures(cluster: Cluster, cable: Cable, readings: Readings[Links], number: int) -> list[Failure]:
    a, b = ends(cluster, cable)
    if missing := unreachable_among(readings, a, b):
        return [replace(untested_connection(a, b, missing), traffic_test=number)]
    states = [_link(readings, end) for end in (a, b)]
    if not all(state.up for state in states):
        reason = f"No traffic passes over the link {cable_name(a, b)}: it is down."
        return [Failure(FailureKind.LINK_DOWN, reason, a, b, traffic_test=number)]
    errors = max(state.corrected_errors for state in states)
    if errors <= MAX_CORRECTED_ERRORS:
        return []
    reason = f"The link {cable_name(a, b)} corrected {errors} errors, more than {MAX_CORRECTED_ERRORS}."
    return [Failure(FailureKind.CORRECTED_ERRORS, reason, a, b, corrected_errors=errors, traffic_test=number)]


def _internal_failures(agent: str, links: Links | Unreachable, number: int) -> list[Failure]:
    failures: list[Failure] = []
    if isinstance(links, Unreachable):
        return failures
    for name, link in links.items():
        if name.removeprefix("gw").isdigit():
            continue
        if not link.up:
            kind = FailureKind.LINK_DOWN
            reason = f"No traffic passes over the link {link_name(agent, name)}: it is down."
        elif link.corrected_errors > MAX_CORRECTED_ERRORS:
            kind = FailureKind.CORRECTED_ERRORS
            excess = f"{link.corrected_errors} errors, more than {MAX_CORRECTED_ERRORS}"
            reason = f"The link {link_name(agent, name)} corrected {excess}."
        else:
            continue
        errors = link.corrected_errors if link.up else 0
        failures.append(Failure(kind, reason, agent=agent, link=name, corrected_errors=errors, traffic_test=number))
    return failures


def _traffic_line(failure: Failure) -> str:
    if failure.agent and failure.kind is FailureKind.AGENT_UNREACHABLE:
        return f"{failure.agent} (no response)"
    place = cable_name(failure.b, failure.a) if failure.a and failure.b else link_name(failure.agent, failure.link)
    description = {
        FailureKind.CORRECTED_ERRORS: str(failure.corrected_errors),
        FailureKind.AGENT_UNREACHABLE: "not tested",
    }.get(failure.kind, "link down")
    return f"{place} ({description})"
