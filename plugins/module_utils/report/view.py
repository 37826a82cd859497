# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Content of the page of a rack report as plain data for the template. No I/O.

``view`` is the entry point of this package. ``vipu_info`` and ``runs`` validate its input, so other modules need no
checks.
"""

from __future__ import annotations

import datetime
import math
import typing as t
from collections.abc import Mapping

from ..pod import model, topology
from ..vipu.object_rules import IPUS_PER_MACHINE
from . import actions, drawing, machines, pdus
from . import racks as drawn
from .chassis_ports import Pair
from .clusters import Cluster
from .findings import FAILED, PASSED, SKIPPED, UNKNOWN, UNTESTED, WORDS, Findings, summary
from .owners import FILLS, Owners, fill

Run = t.Mapping[str, t.Any]
Runs: t.TypeAlias = "Run | t.Sequence[Run] | None"  # text, as pylint does not know the types of the names
_LINES = 8  # of the summary of a test that are visible at once
_CLUSTERS = 4  # names in the badge
_NOT_TESTED = "(not tested)"  # end of the summary's lines about connections of a machine that does not respond


def view(
    pod: model.Pod | None,
    info: t.Mapping[str, t.Any] | None,
    tests: Runs,
    readings: pdus.Readings | None = None,
    suffix: str = "",
    machines_shown: t.Collection[str] | None = None,
) -> dict[str, t.Any]:
    """Return the page of a POD. Each argument may be None. ``readings`` are those of its PDUs.

    ``tests`` are one run of tests, or several. Only the last one of each cluster counts.
    ``suffix`` is the end of all ids, for pages with several PODs. ``machines_shown`` limits racks, cables and IPUs to
    these agents; the other content must not have more.
    """
    info, readings = info or {}, readings or {}
    agents = {agent["id"]: agent for agent in info.get("agents") or ()}
    runs = last_runs(tests)
    clusters = _clusters(pod, info, runs)
    racks = drawn.racks(pod, clusters, agents, machines_shown)
    anchors: dict[Pair, str] = {}
    for cluster in clusters:
        run = next((each for each in runs if _is_of(each, cluster)), None)
        drawn.add_cables(racks, cluster, Findings(run), anchors, suffix)
    present = _clusters(None, info, ())
    owners = Owners(info, present)
    return {
        "suffix": suffix,
        "title": pod.name if pod else ", ".join(cluster.id for cluster in clusters) or "Cluster test",
        "verdict": _verdict(runs, [each.id for each in clusters]),
        "run": _run(runs),
        "figures": _figures("rack" if pod else "drawing", racks, info),
        "actions": [
            {"text": each.text, "targets": [anchors[cable] for cable in each.cables if cable in anchors]}
            for each in actions.of_runs(runs)
        ],
        "tests": [
            _test(result, run["cluster"] if len(runs) > 1 else None) for run in runs for result in run["results"]
        ],
        "problems": [*machines.problems(info), *_problems(readings)],
        "racks": drawn.page(racks, agents, owners, machines.celsius(info), readings),
        "maps": [owners.map(cluster, machines_shown) for cluster in present] if owners.reported else [],
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
        "machines": machines.table(info, runs),
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


def last_runs(tests: Runs) -> list[Run]:
    """Return the runs without a cluster, newest first, then the last run of each cluster, in the order of the clusters.

    A run without a time of its end counts as newer than all others: it still runs, or its source has no times.
    """
    runs = [tests] if isinstance(tests, Mapping) else list(tests or ())
    runs.sort(key=lambda run: math.inf if run["ended"] is None else run["ended"])
    last = {run["cluster"]: run for run in runs if run["cluster"]}
    return [run for run in reversed(runs) if not run["cluster"]] + [last[cluster] for cluster in sorted(last)]


def _clusters(pod: model.Pod | None, info: t.Mapping[str, t.Any], runs: t.Iterable[Run]) -> list[Cluster]:
    """Return the clusters as tested, else as reported by the controller, else as desired in the POD."""
    candidates: list[t.Mapping[str, t.Any]] = [{**run, "id": run["cluster"] or ""} for run in runs]
    candidates += info.get("clusters") or ()
    if pod:
        candidates += pod.desired()["clusters"]
    found: list[Cluster] = []
    taken: set[str] = set()
    names: set[str] = set()
    for each in candidates:
        agents = tuple(each.get("agents") or ())
        if each["id"] in names or not agents or not taken.isdisjoint(agents):
            continue
        taken.update(agents)
        names.update([each["id"]] if each["id"] else [])  # several runs may have no name of a cluster
        found.append(Cluster(each["id"], agents, each.get("num_ilds") or 1, each.get("topology") or topology.MESH))
    return found


def _is_of(run: Run, cluster: Cluster) -> bool:
    """Return whether a run tested a cluster. Without a name of the cluster, its agents decide."""
    if cluster.id:
        return bool(run["cluster"] == cluster.id)
    return not run["cluster"] and tuple(run.get("agents") or ()) == cluster.agents


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


def _test(result: t.Mapping[str, t.Any], cluster: str | None) -> dict[str, t.Any]:
    """Return a row of the table of tests; ``cluster`` is its cluster, where the table has several."""
    state = SKIPPED if result["skipped"] else (PASSED if result["ok"] else FAILED)
    # One dead machine has many connections that were not tested, so they are not among the visible lines.
    untested = [line for line in result["summary"] if line.endswith(_NOT_TESTED)]
    others = [line for line in result["summary"] if not line.endswith(_NOT_TESTED)]
    lines = {"lines": others[:_LINES], "more": others[_LINES:], "untested": untested}
    name = "%s of %s" % (result["test"], cluster) if cluster else result["test"]
    return {**result, **lines, "test": name, "state": state, "duration": "%.2f s" % result["duration"]}


def _verdict(tested: t.Sequence[Run], clusters: t.Iterable[str]) -> dict[str, str]:
    """Return the state and text of the badge. A run tests one of the ``clusters``, so it does not pass the others."""
    runs = [run for run in tested if run["state"] != "none"]
    if not runs:
        return {"state": UNTESTED, "text": "Not tested"}
    failed = [run for run in runs for result in run["results"] if not result["ok"] and not result["skipped"]]
    rejected = [run for run in runs if run["state"] == "finished" and not run["ok"] and run not in failed]
    unfinished = [run for run in runs if run["state"] != "finished"]
    several = len(runs) > 1
    of_failed = _of(run["cluster"] for run in (failed if several else ()))
    texts = ["%d test%s%s failed" % (len(failed), "" if len(failed) == 1 else "s", of_failed)] if failed else []
    texts += [
        "%s did not pass its tests" % ("Cluster %s" % run["cluster"] if several and run["cluster"] else "The cluster")
        for run in rejected
    ]
    texts += [_unfinished(run, _of([run["cluster"]] if several else ())) for run in unfinished]
    if texts:
        return {"state": FAILED if failed or rejected else UNTESTED, "text": ". ".join(texts)}
    passed = [run["cluster"] for run in runs]
    if all(passed) and (others := [id for id in clusters if id not in passed]):
        text = "Cluster%s %s passed. The report has no test of %s"
        return {"state": UNTESTED, "text": text % ("" if len(passed) == 1 else "s", _names(passed), _names(others))}
    skipped = any(result["disturbs"] or result["skipped_because"] for run in runs for result in run["results"])
    return {"state": PASSED, "text": "All tests that ran passed" if skipped else "All tests passed"}


def _of(clusters: t.Iterable[str | None]) -> str:
    """Return the end of a clause about tests of these clusters; none for those without a name."""
    ids = [id for id in dict.fromkeys(clusters) if id]
    return " of cluster%s %s" % ("" if len(ids) == 1 else "s", _names(ids)) if ids else ""


def _unfinished(run: Run, of: str) -> str:
    text = "The last test%s %s %s" % (of, "is" if run["state"] == "running" else "was", run["state"])
    return "%s: %s" % (text, run["error"].rstrip(".")) if run["error"] else text


def _names(ids: t.Sequence[str]) -> str:
    return ", ".join([*ids[:_CLUSTERS], *(["%d more" % (len(ids) - _CLUSTERS)] if len(ids) > _CLUSTERS else [])])


def _run(runs: t.Iterable[Run]) -> str:
    """Return clusters and times of the tests. The page has no other time, so equal input gives an equal page."""
    found = []
    for run in runs:
        if run.get("cluster") and run.get("ended"):
            ended = datetime.datetime.fromtimestamp(run["ended"], datetime.UTC)
            found.append("Cluster %s, tested on %s UTC" % (run["cluster"], ended.strftime("%Y-%m-%d %H:%M:%S")))
        elif run.get("cluster"):
            found.append("Cluster %s" % run["cluster"])
    return ". ".join(found)
