# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that the page of a rack report shows, as plain data: the template only lays it out. Pure."""

from __future__ import annotations

import datetime
import typing as t
from collections import Counter
from itertools import groupby

from ..pod import model, topology
from ..pod.topology import IPUS_PER_MACHINE
from . import actions, drawing
from . import racks as drawn
from .ends import Pair
from .findings import FAILED, PASSED, SKIPPED, UNTESTED, WORDS, Findings

PALETTE = 8  # colours, each with a pattern of its own; more partitions begin again, and all carry their names


def view(
    pod: model.Pod | None, info: t.Mapping[str, t.Any] | None, run: t.Mapping[str, t.Any] | None
) -> dict[str, t.Any]:
    """The page of a POD, of which any part may be missing."""
    info = info or {}
    agents = {agent["id"]: agent for agent in info.get("agents") or ()}
    clusters = _clusters(pod, info, run)
    racks = drawn.racks(pod, clusters, agents)
    anchors: dict[Pair, str] = {}
    for cluster in clusters:
        drawn.lay(racks, cluster, Findings(run if run and (run["cluster"] or "") == cluster.id else None), anchors)
    looks = _looks(info)
    present = _clusters(None, info, None)
    holders = _holders(info, present)
    held = {agent: [None if id is None else looks[id] for id in ids] for agent, ids in holders.items()}
    return {
        "title": pod.name if pod else ", ".join(cluster.id for cluster in clusters) or "Cluster test",
        "verdict": _verdict(run),
        "run": _run(run),
        "figures": _figures("rack" if pod else "drawing", racks, info),
        "actions": [
            {"text": each.text, "targets": [anchors[cable] for cable in each.cables if cable in anchors]}
            for each in actions.actions(run)
        ],
        "tests": [_test(result) for result in (run or {}).get("results", ())],
        "racks": drawn.page(racks, agents, held),
        "maps": [_map(info, cluster, holders, looks) for cluster in present] if "partitions" in info else [],
        "partitions": [
            {
                "id": each["id"],
                "allocation": each.get("allocation"),
                "size": each.get("size"),
                "state": each.get("state"),
                "look": looks[each["id"]],
            }
            for each in info.get("partitions") or ()
        ],
        "looks": range(min(PALETTE, len(looks))),
        "machines": _machines(info, run),
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
        },
    }


def _clusters(pod: model.Pod | None, info: t.Mapping[str, t.Any], run: t.Any) -> list[drawn.Cluster]:
    """The clusters as they were tested, else as the controller has them, else as the POD wants them."""
    told = [{**run, "id": run["cluster"] or ""}] if run else []
    told += info.get("clusters") or ()
    if pod:
        told += pod.desired()["clusters"]
    found: dict[str, drawn.Cluster] = {}
    taken: set[str] = set()
    for each in told:
        agents = tuple(each.get("agents") or ())
        if each["id"] in found or not agents or not taken.isdisjoint(agents):
            continue
        taken.update(agents)
        found[each["id"]] = drawn.Cluster(
            each["id"], agents, each.get("num_ilds") or 1, each.get("topology") or topology.MESH
        )
    return list(found.values())


