# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that the page of a rack report shows, as plain data: the template only lays it out. Pure."""

from __future__ import annotations

import datetime
import typing as t

from ..pod import model
from ..pod.topology import IPUS_PER_MACHINE, TORUS, Layout
from . import actions, drawing

PALETTE = 8  # colours, each with a pattern of its own; more partitions begin again, and all carry their names
_FEW = 2  # domains that are all shown open


def view(
    pod: model.Pod | None, info: t.Mapping[str, t.Any] | None, run: t.Mapping[str, t.Any] | None
) -> dict[str, t.Any]:
    """The page of a POD. Each of the three may be missing, but not all clusters with it."""
    info = info or {}
    clusters = _clusters(pod, info, run)
    todo = actions.actions(run)
    found = {
        cluster["id"]: drawing.Findings(run if run and run["cluster"] == cluster["id"] else None)
        for cluster in clusters
    }
    anchors: dict[tuple[str, str], str] = {}
    drawn = [_cluster(pod, info, cluster, found[cluster["id"]], anchors) for cluster in clusters]
    domains = [domain for cluster in drawn for domain in cluster["domains"]]
    for domain in domains:
        domain["open"] = domain["failed"] > 0 or len(domains) <= _FEW
    return {
        "title": pod.name if pod else ", ".join(cluster["id"] for cluster in clusters),
        "verdict": _verdict(run),
        "run": _run(run),
        "actions": [
            {"text": each.text, "targets": [anchors[cable] for cable in each.cables if cable in anchors]}
            for each in todo
        ],
        "tests": [_test(result) for result in (run or {}).get("results", ())],
        "clusters": drawn,
        "partitions": [
            {
                "id": each["id"],
                "allocation": each["allocation"],
                "size": each["size"],
                "state": each["state"],
                "look": look,
            }
            for each, look in zip(info.get("partitions") or (), _looks(info).values(), strict=True)
        ],
        "machines": _machines(info, run),
        "ports": drawing.ports(),
        "box": {"left": drawing.BOX_LEFT, "width": drawing.BOX_WIDTH, "height": drawing.BOX_HEIGHT},
        "shelf": drawing.SHELF,
        "width": drawing.WIDTH,
    }


def _clusters(pod: model.Pod | None, info: t.Mapping[str, t.Any], run: t.Any) -> list[dict[str, t.Any]]:
    """The clusters as the controller has them, else as they were tested, else as the POD wants them."""
    if info.get("clusters"):
        return [dict(cluster) for cluster in info["clusters"]]
    if run and run.get("agents"):
        return [
            {"id": run["cluster"], "agents": run["agents"], "num_ilds": run["num_ilds"], "topology": run["topology"]}
        ]
    if pod:
        return [
            {
                "id": cluster.id,
                "agents": [machine.agent for machine in cluster.machines],
                "num_ilds": cluster.num_ilds,
                "topology": cluster.topology,
            }
            for cluster in pod.clusters
        ]
    return []


