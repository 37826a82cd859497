# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts of the tests of cables: serial ids and sync pulses. No I/O.

Printed lines have the form of Graphcore's V-IPU administrator guide where it shows one.
"""

from __future__ import annotations

from openipu.shared.pod.topology import CableKind, Layout
from openipu.shared.vipu.cluster_test.cable_names import cable_name
from openipu.vipu.cluster_test.model import End, Failure, FailureKind, Test, Verdict
from openipu.vipu.cluster_test.readings import Cables, Pulses, Readings, ends, reading_at, responses, unreachable_among
from openipu.vipu.cluster_test.verdict_builders import (
    NOT_TESTED,
    make_verdict,
    unreachable_failures,
    untested_connection,
)
from openipu.vipu.domain.model import Cluster


def pulse_counts(cluster: Cluster) -> dict[End, int]:
    """Return the number of sync pulses that each port sends. It is unique, so the count identifies the sender."""
    counts: dict[End, int] = {}
    for cable in Layout.of(cluster).cables():
        if cable.kind is not CableKind.IPU_LINK:
            for end in ends(cluster, cable):
                counts[end] = len(counts) + 1
    return counts


def sync(cluster: Cluster, readings: Readings[Pulses]) -> Verdict:
    """Return the verdict on sync: Sync-Links and GW-Links must pass pulses both ways; only Sync-Links are counted."""
    sent = pulse_counts(cluster)
    arrived_at: dict[int, End] = {}
    for agent, ports in responses(readings):
        for (kind, port), count in ports.items():
            arrived_at.setdefault(count, End(agent, kind, port))
    failures = unreachable_failures(readings)
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
        line = f"{a.agent}:{a.port} <--> {b.port}:{b.agent}" if counted else cable_name(a, b)
        if missing := unreachable_among(readings, a, b):
            lines.append(line + NOT_TESTED)
            failures.append(untested_connection(a, b, missing))
            continue
        lines.append(line)
        found, found_b = (
            place if (place := arrived_at.get(sent[end])) != other else None for end, other in ((a, b), (b, a))
        )
        reason = "; ".join(_lost_pulse(sender, receiver, arrived_at.get(sent[sender])) for sender, receiver in lost)
        failures.append(Failure(FailureKind.NO_SYNC, _sentence(reason), a, b, found, found_b))
    return make_verdict(
        Test.SYNC_LINK, passed, total, "Sync Link test passed", ["Failed Sync Links:", *lines], failures
    )


def cabling(cluster: Cluster, readings: Readings[Cables]) -> Verdict:
    """Return the verdict on cabling: both ports of each connection must report the serial id of the same cable."""
    places: dict[str, list[End]] = {}
    for agent, ports in responses(readings):
        for (kind, port), serial in ports.items():
            if serial:
                places.setdefault(serial, []).append(End(agent, kind, port))
    failures = unreachable_failures(readings)
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
        if missing := unreachable_among(readings, a, b):
            failed.append(line + NOT_TESTED)
            failures.append(untested_connection(a, b, missing, found, found_b))
            continue
        if found or found_b:
            wrong.append(f"{_cluster_port(a)} <--> {_cluster_port(b)} (connected to wrong port)")
        else:
            failed.append(f"{line} (failed)")
        failure = FailureKind.WRONG_PORT if found or found_b else FailureKind.NO_CABLE
        reason = "; ".join(
            _cable_reason(end, serial, place)
            for end, serial, place in zip((a, b), serials, (found, found_b), strict=True)
        )
        empty, empty_b = (not serial for serial in serials)
        failures.append(Failure(failure, _sentence(reason), a, b, found, found_b, empty, empty_b))
    lines = [*failed, *(["Cables not connected as expected:", *wrong] if wrong else [])]
    return make_verdict(Test.CABLING, passed, total, "All cables connected as expected", lines, failures)


def _sentence(clauses: str) -> str:
    return f"{clauses[0].upper()}{clauses[1:]}."


def _lost_pulse(sender: End, receiver: End, arrived: End | None) -> str:
    where = f"but at {arrived}" if arrived else "or at any other port"
    return f"the sync pulses of {sender} did not arrive at {receiver} {where}"


def _cluster_port(end: End) -> str:
    name = "IPU-Cluster Port" if end.kind is CableKind.IPU_LINK else f"{end.kind} Port"
    return f"{end.agent} ({name} {end.port})"


def _cable_reason(end: End, serial: str, found: End | None) -> str:
    if not serial:
        return f"there is no cable in {end}"
    if found:
        return f"the cable {serial} in {end} leads to {found}"
    return f"the other end of the cable {serial} in {end} is not in any readable port of this cluster"
