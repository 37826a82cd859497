# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts on cables, versions and settings. Pure.

The printed forms are those of Graphcore's V-IPU administrator guide, where it shows one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ansible_collections.openipu.pod.plugins.module_utils.pod.topology import CableKind, Layout

from openipu.vipu.cluster_test.plan import End, Failure, FailureKind, Test, Verdict
from openipu.vipu.cluster_test.readings import (
    NOT_TESTED,
    Cables,
    Pulses,
    Readings,
    Silent,
    answers,
    ends,
    reading_at,
    silences,
    silent_among,
    untested,
    verdict,
)
from openipu.vipu.model import Cluster

PFC_CLASSES = tuple(range(8))  # that every RNIC has flow control on


def codes(cluster: Cluster) -> dict[End, int]:
    """How many sync pulses each port sends, so that whoever counts them knows where they come from."""
    found: dict[End, int] = {}
    for cable in Layout.of(cluster).cables():
        if cable.kind is not CableKind.IPU_LINK:
            for end in ends(cluster, cable):
                found[end] = len(found) + 1
    return found


def sync(cluster: Cluster, readings: Readings[Pulses]) -> Verdict:
    """Sync-Links pass their pulses both ways; so do GW-Links, which are not counted as sync cables."""
    sent = codes(cluster)
    arrived_at: dict[int, End] = {}
    for agent, ports in answers(readings):
        for (kind, port), count in ports.items():
            arrived_at.setdefault(count, End(agent, kind, port))
    failures = silences(readings)
    total = passed = 0
    lines = []
    for cable in Layout.of(cluster).cables():
        if cable.kind is CableKind.IPU_LINK:
            continue
        a, b = ends(cluster, cable)
        counted = cable.kind is CableKind.SYNC_LINK
        total += counted
        lost = [
            (sender, receiver)
            for sender, receiver in ((a, b), (b, a))
            if reading_at(readings, receiver) != sent[sender]
        ]
        if not lost:
            passed += counted
            continue
        line = f"{a.agent}:{a.port} <--> {b.port}:{b.agent}" + ("" if counted else " [GW-Link]")
        if silent := silent_among(readings, a, b):
            lines.append(line + NOT_TESTED)
            failures.append(untested(a, b, silent))
            continue
        lines.append(line)
        found, found_b = (
            place if (place := arrived_at.get(sent[end])) != other else None for end, other in ((a, b), (b, a))
        )
        reason = "; ".join(_lost_pulse(sender, receiver, arrived_at.get(sent[sender])) for sender, receiver in lost)
        failures.append(Failure(FailureKind.NO_SYNC, _sentence(reason), a, b, found, found_b))
    return verdict(Test.SYNC_LINK, passed, total, "Sync Link test passed", ["Failed Sync Links:", *lines], failures)


def cabling(cluster: Cluster, readings: Readings[Cables]) -> Verdict:
    """The serial id of the cable in one port is read in the other port of every expected connection, too."""
    places: dict[str, list[End]] = {}
    for agent, ports in answers(readings):
        for (kind, port), serial in ports.items():
            if serial:
                places.setdefault(serial, []).append(End(agent, kind, port))
    failures = silences(readings)
    failed, wrong = [], []
    total = passed = 0
    for cable in Layout.of(cluster).tested_cables():
        a, b = ends(cluster, cable)
        serials = [reading_at(readings, end) or "" for end in (a, b)]
        total += 1
        if serials[0] and serials[0] == serials[1]:
            passed += 1
            continue
        found, found_b = (
            next((place for place in places.get(serial, ()) if place not in (a, b)), None) for serial in serials
        )
        line = f"{a.agent}:{a.port} [{a.kind}] <--> {b.agent}:{b.port} [{b.kind}]"
        if silent := silent_among(readings, a, b):
            failed.append(line + NOT_TESTED)
            failures.append(untested(a, b, silent, found, found_b))
            continue
        if found or found_b:
            wrong.append(f"{_cluster_port(a)} <--> {_cluster_port(b)} (connected to wrong port)")
        else:
            failed.append(f"{line} (failed)")
        kind = FailureKind.WRONG_PORT if found or found_b else FailureKind.NO_CABLE
        reason = "; ".join(
            _cable_here(end, serial, place)
            for end, serial, place in zip((a, b), serials, (found, found_b), strict=True)
        )
        empty, empty_b = (not serial for serial in serials)
        failures.append(Failure(kind, _sentence(reason), a, b, found, found_b, empty, empty_b))
    lines = [*failed, *(["Cables not connected as expected:", *wrong] if wrong else [])]
    return verdict(Test.CABLING, passed, total, "All cables connected as expected", lines, failures)


