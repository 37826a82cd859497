# SPDX-License-Identifier: GPL-3.0-or-later
"""The rack report of many racks, with a test of each cable in it."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load
from ansible_collections.openipu.pod.plugins.plugin_utils.rack_report import render

from openipu.twin.generate import Shape

from .measure import Table, Target

MEGABYTE = 1_000_000


def bench_report(table: Table, rounds: int) -> None:
    """A page of 64 racks, beside one of a single rack."""
    large, page = _rendered(64, rounds)
    small, _ = _rendered(1, rounds)
    size = len(page.encode()) / MEGABYTE
    growth = f"one rack: {small * 1000:.0f} ms, so {large / small / 64:.2f} × per rack"
    table.add("report of 64 racks, 1024 machines: made", f"{large:.2f} s", growth, Target("≤ 3 s", 3), large)
    table.add("the same, size", f"{size:.1f} MB", "", Target("≤ 5 MB", 5), size)


def _rendered(racks: int, rounds: int) -> tuple[float, str]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        pod = load(str(Shape(racks=racks, partitions=4).write(Path(folder))))
    info = _info(pod)
    taken = []
    page = ""
    for _ in range(rounds):
        start = time.perf_counter()
        page = render(pod, info, None)
        taken.append(time.perf_counter() - start)
    return median(taken), page


def _info(pod: Any) -> dict[str, Any]:
    """What vipu_info would tell once the POD is up, with every IPU of its partitions."""
    wanted = pod.desired()
    agents_of = {cluster["id"]: cluster["agents"] for cluster in wanted["clusters"]}
    cluster_of = {each["id"]: each["cluster"] for each in wanted["allocations"]}
    first = dict.fromkeys(cluster_of, 0)
    partitions = []
    for each in wanted["partitions"]:
        start, size = first[each["allocation"]], each["size"]
        first[each["allocation"]] += size
        ipus = [{"ild": 0, "topology_id": start + number} for number in range(size)]
        partitions.append({**each, "cluster": cluster_of[each["allocation"]], "state": "ACTIVE", "ipus": ipus})
    return {
        "agents": [{**agent, "state": "Up"} for agent in wanted["agents"]],
        "clusters": wanted["clusters"],
        "allocations": [{**each, "agents": agents_of[each["cluster"]]} for each in wanted["allocations"]],
        "partitions": partitions,
        "ipu_attributes": {
            agent["id"]: {"0": {"firmware version": "2.4.4", "driver version": "1.0.58"}} for agent in wanted["agents"]
        },
    }
