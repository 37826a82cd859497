# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""IPU-Machines that partitions use, from the results of vipu_info and vipu_partition_info. No I/O."""

from __future__ import annotations

import typing as t

from .vipu.object_rules import IPUS_PER_MACHINE

Row = t.Mapping[str, t.Any]


def agents_of(partition: Row, seen: Row) -> list[str]:
    """Return the agents of the machines of a partition; all possible ones when its IPUs are unknown.

    ``seen`` has the agents, clusters and allocations of vipu_info.
    """
    cluster = _find(seen, "clusters", partition.get("cluster"))
    if cluster and partition.get("ipus"):
        per_ild = machines_per_ild(cluster)
        places = {ipu["ild"] * per_ild + ipu["topology_id"] // IPUS_PER_MACHINE for ipu in partition["ipus"]}
        return [agent for place, agent in enumerate(cluster["agents"]) if place in places]
    owner = _find(seen, "allocations", partition.get("allocation")) or cluster
    return list(owner["agents"]) if owner else [row["id"] for row in seen["agents"]]


def partitions_by_agent(seen: Row) -> dict[str, list[str]]:
    """Return the ids of the partitions on the machine of each agent. ``seen`` also has the partitions."""
    found: dict[str, list[str]] = {row["id"]: [] for row in seen["agents"]}
    for partition in seen.get("partitions") or ():
        for agent in agents_of(partition, seen):
            found.setdefault(agent, []).append(partition["id"])
    return found


def machines_per_ild(cluster: Row) -> int:
    """Return the number of machines in each IPU-Link domain of a cluster."""
    return max(1, len(cluster["agents"]) // (cluster.get("num_ilds") or 1))


def _find(seen: Row, kind: str, id: str | None) -> Row | None:
    return next((row for row in seen.get(kind) or () if row["id"] == id), None)
