# SPDX-License-Identifier: GPL-3.0-or-later
"""Readings of a cluster without faults, for tests to change."""

from collections.abc import Sequence

from openipu.shared.pod.topology import INTERNAL_LINKS, CableKind, Layout
from openipu.vipu.cluster_test import cable_verdicts
from openipu.vipu.cluster_test.link_verdicts import api_link
from openipu.vipu.cluster_test.readings import ends
from openipu.vipu.domain.model import Cluster, Topology
from openipu.vipu.fleet.agent_messages import Link


def cluster(agents: Sequence[str], topology: Topology = Topology.MESH, ilds: int = 1) -> Cluster:
    return Cluster("cl0", tuple(agents), ilds, topology)


def names(prefix: str, count: int, digits: int = 1) -> list[str]:
    return [f"{prefix}{number:0{digits}}" for number in range(1, count + 1)]


def cables(of: Cluster) -> dict[str, dict[tuple[CableKind, int], str]]:
    readings: dict[str, dict[tuple[CableKind, int], str]] = {agent: {} for agent in of.agents}
    for number, cable in enumerate(Layout.of(of).cables()):
        for end in ends(of, cable):
            readings[end.agent][end.kind, end.port] = f"C{number}"
    return readings


def pulses(of: Cluster) -> dict[str, dict[tuple[CableKind, int], int]]:
    sent = cable_verdicts.pulse_counts(of)
    readings: dict[str, dict[tuple[CableKind, int], int]] = {agent: {} for agent in of.agents}
    for cable in Layout.of(of).cables():
        if cable.kind is not CableKind.IPU_LINK:
            a, b = ends(of, cable)
            readings[a.agent][a.kind, a.port] = sent[b]
            readings[b.agent][b.kind, b.port] = sent[a]
    return readings


def link_states(of: Cluster) -> dict[str, dict[str, Link]]:
    inside = {f"internal{number}": Link(True, 0) for number in range(INTERNAL_LINKS)}
    readings = {agent: dict(inside) for agent in of.agents}
    for cable in Layout.of(of).cables():
        if cable.kind is not CableKind.SYNC_LINK:
            for end in ends(of, cable):
                readings[end.agent][api_link(end)] = Link(True, 0)
    return readings
