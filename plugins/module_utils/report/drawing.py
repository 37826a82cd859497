# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cables of a cluster with what the tests say of them, and where they are drawn. Pure.

Lengths are in units of the drawing. The machines of an IPU-Link domain stand in a column, the lowest at
the bottom, their ports on the edges: so a cable between neighbours is a short line across the gap.
"""

from __future__ import annotations

import typing as t

from ..pod.topology import IPU_LINK_DOWN, IPU_LINK_UP, SYNC_LINK_DOWN, SYNC_LINK_UP, Cable, CableKind, Layout
from . import actions

BOX_LEFT, BOX_WIDTH, BOX_HEIGHT, GAP = 64, 560, 40, 26
PITCH = BOX_HEIGHT + GAP
WIDTH = 800
MARGIN = 58  # above the highest machine and below the lowest, for the cables that close a torus
SHELF = 26  # height of anything that is no IPU-Machine
STEP = 34  # between two ports
INSET = 8  # of the middle of a port from the edge of its machine

# Ports 1 to 4 on the lower edge, 5 to 8 above them; Sync-Link ports 0 to 3 and 4 to 7 likewise.
IPU_LINK_X = {port: BOX_LEFT + 220 + STEP * ((port - 1) % 4) for port in (*IPU_LINK_DOWN, *IPU_LINK_UP)}
SYNC_X = {port: BOX_LEFT + 400 + STEP * (port % 4) for port in range(8)}

PASSED, FAILED, SKIPPED, UNTESTED = "passed", "failed", "skipped", "untested"
# The tests whose pass says that a cable is right.
_TELLING = {
    CableKind.IPU_LINK: ("Cabling", "IPU-Link"),
    CableKind.GW_LINK: ("Cabling", "GW-Link"),
    CableKind.SYNC_LINK: ("Sync-Link",),
}


class Drawn(t.NamedTuple):
    """A cable as it is drawn: its kind, both ends in words, what is known of it, and the path of its line."""

    kind: str
    ends: str
    state: str
    reason: str
    path: str
    mark: tuple[float, float]  # where a sign for its state stands
    key: tuple[str, str]
    stub: str = ""  # what stands at the end of a line that leaves the drawing


class Findings:
    """What a run of tests says of the cables of its cluster."""

    def __init__(self, run: t.Mapping[str, t.Any] | None) -> None:
        """Without a run nothing was tested."""
        self.results = {result["test"]: result for result in (run or {}).get("results", ())}
        self._reasons: dict[tuple[str, str], dict[str, None]] = {}
        self._untested: set[tuple[str, str]] = set()
        for result in self.results.values():
            for failure in result["failures"]:
                if failure["a"] and failure["b"]:
                    cable = actions.key(failure["a"], failure["b"])
                    self._reasons.setdefault(cable, {})[failure["reason"]] = None
                    if failure["kind"] == "agent_unreachable":
                        self._untested.add(cable)

    def of(self, kind: CableKind, cable: tuple[str, str]) -> tuple[str, str]:
        """State and reason of a cable."""
        if cable in self._reasons:
            return (UNTESTED if cable in self._untested else FAILED), " ".join(self._reasons[cable])
        told = [self.results[test] for test in _TELLING[kind] if test in self.results]
        if any(not result["skipped"] for result in told):
            return PASSED, "passed"
        if told:
            because = told[0]["skipped_because"]
            return SKIPPED, "not tested, because %s failed" % because if because else "not tested"
        return UNTESTED, "not tested"


class Domain:
    """The drawing of one IPU-Link domain. ``agents`` stand from the lowest up."""

    def __init__(self, agents: t.Sequence[str], closed: bool, shelves: int = 0) -> None:
        """``closed`` to a torus; ``shelves``: how many other devices stand above the machines."""
        margin = MARGIN if closed else 12
        self._top = 12 + shelves * SHELF + margin
        self._row = {agent: len(agents) - 1 - index for index, agent in enumerate(agents)}
        self.height = self._top + len(agents) * PITCH - GAP + margin

    def box(self, agent: str) -> float:
        """The upper edge of a machine."""
        return self._top + self._row[agent] * PITCH

    def line(
        self, lower: tuple[str, int], upper: tuple[str, int], x: float, lane: int
    ) -> tuple[str, tuple[float, float]]:
        """The path of a cable from the upper edge of a machine to the lower edge of another, and its middle.

        Neighbours are joined by a straight line, the ends of a torus around the right side in a lane.
        """
        start, end = self.box(lower[0]), self.box(upper[0]) + BOX_HEIGHT
        if self._row[lower[0]] == self._row[upper[0]] + 1:
            return "M%g %gV%g" % (x, start, end), (x, (start + end) / 2)
        right, out = BOX_LEFT + BOX_WIDTH + 60 + 12 * lane, 12 + 10 * lane
        path = "M%g %gV%gH%gV%gH%gV%g" % (x, start, start - out, right, end + out, x, end)
        return path, (right, (start + end) / 2)


def domain_cables(
    layout: Layout, agents: t.Sequence[str], findings: Findings, ild: int, drawing: Domain
) -> list[Drawn]:
    """IPU-Link and Sync-Link cables of one domain. ``agents`` are those of the whole cluster."""
    found = []
    for cable in layout.ipu_link_cables(ild):
        path, mark = drawing.line(
            (agents[cable.a.position], cable.a.port),
            (agents[cable.b.position], cable.b.port),
            IPU_LINK_X[cable.a.port],
            IPU_LINK_UP.index(cable.a.port),
        )
        found.append(_drawn(cable, agents, findings, path, mark))
    for cable in layout.sync_link_cables(ild):
        ends = (agents[cable.a.position], cable.a.port), (agents[cable.b.position], cable.b.port)
        path, mark = drawing.line(*ends, SYNC_X[cable.a.port], SYNC_LINK_UP.index(cable.a.port))
        found.append(_drawn(cable, agents, findings, path, mark))
    return found


def gw_cables(layout: Layout, agents: t.Sequence[str], findings: Findings, ild: int, drawing: Domain) -> list[Drawn]:
    """The GW-Link cables to the next domain, as lines that leave the machines of this one to the right."""
    found = []
    for cable in layout.gw_link_cables():
        if cable.a.position // layout.machines_per_ild == ild:
            x, y = BOX_LEFT + BOX_WIDTH, drawing.box(agents[cable.a.position]) + BOX_HEIGHT / 2
            drawn = _drawn(cable, agents, findings, "M%g %gh24" % (x, y), (x + 12, y))
            found.append(drawn._replace(stub="%s gw%d" % (agents[cable.b.position], cable.b.port)))
    return found


def _drawn(cable: Cable, agents: t.Sequence[str], findings: Findings, path: str, mark: tuple[float, float]) -> Drawn:
    a, b = ({"agent": agents[end.position], "kind": cable.kind.value, "port": end.port} for end in (cable.a, cable.b))
    key = actions.key(a, b)
    state, reason = findings.of(cable.kind, key)
    ends = "%s cable, %s port %s – %s port %s" % (cable.kind.value, a["agent"], a["port"], b["agent"], b["port"])
    return Drawn(cable.kind.value, ends, state, reason, path, mark, key)


def ports() -> list[tuple[str, str, float, float]]:
    """The ports of a machine: family, number, and where they stand in its box."""
    found: list[tuple[str, str, float, float]] = []
    for port, x in IPU_LINK_X.items():
        found.append(("ipu", str(port), x - BOX_LEFT, BOX_HEIGHT - INSET if port in IPU_LINK_DOWN else INSET))
    for port, x in SYNC_X.items():
        below = port <= max(SYNC_LINK_DOWN)
        found.append(("sync", str(port), x - BOX_LEFT, BOX_HEIGHT - INSET if below else INSET))
    return found
