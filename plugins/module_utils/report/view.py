# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Content of the page of a rack report as plain data for the template. No I/O.

``view`` is the entry point of this package. ``vipu_info`` and ``runs`` validate its input, so other modules need no
checks.
"""

from __future__ import annotations

import datetime
import typing as t

from ..pod import model, topology
from ..vipu.object_rules import IPUS_PER_MACHINE
from . import actions, drawing, machines, pdus
from . import racks as drawn
from .chassis_ports import Pair
from .clusters import Cluster
from .findings import FAILED, PASSED, SKIPPED, UNKNOWN, UNTESTED, WORDS, Findings, summary
from .owners import FILLS, Owners, fill

_LINES = 8  # of the summary of a test that are visible at once
_CLUSTERS = 4  # names in the badge
_NOT_TESTED = "(not tested)"  # end of the summary's lines about connections of a machine that does not respond


def view(
    pod: model.Pod | None,
    info: t.Mapping[str, t.Any] | None,
    run: t.Mapping[str, t.Any] | None,
    readings: pdus.Readings | None = None,
    suffix: str = "",
) -> dict[str, t.Any]:
    """Return the page of a POD. Each argument may be None. ``readings`` are those of its PDUs.

    ``suffix`` is the end of all ids, for pages with several PODs.
    """
    info, readings = info or {}, readings or {}
    agents = {agent["id"]: agent for agent in info.get("agents") or ()}
    clusters = _clusters(pod, info, run)
    racks = drawn.racks(pod, clusters, agents)
    anchors: dict[Pair, str] = {}
    for cluster in clusters:
        drawn.add_cables(
            racks, cluster, Findings(run if run and (run["cluster"] or "") == cluster.id else None), anchors, suffix
        )
    present = _clusters(None, info, None)
    owners = Owners(info, present)
    return {
        "suffix": suffix,
        "title": pod.name if pod else ", ".join(cluster.id for cluster in clusters) or "Cluster test",
        "verdict": _verdict(run, [each.id for each in clusters]),
        "run": _run(run),
        "figures": _figures("rack" if pod else "drawing", racks, info),
        "actions": [
            {"text": each.text, "targets": [anchors[cable] for cable in each.cables if cable in anchors]}
            for each in actions.actions(run)
        ],
        "tests": [_test(result) for result in (run or {}).get("results", ())],
        "problems": [*machines.problems(info), *_problems(readings)],
        "racks": drawn.page(racks, agents, owners, machines.celsius(info), readings),
        "maps": [owners.map(cluster) for cluster in present] if owners.reported else [],
        "partitions": [
            {
                "id": each["id"],
                "allocation": each.get("allocation"),
                "size": each.get("size"),
                "state": each.get("state"),
                "fill": owners.fill(each["id"]),
            }
            for each in owners.partitions
        ],
        "fills": [fill(number) for number in range(min(FILLS, len(owners.partitions)))],
        "machines": machines.table(info, run),
        "pdus": pdus.table(readings),
        "states": {state: WORDS.get(state, state) for state in (PASSED, FAILED, SKIPPED, UNKNOWN, UNTESTED)},
        "ports": drawing.ports(),
        "ipus": drawing.ipus(),
        "size": {
            "width": drawing.WIDTH,
            "left": drawing.BOX_LEFT,
            "box": drawing.BOX_WIDTH,
            "high": drawing.BOX_HEIGHT,
            "shelf": drawing.SHELF,
            "rail": drawing.RAIL,
            "stub": drawing.STUB,
            "band": drawing.BAND,
            "band_left": drawing.BAND_LEFT,
        },
    }


def _clusters(pod: model.Pod | None, info: t.Mapping[str, t.Any], run: t.Any) -> list[Cluster]:
    """Return the clusters as tested, else as reported by the controller, else as desired in the POD."""
    candidates = [{**run, "id": run["cluster"] or ""}] if run else []
    candidates += info.get("clusters") or ()
    if pod:
        candidates += pod.desired()["clusters"]
    found: dict[str, Cluster] = {}
    taken: set[str] = set()
    for each in candidates:
        agents = tuple(each.get("agents") or ())
        if each["id"] in found or not agents or not taken.isdisjoint(agents):
            continue
        taken.update(agents)
        found[each["id"]] = Cluster(
            each["id"], agents, each.get("num_ilds") or 1, each.get("topology") or topology.MESH
        )
    return list(found.values())


def _figures(place: str, racks: t.Sequence[drawn.Rack], info: t.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """Return the figures of the POD."""
    machines = sum(len(rack.agents) for rack in racks)
    states = [cable["state"] for rack in racks for cable in rack.cables if not cable["far"]]
    where = "in %d %s%s" % (len(racks), place, "" if len(racks) == 1 else "s")
    found = [
        {"name": "IPU-Machines", "number": machines, "text": where},
        {
            "name": "cables",
            "number": len(states),
            "text": summary(states),
        },
    ]
    if info.get("partitions") is not None:
        used = sum(len(each.get("ipus") or ()) or each.get("size") or 0 for each in info["partitions"])
        text = "on %d of %d IPUs" % (used, machines * IPUS_PER_MACHINE)
        found.append({"name": "partitions", "number": len(info["partitions"]), "text": text})
    return found


def _problems(readings: pdus.Readings) -> list[str]:
    return ["PDU %s: %s" % (name, text) for name, reading in readings.items() for text in pdus.problems(reading)]


def _test(result: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    state = SKIPPED if result["skipped"] else (PASSED if result["ok"] else FAILED)
    # One dead machine has many connections that were not tested, so they are not among the visible lines.
    untested = [line for line in result["summary"] if line.endswith(_NOT_TESTED)]
    others = [line for line in result["summary"] if not line.endswith(_NOT_TESTED)]
    lines = {"lines": others[:_LINES], "more": others[_LINES:], "untested": untested}
    return {**result, **lines, "state": state, "duration": "%.2f s" % result["duration"]}


def _verdict(run: t.Mapping[str, t.Any] | None, clusters: t.Iterable[str]) -> dict[str, str]:
    """Return the state and text of the badge. A run tests one of the ``clusters``, so it does not pass the others."""
    if not run or run["state"] == "none":
        return {"state": UNTESTED, "text": "Not tested"}
    failed = sum(1 for result in run["results"] if not result["ok"] and not result["skipped"])
    if failed:
        return {"state": FAILED, "text": "%d test%s failed" % (failed, "" if failed == 1 else "s")}
    if run["state"] != "finished":
        text = "The last test %s %s" % ("is" if run["state"] == "running" else "was", run["state"])
        return {"state": UNTESTED, "text": "%s: %s" % (text, run["error"]) if run["error"] else text}
    if not run["ok"]:
        return {"state": FAILED, "text": "The cluster did not pass its tests"}
    if others := [id for id in clusters if run["cluster"] and id != run["cluster"]]:
        names = [*others[:_CLUSTERS], *(["%d more" % (len(others) - _CLUSTERS)] if len(others) > _CLUSTERS else [])]
        text = "Cluster %s passed. The report has no test of %s" % (run["cluster"], ", ".join(names))
        return {"state": UNTESTED, "text": text}
    skipped = any(result["disturbs"] for result in run["results"])
    return {"state": PASSED, "text": "All tests that ran passed" if skipped else "All tests passed"}


def _run(run: t.Mapping[str, t.Any] | None) -> str:
    """Return cluster and time of the test. The page has no other time, so equal input gives an equal page."""
    if not run or not run.get("cluster"):
        return ""
    if not run.get("ended"):
        return "Cluster %s" % run["cluster"]
    ended = datetime.datetime.fromtimestamp(run["ended"], datetime.UTC)
    return "Cluster %s, tested on %s UTC" % (run["cluster"], ended.strftime("%Y-%m-%d %H:%M:%S"))
