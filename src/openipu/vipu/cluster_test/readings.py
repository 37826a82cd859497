# SPDX-License-Identifier: GPL-3.0-or-later
"""Readings of machines for a cluster test. No I/O.

Readings map agents to their responses, or to ``Unreachable``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from openipu.shared.pod.topology import Cable, CableKind
from openipu.vipu.cluster_test.model import End
from openipu.vipu.domain.model import Cluster
from openipu.vipu.fleet.agent_messages import Link


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Agent that did not respond; ``reason`` is a clause."""

    reason: str


_Response = TypeVar("_Response")
Readings = Mapping[str, _Response | Unreachable]
Cables = Mapping[tuple[CableKind, int], str]  # chassis port -> serial id of the cable in it
Pulses = Mapping[tuple[CableKind, int], int]  # chassis port -> sync pulses that arrived
Links = Mapping[str, Link]  # name as in the agent API


def ends(cluster: Cluster, cable: Cable) -> tuple[End, End]:
    """Return the chassis ports at both ends of an expected cable."""
    a, b = (End(cluster.agents[end.position], cable.kind, end.port) for end in (cable.a, cable.b))
    return a, b


def responses(readings: Readings[_Response]) -> Iterator[tuple[str, _Response]]:
    """Yield the agents that responded, with their responses."""
    for agent, response in readings.items():
        if not isinstance(response, Unreachable):
            yield agent, response


def reading_at(readings: Readings[Mapping[tuple[CableKind, int], _Response]], end: End) -> _Response | None:
    """Return the reading of one chassis port, None without a reading."""
    response = readings[end.agent]
    return None if isinstance(response, Unreachable) else response.get((end.kind, end.port))


def unreachable_among(readings: Readings[_Response], *of: End) -> list[str]:
    """Return the agents of these ends that did not respond."""
    return list(dict.fromkeys(end.agent for end in of if isinstance(readings[end.agent], Unreachable)))
