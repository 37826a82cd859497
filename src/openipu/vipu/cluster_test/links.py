# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts on links: those that train, and those that carry traffic. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ansible_collections.openipu.pod.plugins.module_utils.pod.topology import INTERNAL_LINKS, Cable, CableKind, Layout

from openipu.vipu.cluster_test.plan import End, Failure, FailureKind, Test, Verdict
from openipu.vipu.cluster_test.readings import (
    NOT_TESTED,
    Link,
    Links,
    Readings,
    Silent,
    ends,
    silences,
    silent_among,
    untested,
    verdict,
)
from openipu.vipu.model import Cluster

MOST_CORRECTED_ERRORS = 300  # of one link in one traffic test; more is a failure


def ipu_link(cluster: Cluster, readings: Readings[Links]) -> Verdict:
    """Every IPU-Link trains: sixteen inside of each machine, and one per cable."""
    layout = Layout.of(cluster)
    failures = silences(readings)
    lines = []
    passed = 0
    for agent in cluster.agents:
        links = readings[agent]
        if isinstance(links, Silent):
            continue
        inside = {name: link for name, link in links.items() if not name.removeprefix("gw").isdigit()}
        up = sum(link.up for link in inside.values())
        passed += min(up, INTERNAL_LINKS)
        for name in (name for name, link in inside.items() if not link.up):
            lines.append(f"{agent}: {name}")
            reason = f"The IPU-Link {name} inside of {agent} does not train."
            failures.append(Failure(FailureKind.LINK_DOWN, reason, agent=agent, link=name))
        if len(inside) < INTERNAL_LINKS:
            lines.append(f"{agent}: {INTERNAL_LINKS - len(inside)} internal links missing")
            reason = f"{agent} tells of {len(inside)} IPU-Links inside of it, not of {INTERNAL_LINKS}."
            failures.append(Failure(FailureKind.LINK_DOWN, reason, agent=agent))
    cables = [cable for cable in layout.cables() if cable.kind is CableKind.IPU_LINK]
    up, down, found = _trained(cluster, cables, readings)
    lines = ["Failed Links:", *down, *lines]
    return verdict(Test.IPU_LINK, passed + up, layout.ipu_links(), "All Links Passed", lines, failures + found)


def gw_link(cluster: Cluster, readings: Readings[Links]) -> Verdict:
    """Every GW-Link trains; a cluster of one IPU-Link domain has none."""
    cables = list(Layout.of(cluster).gw_link_cables())
    if not cables:
        return Verdict(Test.GW_LINK, 0, 0, ("GW Link test skipped",), skipped=True)
    up, down, found = _trained(cluster, cables, readings)
    lines = ["Failed GW Links:", *down]
    failures = silences(readings) + found
    return verdict(Test.GW_LINK, up, len(cables), "GW Link test passed", lines, failures)


def window_cables(cluster: Cluster) -> list[tuple[tuple[str, ...], list[Cable]]]:
    """The agents of each traffic test, and the IPU-Link cables between them."""
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
    """No link corrects more than 300 errors in a traffic test; one reading per test, in their order."""
    windows = window_cables(cluster)
    failures: list[Failure] = []
    lines = ["Traffic test failed"]
    passed = 0
    for number, ((agents, cables), reading) in enumerate(zip(windows, readings, strict=True), 1):
        found = silences(reading, number)
        # The upper machine of a cable, which received what the errors are in, is printed first.
        for cable in reversed(cables):
            found += _noisy_cable(cluster, cable, reading, number)
        for agent in agents:
            found += _noisy_inside(agent, reading[agent], number)
        if not found:
            passed += 1
            continue
        lines.append(f"Errors encountered in traffic test {number}")
        lines.append(f"corrected link errors: {sum(failure.corrected_errors for failure in found)}")
        lines += [f"- {_traffic_line(failure)}" for failure in found]
        failures += found
    return verdict(Test.TRAFFIC, passed, len(windows), "Traffic test passed", lines, failures)


def link_name(end: End) -> str:
    """The name of the link of a chassis port in the contract of agents."""
    return f"gw{end.port}" if end.kind is CableKind.GW_LINK else str(end.port)


def _link(readings: Readings[Links], end: End) -> Link:
    links = readings[end.agent]
    nothing = Link(up=False, corrected_errors=0)
    return nothing if isinstance(links, Silent) else links.get(link_name(end), nothing)


def _trained(
    cluster: Cluster, cables: Iterable[Cable], readings: Readings[Links]
) -> tuple[int, list[str], list[Failure]]:
    """How many cabled links are up at both ends, and lines and failures of the others."""
    up = 0
    lines, failures = [], []
    for cable in cables:
        a, b = ends(cluster, cable)
        down = [end for end in (a, b) if not _link(readings, end).up]
        if not down:
            up += 1
            continue
        line = f"{a.agent}:{a.port} <--> {b.agent}:{b.port}"
        if silent := silent_among(readings, a, b):
            lines.append(line + NOT_TESTED)
            failures.append(untested(a, b, silent))
        else:
            lines.append(line)
            which = "both ends" if len(down) > 1 else str(down[0])
            reason = f"The link of {a} and {b} does not train: it is down at {which}."
            failures.append(Failure(FailureKind.LINK_DOWN, reason, a, b))
    return up, lines, failures


def _noisy_cable(cluster: Cluster, cable: Cable, readings: Readings[Links], number: int) -> list[Failure]:
    a, b = ends(cluster, cable)
    if silent := silent_among(readings, a, b):
        return [replace(untested(a, b, silent), traffic_test=number)]
    states = [_link(readings, end) for end in (a, b)]
    if not all(state.up for state in states):
        reason = f"No traffic passes between {a} and {b}: the link is down."
        return [Failure(FailureKind.LINK_DOWN, reason, a, b, traffic_test=number)]
    errors = max(state.corrected_errors for state in states)
    if errors <= MOST_CORRECTED_ERRORS:
        return []
    reason = f"The link of {a} and {b} corrected {errors} errors, more than {MOST_CORRECTED_ERRORS}."
    return [Failure(FailureKind.CORRECTED_ERRORS, reason, a, b, corrected_errors=errors, traffic_test=number)]


def _noisy_inside(agent: str, links: Links | Silent, number: int) -> list[Failure]:
    failures: list[Failure] = []
    if isinstance(links, Silent):
        return failures
    for name, link in links.items():
        if name.removeprefix("gw").isdigit():
            continue
        if not link.up:
            kind, reason = FailureKind.LINK_DOWN, f"No traffic passes over {name} inside of {agent}."
        elif link.corrected_errors > MOST_CORRECTED_ERRORS:
            kind = FailureKind.CORRECTED_ERRORS
            reason = f"The link {name} inside of {agent} corrected {link.corrected_errors} errors."
        else:
            continue
        errors = link.corrected_errors if link.up else 0
        failures.append(Failure(kind, reason, agent=agent, link=name, corrected_errors=errors, traffic_test=number))
    return failures


def _traffic_line(failure: Failure) -> str:
    if failure.agent and failure.kind is FailureKind.AGENT_UNREACHABLE:
        return f"{failure.agent} (no answer)"
    where = (
        f"{failure.b.agent}:{failure.b.port} <--> {failure.a.agent}:{failure.a.port}"
        if failure.a and failure.b
        else f"{failure.agent}: {failure.link}"
    )
    what = {
        FailureKind.CORRECTED_ERRORS: str(failure.corrected_errors),
        FailureKind.AGENT_UNREACHABLE: "not tested",
    }.get(failure.kind, "link down")
    return f"{where} ({what})"