def versions(cluster: Cluster, readings: Readings[Mapping[str, str]]) -> Verdict:
    """Every component has one version on all agents. With an agent that does not answer none is known to."""
    told = dict(answers(readings))
    components = dict.fromkeys(component for versions in told.values() for component in versions)
    failures = silences(readings)
    mismatched = 0
    lines = []
    read: dict[str, dict[str, str]] = {}
    for component in components:
        by_agent = {agent: told[agent].get(component, "none") for agent in cluster.agents if agent in told}
        read[component] = by_agent
        if len(set(by_agent.values())) > 1:
            mismatched += 1
            lines += [f"{agent}-{component}: {version}" for agent, version in by_agent.items()]
            reason = f"{component} has {len(set(by_agent.values()))} versions: {_grouped(by_agent)}."
            failures.append(Failure(FailureKind.VERSION_MISMATCH, reason, component=component, versions=by_agent))
    if told and not components:
        failures.append(Failure(FailureKind.VERSION_MISMATCH, "The agents tell of no component."))
        lines.append("No component is told of")
    passed = 0 if len(told) < len(cluster.agents) else len(components) - mismatched
    if mismatched:
        lines.insert(0, "Components with mismatched versions found:")
    passing = "All component versions are consistent"
    return replace(verdict(Test.VERSION, passed, len(components), passing, lines, failures), versions=read)


def pfc_settings(cluster: Cluster, readings: Readings[Mapping[str, Sequence[int]]]) -> Verdict:
    """All eight PFC classes are on at every RNIC port; counts agents."""
    expected = " ".join(map(str, PFC_CLASSES))
    failures = silences(readings)
    lines = []
    passed = 0
    for agent in cluster.agents:
        interfaces = readings[agent]
        if isinstance(interfaces, Silent):
            continue
        wrong = {name: got for name, got in sorted(interfaces.items()) if tuple(sorted(got)) != PFC_CLASSES}
        if interfaces and not wrong:
            passed += 1
            continue
        told = ", ".join(f"{name}: pfc classes: got {list(got)}, expected [{expected}]" for name, got in wrong.items())
        told = told or "no RNIC interface"
        lines.append(f"{agent}: {{{told}}}")
        failures.append(Failure(FailureKind.PFC_CLASSES, f"{agent} has {told}.", agent=agent))
    if lines:
        lines.insert(0, "PFC settings not as expected:")
    return verdict(Test.PFC_SETTINGS, passed, len(cluster.agents), "All PFC settings as expected", lines, failures)


def _sentence(clauses: str) -> str:
    return f"{clauses[0].upper()}{clauses[1:]}."


def _lost_pulse(sender: End, receiver: End, arrived: End | None) -> str:
    where = f"but at {arrived}" if arrived else "nor anywhere else"
    return f"the pulses of {sender} did not arrive at {receiver}, {where}"


def _cluster_port(end: End) -> str:
    name = "IPU-Cluster Port" if end.kind is CableKind.IPU_LINK else f"{end.kind} Port"
    return f"{end.agent} ({name} {end.port})"


def _cable_here(end: End, serial: str, found: End | None) -> str:
    if not serial:
        return f"there is no cable in {end}"
    if found:
        return f"the cable {serial} in {end} leads to {found}"
    return f"the other end of the cable {serial} in {end} is in no port of this cluster that was read"


def _grouped(by_agent: Mapping[str, str]) -> str:
    """ "1.6.0 (ag1, ag2 and 5 more), 1.5.1 (ag8)"."""
    groups: dict[str, list[str]] = {}
    for agent, version in by_agent.items():
        groups.setdefault(version, []).append(agent)
    told = []
    for version, agents in sorted(groups.items(), key=lambda group: -len(group[1])):
        more = f" and {len(agents) - 3} more" if len(agents) > 3 else ""
        told.append(f"{version} ({', '.join(agents[:3])}{more})")
    return ", ".join(told)
