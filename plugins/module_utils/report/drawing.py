# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Geometry of the drawing of a rack. Pure; lengths are in units of the drawing.

Machines are drawn at their mounting height. Ports 1 to 4 are at the lower edge and 5 to 8 at the upper one, and
Sync-Link ports likewise. So a cable between neighbours is a short line across the gap.
"""

from __future__ import annotations

import itertools
import typing as t

from ..pod.topology import CableKind
from ..vipu.object_rules import IPUS_PER_MACHINE
from .chassis_ports import ChassisPort

WIDTH = 830
BOX_LEFT, BOX_WIDTH, BOX_HEIGHT, GAP = 90, 560, 44, 26
PITCH = BOX_HEIGHT + GAP
SHELF = 28  # height of a device that is not an IPU-Machine, with the space below
EDGE = 34  # space above and below the machines for the cables that close a torus
RAIL = 12  # width of a PDU at the side
BAND, BAND_LEFT = 14, 36  # width and position of the bands of allocations

_STEP = 32  # between two ports
_INSET = 9  # from the centre of a port to the edge of its machine
_RING = 10  # radius of the mark of a port
_BOW = 40  # horizontal bend of a cable between ports of one column
_STRAY_LANE = 231  # of misplaced cables that pass other machines, between the IPUs and the ports of a machine
_BESIDE = 8  # from a machine to the cables that leave from a wrong port
_IPU_LINKS, _SYNC_LINKS, _GW_LINKS = 250, 392, 530  # the leftmost port of each kind, from the edge of the machine
_IPUS, _IPU_STEP = 128, 24  # the leftmost IPU

# Cables that close a torus run next to the rack; GW-Links end further right.
_LANES, _LANE = BOX_LEFT + BOX_WIDTH + 26, 9
STUB = BOX_LEFT + BOX_WIDTH + 66

Point = tuple[float, float]


def port_at(kind: str, port: int) -> Point:
    """Return the centre of a port relative to the upper left corner of its machine. Unknown kinds are GW-Links."""
    lower, upper = BOX_HEIGHT - _INSET, _INSET
    if kind == CableKind.IPU_LINK:
        return _IPU_LINKS + _STEP * ((port - 1) % 4), lower if port <= 4 else upper
    if kind == CableKind.SYNC_LINK:
        return _SYNC_LINKS + _STEP * (port % 4), lower if port <= 3 else upper
    return _GW_LINKS, upper if port == 1 else lower


def ports() -> list[tuple[str, str, float, float]]:
    """Return the ports of a machine: CSS class of their kind, number, and position."""
    families = {"ipu": (CableKind.IPU_LINK, range(1, 9)), "sync": (CableKind.SYNC_LINK, range(8))}
    families["gw"] = CableKind.GW_LINK, range(1, 3)
    return [(name, str(port), *port_at(kind, port)) for name, (kind, all) in families.items() for port in all]


def ipus() -> list[Point]:
    """Return the upper left corners of the IPUs in a machine."""
    return [(_IPUS + _IPU_STEP * number, BOX_HEIGHT / 2 - 10) for number in range(IPUS_PER_MACHINE)]


class Elevation:
    """View of one rack from the cable side."""

    def __init__(self, agents: t.Sequence[str], units: t.Sequence[int | None] = (), shelves: int = 0) -> None:
        """``agents`` are listed from the lowest up.

        ``units`` are their heights in U, ``shelves`` is the number of other devices.
        """
        rows = _rows(units) if len(units) == len(agents) else None
        self._row = dict(zip(agents, rows or range(len(agents)), strict=True))
        self._order = {agent: number for number, agent in enumerate(agents)}
        self._top = 14 + shelves * SHELF + EDGE
        self._bottom = self._top + max(self._row.values(), default=0) * PITCH
        self.height = self._bottom + BOX_HEIGHT + EDGE

    def __contains__(self, agent: object) -> bool:
        return agent in self._row

    def box(self, agent: str) -> float:
        """Return the upper edge of a machine."""
        return self._bottom - self._row[agent] * PITCH

    def port(self, agent: str, kind: str, port: int) -> Point:
        """Return the centre of a port."""
        x, y = port_at(kind, port)
        return BOX_LEFT + x, self.box(agent) + y

    def line(self, lower: str, upper: str, kind: str, port: int, lane: int) -> tuple[str, Point]:
        """Return the path of a cable from the upper edge of a machine to the lower edge of another, and its centre.

        Neighbours are joined by a straight line, others by a lane on the right side of the rack.
        """
        x = self.port(lower, kind, port)[0]
        start, end = self.box(lower), self.box(upper) + BOX_HEIGHT
        if self._order[upper] == self._order[lower] + 1:
            return "M%g %gV%g" % (x, start, end), (x, (start + end) / 2)
        right, out = _LANES + _LANE * lane, 6 + 7 * lane
        path = "M%g %gV%gH%gV%gH%gV%g" % (x, start, start - out, right, end + out, x, end)
        return path, (right, (start + end) / 2)

    def stub(self, agent: str, kind: str, port: int) -> tuple[str, Point]:
        """Return the path of a cable that leaves the drawing to the right, and its centre."""
        x, y = self.port(agent, kind, port)
        start = x + _INSET if kind != CableKind.GW_LINK else BOX_LEFT + BOX_WIDTH
        return "M%g %gH%g" % (start, y, STUB), ((start + STUB) / 2 if kind != CableKind.GW_LINK else STUB - 8, y)

    def stray(self, one: ChassisPort, other: ChassisPort) -> str:
        """Return the path of a misplaced cable inside this rack."""
        (x, y), (to_x, to_y) = self.port(*one), self.port(*other)
        out, to_out = _outwards(*one[1:]), _outwards(*other[1:])
        if self._gap(one) != self._gap(other):
            return self._detour(one, other)
        reach = max(20.0 if out == to_out else 6.0, min(70.0, abs(to_y - y) / 3))
        bow = _BOW if x == to_x else 0  # avoids the ports between these two
        start, end = y + out * _RING, to_y + to_out * _RING
        curve = (x + bow, start + out * reach, to_x + bow, end + to_out * reach, to_x, end)
        return "%sM%g %gC%g %g %g %g %g %g%s" % (_ring(x, y), x, start, *curve, _ring(to_x, to_y))

    def _gap(self, end: ChassisPort) -> int:
        """Return the number of the gap between machines that a port faces."""
        order = self._order[end.agent]
        return order + 1 if _outwards(*end[1:]) < 0 else order

    def _detour(self, one: ChassisPort, other: ChassisPort) -> str:
        """Return the path of a misplaced cable that leaves both ports and crosses machines beside their ports."""
        lane = BOX_LEFT + _STRAY_LANE + 3 * (one.port % 4 - 1.5)
        ends = [(*self.port(*end), _outwards(*end[1:]), self._edge(end)) for end in (one, other)]
        (x, y, out, edge), (to_x, to_y, to_out, to_edge) = ends
        path = "M%g %gV%gH%gV%gH%gV%g" % (x, y + out * _RING, edge, lane, to_edge, to_x, to_y + to_out * _RING)
        return "%s%s%s" % (_ring(x, y), path, _ring(to_x, to_y))

    def _edge(self, end: ChassisPort) -> float:
        """Return the height at which a misplaced cable runs beside the machine of a port."""
        out = _outwards(*end[1:])
        return self.box(end.agent) + (BOX_HEIGHT if out > 0 else 0) + out * _BESIDE

    def stray_cable(self, end: ChassisPort) -> tuple[str, float]:
        """Return the path of a misplaced cable that leaves the drawing to the right, and its height there."""
        x, y = self.port(*end)
        out, height = _outwards(*end[1:]), self._edge(end)
        return "%sM%g %gV%gH%g" % (_ring(x, y), x, y + out * _RING, height, STUB), height


def _outwards(kind: str, port: int) -> int:
    """Return the direction from a port to the nearest edge of its machine: 1 down, -1 up."""
    return 1 if port_at(kind, port)[1] > BOX_HEIGHT / 2 else -1


def _ring(x: float, y: float) -> str:
    across = 2 * _RING
    return "M%g %ga%d %d 0 1 0 %d 0a%d %d 0 1 0 %d 0" % (x - _RING, y, _RING, _RING, across, _RING, _RING, -across)


def _rows(units: t.Sequence[int | None]) -> list[int] | None:
    """Return the height of each machine above the lowest in U, None when heights are unknown or impossible."""
    known = [unit for unit in units if unit is not None]
    if len(known) < len(units) or any(above <= below for below, above in itertools.pairwise(known)):
        return None
    return [unit - known[0] for unit in known]
