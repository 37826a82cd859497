# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drawn racks with their devices and the cables of all clusters. No I/O."""

from __future__ import annotations

import typing as t

from ..pod import model
from ..pod.topology import IPU_LINK_UP, SYNC_LINK_UP, Cable, CableKind
from ..vipu.cluster_test.cable_names import cable_name
from . import drawing
from .chassis_ports import ChassisPort, Pair, pair
from .clusters import Cluster
from .findings import FAILED, Findings, summary
from .machines import HOT_CELSIUS
from .owners import Owners
from .pdus import Readings, problems

_FEW = 2  # number of racks up to which all are shown open
_LETTER = 7.5  # width of a letter on a band or rail, in units of the drawing
_LETTERS = 24  # of the label on a rail
_RAIL_TOP, _OUTLETS_TOP = 18, 76  # where the name on a rail starts, and its outlets
_LANES = {CableKind.IPU_LINK: IPU_LINK_UP, CableKind.SYNC_LINK: SYNC_LINK_UP}


class Rack:
    """One rack, or machines without a known rack."""

    def __init__(self, title: str, agents: t.Sequence[str], rack: model.Rack | None = None) -> None:
        """``agents`` are listed from the lowest up."""
        self.title = title
        self.agents = agents
        self.shelves = _shelves(rack) if rack else []
        self.pdus = rack.pdus if rack else ()  # in the order of the POD
        self.units = {machine.agent: machine.rack_unit for machine in rack.machines} if rack else {}
        units = [self.units.get(agent) for agent in agents]
        self.elevation = drawing.Elevation(agents, units, len(self.shelves))
        self.cables: list[dict[str, t.Any]] = []


def _shelves(rack: model.Rack) -> list[str]:
    """Return the devices above the machines, from the top down."""
    shelves: list[tuple[model.Switch | model.Server, str]]
    shelves = [(each, "%s switch %s" % (each.kind, each.model)) for each in rack.switches]
    shelves += [(each, "server (%s)" % ", ".join(each.roles)) for each in rack.servers]
    return ["%s · %s%s" % (each.name, text, _mark(each)) for each, text in shelves]


def _mark(device: model.Switch | model.Server | model.Pdu) -> str:
    return "" if device.managed else " · unmanaged"


def racks(
    pod: model.Pod | None,
    clusters: t.Sequence[Cluster],
    others: t.Iterable[str] = (),
    shown: t.Collection[str] | None = None,
) -> list[Rack]:
    """Return the racks of the POD, one rack per domain of other machines, and one rack with ``others``.

    With ``shown``, all other machines are omitted.
    """
    known = pod.racks if pod else ()
    found = [Rack(rack.name, [machine.agent for machine in rack.machines], rack) for rack in known]
    placed = {agent for rack in found for agent in rack.agents}
    for cluster in clusters:
        size = cluster.layout.machines_per_ild
        for ild in range(cluster.num_ilds):
            domain = cluster.agents[ild * size : (ild + 1) * size]
            agents = [agent for agent in domain if agent not in placed and (shown is None or agent in shown)]
            if agents:
                name = "Cluster %s" % cluster.id
                found.append(Rack(name if cluster.num_ilds == 1 else "%s, domain %d" % (name, ild + 1), agents))
                placed.update(agents)
    alone = [agent for agent in others if agent not in placed]
    return [*found, Rack("In no rack and no cluster", alone)] if alone else found


def add_cables(
    racks: t.Sequence[Rack], cluster: Cluster, findings: Findings, anchors: dict[Pair, str], suffix: str = ""
) -> None:
    """Add the cables of a cluster to the racks, and their ids in the page to ``anchors``, each with ``suffix``.

    A cable between racks is drawn in both. Misplaced cables are also drawn at their actual ports. Cables of machines
    in no rack are omitted.
    """
    where = {agent: rack for rack in racks for agent in rack.agents}
    for cable in cluster.layout.cables():
        a, b = (ChassisPort(cluster.agents[end.position], cable.kind.value, end.port) for end in (cable.a, cable.b))
        if a.agent not in where or b.agent not in where:
            continue
        rack, far_rack = where[a.agent], where[b.agent]
        key = pair(a, b)
        id = anchors[key] = "cable-%d%s" % (len(anchors) + 1, suffix)
        state, reason = findings.of(cable.kind, key)
        common = {
            "id": id,
            "family": "sync" if cable.kind is CableKind.SYNC_LINK else "",
            "state": state,
            "label": "%s cable %s: %s" % (cable.kind, cable_name(a, b), reason),
        }
        drawn = {rack: {**common, "far": False, "strays": [], **_shape(rack, far_rack, cable, a, b)}}
        rack.cables.append(drawn[rack])
        if drawn[rack]["stub"]:
            path, mark = far_rack.elevation.stub(*b)
            far = {**common, "far": True, "strays": [], "path": path, "mark": mark, "stub": str(a)}
            drawn.setdefault(far_rack, far)
            far_rack.cables.append(far)
        for stray in findings.strays(key):
            for place, line in _misplaced(where, *stray):
                if place not in drawn:
                    drawn[place] = {**common, "far": True, "strays": [], "path": "", "mark": None, "stub": ""}
                    place.cables.append(drawn[place])
                drawn[place]["strays"].append(line)


