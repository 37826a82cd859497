# SPDX-License-Identifier: GPL-3.0-or-later
"""Duration and size of the rack report of many racks."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from ansible_collections.openipu.pod.plugins.module_utils.report.page import render

from openipu.shared.pod.load import load
from openipu.twin.launch.generate import PodSize

from .measure import Table, Target

MEGABYTE = 1_000_000


def bench_report(table: Table, rounds: int) -> None:
    """Measure a report of 64 racks; peer: a report of one rack."""
    large, page = _render(64, rounds)
    small, _ = _render(1, rounds)
    size = len(page.encode()) / MEGABYTE
    growth = f"one rack {small * 1000:.0f} ms: {large / small / 64:.2f} × per rack"
    table.add("report of 64 racks, 1024 machines, duration", f"{large:.2f} s", growth, Target("≤ 3 s", 3), large)
    table.add("same, size", f"{size:.1f} MB", "", Target("≤ 5 MB", 5), size)


def _render(racks: int, rounds: int) -> tuple[float, str]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        pod = load(str(PodSize(racks=racks, partitions=4).write(Path(folder))))
    info = _info(pod)
    durations = []
    page = ""
    for _ in range(rounds):
        start = time.perf_counter()
        page = render(pod, info, None)
        durations.append(time.perf_counter() - start)
    return median(durations), page


def _info(pod: Any) -> dict[str, Any]:
    """Return the result of vipu_info for a running POD, with the IPUs of its partitions."""
    desired = pod.desired()
    cluster_agents = {cluster["id"]: cluster["agents"] for cluster in desired["clusters"]}
    allocation_clusters = {each["id"]: each["cluster"] for each in desired["allocations"]}
    next_ipu = dict.fromkeys(allocation_clusters, 0)
    partitions = []
    for each in desired["partitions"]:
        start, size = next_ipu[each["allocation"]], each["size"]
        next_ipu[each["allocation"]] += size
        ipus = [{"ild": 0, "topology_id": start + number} for number in range(size)]
        partitions.append({**each, "cluster": allocation_clusters[each["allocation"]], "state": "ACTIVE", "ipus": ipus})
    return {
        "agents": [{**agent, "state": "Up"} for agent in desired["agents"]],
        "clusters": desired["clusters"],
        "allocations": [{**each, "agents": cluster_agents[each["cluster"]]} for each in desired["allocations"]],
        "partitions": partitions,
        "ipu_attributes": {
            agent["id"]: {"0": {"firmware version": "2.4.4", "driver version": "1.0.58"}} for agent in desired["agents"]
        },
    }