def _cluster(
    pod: model.Pod | None,
    info: t.Mapping[str, t.Any],
    cluster: dict[str, t.Any],
    findings: drawing.Findings,
    anchors: dict[tuple[str, str], str],
) -> dict[str, t.Any]:
    agents, ilds = cluster["agents"], cluster["num_ilds"]
    layout = Layout(len(agents) // ilds, ilds, cluster["topology"])
    by_agent = {machine.agent: machine for machine in pod.machines} if pod else {}
    racks = {rack.name: rack for rack in pod.racks} if pod else {}
    domains = []
    for ild in range(ilds):
        own = agents[ild * layout.machines_per_ild : (ild + 1) * layout.machines_per_ild]
        names = list(dict.fromkeys(by_agent[agent].rack for agent in own if agent in by_agent))
        domains.append(_domain(layout, agents, own, ild, findings, [racks[each] for each in names], by_agent, info))
    for domain in domains:
        for cable in domain["cables"]:
            cable["id"] = "cable-%d" % (len(anchors) + 1)
            anchors[cable["key"]] = cable["id"]
    return {
        "id": cluster["id"],
        "topology": cluster["topology"],
        "machines": len(agents),
        "ilds": ilds,
        "domains": domains,
        "map": _map(info, cluster, layout) if "partitions" in info else [],
    }


def _domain(
    layout: Layout,
    agents: t.Sequence[str],
    own: t.Sequence[str],
    ild: int,
    findings: drawing.Findings,
    racks: t.Sequence[model.Rack],
    by_agent: t.Mapping[str, model.Machine],
    info: t.Mapping[str, t.Any],
) -> dict[str, t.Any]:
    shelves = [
        *(
            {"kind": "switch", "text": "%s · %s switch %s" % (each.name, each.kind, each.model)}
            for rack in racks
            for each in rack.switches
        ),
        *(
            {"kind": "server", "text": "%s · server (%s)" % (each.name, ", ".join(each.roles))}
            for rack in racks
            for each in rack.servers
        ),
    ]
    picture = drawing.Domain(own, layout.topology == TORUS, len(shelves))
    states = {agent["id"]: agent for agent in info.get("agents") or ()}
    cables = drawing.domain_cables(layout, agents, findings, ild, picture)
    cables += drawing.gw_cables(layout, agents, findings, ild, picture)
    failed = sum(cable.state == drawing.FAILED for cable in cables)
    return {
        "title": " and ".join(rack.name for rack in racks) or "IPU-Link domain %d" % (ild + 1),
        "cables": [cable._asdict() for cable in cables],
        "failed": failed,
        "height": picture.height,
        "shelves": shelves,
        "pdus": [pdu.name for rack in racks for pdu in rack.pdus],
        "boxes": [
            {
                "agent": agent,
                "y": picture.box(agent),
                "unit": by_agent[agent].rack_unit if agent in by_agent else None,
                "down": states.get(agent, {}).get("state") == "Down",
                "host": states.get(agent, {}).get("host", ""),
            }
            for agent in own
        ],
    }


def _looks(info: t.Mapping[str, t.Any]) -> dict[str, int]:
    """The colour and pattern of each partition."""
    return {each["id"]: number % PALETTE for number, each in enumerate(info.get("partitions") or ())}


def _map(info: t.Mapping[str, t.Any], cluster: dict[str, t.Any], layout: Layout) -> list[dict[str, t.Any]]:
    """The IPUs of every machine, from the top down, with what holds them."""
    looks = _looks(info)
    holders: dict[tuple[int, int], str] = {}
    for partition in info.get("partitions") or ():
        if partition.get("cluster") == cluster["id"]:
            for ipu in partition.get("ipus") or ():
                position = ipu["ild"] * layout.machines_per_ild + ipu["topology_id"] // IPUS_PER_MACHINE
                holders[position, ipu["topology_id"] % IPUS_PER_MACHINE] = partition["id"]
    allocation_of = {
        agent: allocation["id"] for allocation in info.get("allocations") or () for agent in allocation["agents"]
    }
    rows = []
    for position in reversed(range(len(cluster["agents"]))):
        agent = cluster["agents"][position]
        held = [holders.get((position, ipu)) for ipu in range(IPUS_PER_MACHINE)]
        rows.append(
            {
                "agent": agent,
                "allocation": allocation_of.get(agent),
                "ipus": [{"partition": id, "look": looks[id]} if id else None for id in held],
                "first": (position + 1) % layout.machines_per_ild == 0,  # of its domain, from the top down
            }
        )
    return rows


def _test(result: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    state = drawing.SKIPPED if result["skipped"] else (drawing.PASSED if result["ok"] else drawing.FAILED)
    return {**result, "state": state, "duration": "%.2f s" % result["duration"]}


def _verdict(run: t.Mapping[str, t.Any] | None) -> dict[str, str]:
    if not run or run["state"] == "none":
        return {"state": drawing.UNTESTED, "text": "Not tested"}
    if run["state"] != "finished":
        return {"state": drawing.UNTESTED, "text": "The last test is %s" % run["state"]}
    if run["ok"]:
        skipped = any(result["disturbs"] for result in run["results"])
        return {
            "state": drawing.PASSED,
            "text": "Everything that was tested is right" if skipped else "Everything is right",
        }
    failed = sum(1 for result in run["results"] if not result["ok"] and not result["skipped"])
    return {"state": drawing.FAILED, "text": "%d test%s failed" % (failed, "" if failed == 1 else "s")}


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
    usual = {title: max(set(told.values()), key=list(told.values()).count) for title, told in columns.items()}
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