def _misplaced(
    where: t.Mapping[str, Rack], one: ChassisPort, other: ChassisPort
) -> t.Iterator[tuple[Rack, dict[str, t.Any]]]:
    """Yield a misplaced cable in each of its racks."""
    rack, far_rack = where.get(one.agent), where.get(other.agent)
    if rack and rack is far_rack:
        yield rack, {"path": rack.elevation.stray(one, other), "stub": "", "y": 0}
        return
    for place, end, stub in ((rack, one, "→ %s" % str(other)), (far_rack, other, "← %s" % str(one))):
        if place:
            path, y = place.elevation.stray_cable(end)
            yield place, {"path": path, "stub": stub, "y": y}


def _shape(rack: Rack, far_rack: Rack, cable: Cable, a: ChassisPort, b: ChassisPort) -> dict[str, t.Any]:
    """Return the line of a cable; ``stub`` is the label at its end when it leaves the drawing."""
    if rack is far_rack and cable.kind is not CableKind.GW_LINK:
        path, mark = rack.elevation.line(a[0], b[0], a[1], a[2], _LANES[cable.kind].index(a[2]))
        return {"path": path, "mark": mark, "stub": ""}
    path, mark = rack.elevation.stub(*a)
    return {"path": path, "mark": mark, "stub": str(b)}


def _below(agent: t.Mapping[str, t.Any], celsius: float | None) -> str:
    """Return the text below the name of a machine: its problem, else its address."""
    if agent.get("state") == "Down":
        return "✕ down"
    if celsius is not None and celsius > HOT_CELSIUS:
        return "✕ hot, %g °C" % celsius
    return str(agent.get("host") or "")


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def page(
    racks: t.Sequence[Rack],
    states: t.Mapping[str, t.Mapping[str, t.Any]],
    owners: Owners,
    celsius: t.Mapping[str, float],
    pdus: Readings,
) -> list[dict[str, t.Any]]:
    """Return the racks as plain data.

    ``states`` are the agents that the controller reported, ``celsius`` their highest temperatures.
    """
    found = []
    for rack in racks:
        verdicts = {
            cable["id"]: cable["state"] for cable in rack.cables
        }  # by id, because both ends may be in this rack
        failed = sum(state == FAILED for state in verdicts.values())
        stops = _stops(rack.cables)
        rails = [_rail(pdu, pdus) for pdu in rack.pdus]
        boxes = [
            {
                "agent": agent,
                "name": _short(agent, 14),
                "below": _short(_below(states.get(agent, {}), celsius.get(agent)), 17),
                "host": states.get(agent, {}).get("host") or "",
                "y": rack.elevation.box(agent),
                "unit": rack.units.get(agent),
                "down": states.get(agent, {}).get("state") == "Down",
                "hot": celsius.get(agent, 0) > HOT_CELSIUS,
                "ipus": owners.fills(agent),
            }
            for agent in rack.agents
        ]
        found.append(
            {
                "title": rack.title,
                "height": rack.elevation.height,
                "shelves": rack.shelves,
                "pdus": rails,
                "boxes": boxes,
                "bands": [_band(rack, band) for band in owners.bands(rack.agents) if band["allocation"] is not None],
                "cables": [{**cable, "stop": number in stops} for number, cable in enumerate(rack.cables)],
                "failed": failed,
                "summary": summary(verdicts.values()),
                "open": bool(failed)
                or len(racks) <= _FEW
                or any(box["down"] or box["hot"] for box in boxes)
                or any(rail["problems"] for rail in rails),
            }
        )
    return found


def _rail(pdu: model.Pdu, pdus: Readings) -> dict[str, t.Any]:
    """Return a PDU with its label and problems; ``end`` is where the label ends and ``outlets`` where they start."""
    found = problems(pdus[pdu.name]) if pdu.name in pdus else []
    mark = _mark(pdu)
    label = _short("✕ %s" % pdu.name if found else pdu.name, _LETTERS - len(mark)) + mark
    end = max(_OUTLETS_TOP - 12, int(_RAIL_TOP + _LETTER * len(label)))
    return {"name": pdu.name + mark, "label": label, "end": end, "outlets": end + 12, "problems": found}


def _stops(cables: t.Sequence[dict[str, t.Any]]) -> set[int]:
    """Return the cables in the tab order: failed ones, else the first. Arrow keys reach the others."""
    failed: dict[str, int] = {}
    for number, cable in enumerate(cables):
        if cable["state"] == FAILED:
            failed.setdefault(cable["id"], number)
    return set(failed.values()) or {0}


def _band(rack: Rack, band: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the band next to the machines of an allocation."""
    lowest, highest = (rack.elevation.box(band["agents"][number]) for number in (0, -1))
    height = lowest - highest + drawing.BOX_HEIGHT
    name = band["allocation"]
    return {
        "name": name,
        "short": _short(name, int(height / _LETTER)),
        "border": band["border"],
        "y": highest,
        "height": height,
    }