def _figures(place: str, racks: t.Sequence[drawn.Rack], info: t.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """The whole POD in a few numbers."""
    machines = sum(len(rack.agents) for rack in racks)
    states = Counter(cable["state"] for rack in racks for cable in rack.cables if not cable["far"])
    where = "in %d %s%s" % (len(racks), place, "" if len(racks) == 1 else "s")
    found = [
        {"name": "IPU-Machines", "number": machines, "text": where},
        {
            "name": "cables",
            "number": sum(states.values()),
            "text": ", ".join("%d %s" % (count, WORDS.get(state, state)) for state, count in sorted(states.items())),
        },
    ]
    if "partitions" in info:
        used = sum(len(each.get("ipus") or ()) or each.get("size") or 0 for each in info["partitions"])
        text = "on %d of %d IPUs" % (used, machines * IPUS_PER_MACHINE)
        found.append({"name": "partitions", "number": len(info["partitions"]), "text": text})
    return found


def _looks(info: t.Mapping[str, t.Any]) -> dict[str, int]:
    """The colour and pattern of each partition."""
    return {each["id"]: number % PALETTE for number, each in enumerate(info.get("partitions") or ())}


def _holders(info: t.Mapping[str, t.Any], clusters: t.Sequence[drawn.Cluster]) -> dict[str, list[str | None]]:
    """The partition of every IPU of every machine."""
    cluster_of = {each["id"]: each.get("cluster") for each in info.get("allocations") or ()}
    found: dict[str, list[str | None]] = {}
    for cluster in clusters:
        found.update((agent, [None] * IPUS_PER_MACHINE) for agent in cluster.agents)
        for partition in info.get("partitions") or ():
            if (partition.get("cluster") or cluster_of.get(partition.get("allocation"))) == cluster.id:
                for ipu in partition.get("ipus") or ():
                    position = ipu["ild"] * cluster.layout.machines_per_ild + ipu["topology_id"] // IPUS_PER_MACHINE
                    if 0 <= position < len(cluster.agents):
                        found[cluster.agents[position]][ipu["topology_id"] % IPUS_PER_MACHINE] = partition["id"]
    return found


def _map(
    info: t.Mapping[str, t.Any],
    cluster: drawn.Cluster,
    holders: t.Mapping[str, t.Sequence[str | None]],
    looks: t.Mapping[str, int],
) -> dict[str, t.Any]:
    """The IPUs of every machine, from the top down, with what holds them; neighbours that one holds are one cell."""
    allocation_of = {
        agent: allocation["id"]
        for allocation in info.get("allocations") or ()
        for agent in allocation.get("agents") or ()
    }
    size = cluster.layout.machines_per_ild
    rows = []
    for position, agent in reversed(list(enumerate(cluster.agents))):
        cells = [
            {"partition": id, "look": None if id is None else looks[id], "count": len(list(same))}
            for id, same in groupby(holders[agent])
        ]
        first = (position + 1) % size == 0  # of its domain, from the top down
        rows.append({"agent": agent, "allocation": allocation_of.get(agent), "cells": cells, "first": first})
    # A listing need not tell which IPUs a partition has: then nobody knows which are free.
    known = all(partition.get("ipus") for partition in info["partitions"])
    return {"id": cluster.id, "rows": rows, "rest": "free" if known else "not told"}


def _test(result: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    state = SKIPPED if result["skipped"] else (PASSED if result["ok"] else FAILED)
    return {**result, "state": state, "duration": "%.2f s" % result["duration"]}


def _verdict(run: t.Mapping[str, t.Any] | None) -> dict[str, str]:
    if not run or run["state"] == "none":
        return {"state": UNTESTED, "text": "Not tested"}
    if run["state"] != "finished":
        return {"state": UNTESTED, "text": "The last test is %s" % run["state"]}
    if run["ok"]:
        skipped = any(result["disturbs"] for result in run["results"])
        return {
            "state": PASSED,
            "text": "Everything that was tested is right" if skipped else "Everything is right",
        }
    failed = sum(1 for result in run["results"] if not result["ok"] and not result["skipped"])
    return {"state": FAILED, "text": "%d test%s failed" % (failed, "" if failed == 1 else "s")}


def _run(run: t.Mapping[str, t.Any] | None) -> str:
    """Of what and when the test was; no other time is told, so that the same input gives the same page."""
    if not run or not run.get("cluster"):
        return ""
    if not run.get("ended"):
        return "Cluster %s" % run["cluster"]
    ended = datetime.datetime.fromtimestamp(run["ended"], datetime.UTC)
    return "Cluster %s, tested on %s UTC" % (run["cluster"], ended.strftime("%Y-%m-%d %H:%M:%S"))


def _machines(info: t.Mapping[str, t.Any], run: t.Mapping[str, t.Any] | None) -> dict[str, t.Any]:
    """A table of versions, as far as attributes of IPUs and the version test tell them."""
    mixed = {
        failure["component"]: failure["versions"]
        for result in (run or {}).get("results", ())
        for failure in result["failures"]
        if failure["kind"] == "version"
    }
    attributes = info.get("ipu_attributes") or {}
    agents = [agent["id"] for agent in info.get("agents") or ()] or list((run or {}).get("agents") or ())
    if not info.get("agents") and not mixed:
        return {"columns": [], "rows": []}
    columns: dict[str, dict[str, str]] = {}
    for title, name in (("IPU firmware", "firmware version"), ("Driver", "driver version")):
        told = {agent: ipus["0"][name] for agent, ipus in attributes.items() if name in ipus.get("0", {})}
        if told:
            columns[title] = told
    columns.update(mixed)
    states = {agent["id"]: agent for agent in info.get("agents") or ()}
    usual = {title: Counter(told.values()).most_common(1)[0][0] for title, told in columns.items()}
    return {
        "columns": list(columns),
        "rows": [
            {
                "agent": agent,
                "state": states.get(agent, {}).get("state", ""),
                "host": states.get(agent, {}).get("host", ""),
                "cells": [
                    {"text": told.get(agent, ""), "odd": agent in told and told[agent] != usual[title]}
                    for title, told in columns.items()
                ],
            }
            for agent in agents
        ],
    }
