# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Partitions and allocations by IPU, and the fills and borders that distinguish them. No I/O."""

from __future__ import annotations

import typing as t
from itertools import groupby

from ..vipu.object_rules import IPUS_PER_MACHINE

if t.TYPE_CHECKING:
    from .clusters import Cluster

COLOURS = 8  # and as many patterns, so that neighbours differ without colours too
FILLS = COLOURS * COLOURS  # with more partitions, fills repeat; names are shown where there is room
BORDERS = 4  # line styles around allocations

Reported = t.Mapping[str, t.Any]


def fill(number: int) -> dict[str, int]:
    """Return colour and pattern of a partition; neighbours in the list differ in both."""
    return {"colour": number % COLOURS, "pattern": (number + number // COLOURS) % COLOURS}


class Owners:
    """Allocations and partitions that a controller reported."""

    def __init__(self, info: Reported, clusters: t.Sequence[Cluster]) -> None:
        """``clusters`` is the current state."""
        self.reported = info.get("partitions") is not None
        self.partitions: t.Sequence[Reported] = info.get("partitions") or ()
        self.allocations: t.Sequence[Reported] = info.get("allocations") or ()
        self._fills = {each["id"]: number % FILLS for number, each in enumerate(self.partitions)}
        self._borders = {each["id"]: number % BORDERS for number, each in enumerate(self.allocations)}
        self._allocation = {agent: each["id"] for each in self.allocations for agent in each.get("agents") or ()}
        self._holders: dict[str, list[str | None]] = {}
        for cluster in clusters:
            self._assign_ipus(cluster)

    def _assign_ipus(self, cluster: Cluster) -> None:
        self._holders.update((agent, [None] * IPUS_PER_MACHINE) for agent in cluster.agents)
        for partition in self._partitions_of(cluster):
            for ipu in partition.get("ipus") or ():
                position = ipu["ild"] * cluster.layout.machines_per_ild + ipu["topology_id"] // IPUS_PER_MACHINE
                if 0 <= position < len(cluster.agents):
                    self._holders[cluster.agents[position]][ipu["topology_id"] % IPUS_PER_MACHINE] = partition["id"]

    def _partitions_of(self, cluster: Cluster) -> t.Iterator[Reported]:
        """Yield the partitions of a cluster."""
        cluster_of = {each["id"]: each.get("cluster") for each in self.allocations}
        for partition in self.partitions:
            if (partition.get("cluster") or cluster_of.get(partition.get("allocation"))) == cluster.id:
                yield partition

    def fill(self, partition: str) -> int:
        """Return the number of the fill of a partition."""
        return self._fills[partition]

    def fills(self, agent: str) -> list[int | None]:
        """Return the fills of the IPUs of a machine in order, None for free ones."""
        return [None if id is None else self._fills[id] for id in self._holders.get(agent, [None] * IPUS_PER_MACHINE)]

    def bands(self, agents: t.Iterable[str]) -> list[dict[str, t.Any]]:
        """Return groups of neighbours in the same allocation, or in none."""
        return [
            {"allocation": id, "border": self._borders.get(id or ""), "agents": list(same)}
            for id, same in groupby(agents, self._allocation.get)
        ]

    def map(self, cluster: Cluster, shown: t.Collection[str] | None = None) -> dict[str, t.Any]:
        """Return the IPUs of all machines, or of ``shown``, from the top down.

        Neighbours in one partition are one cell.
        """
        # Partitions without reported IPUs may have any IPUs of their allocation.
        unlocated = [each for each in self._partitions_of(cluster) if not each.get("ipus")]
        where = {each.get("allocation") for each in unlocated}
        size = cluster.layout.machines_per_ild
        last = set(cluster.agents[size - 1 :: size])  # the top machine of each domain
        rows = []
        for band in self.bands(agent for agent in reversed(cluster.agents) if shown is None or agent in shown):
            free = "unknown" if None in where or band["allocation"] in where else "free"
            for number, agent in enumerate(band["agents"]):
                cells = [
                    {"text": id or free, "fill": None if id is None else self._fills[id], "count": len(list(same))}
                    for id, same in groupby(self._holders[agent])
                ]
                # One cell for the whole band, in its first row.
                start = {**band, "count": len(band["agents"])} if number == 0 else None
                rows.append({"agent": agent, "band": start, "cells": cells, "first": agent in last})
        return {"id": cluster.id, "rows": rows, "unlocated": [each["id"] for each in unlocated]}
