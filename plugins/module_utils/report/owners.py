# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has which IPU, and how partitions and allocations are told apart. Pure."""

from __future__ import annotations

import typing as t
from itertools import groupby

from ..pod.topology import IPUS_PER_MACHINE

if t.TYPE_CHECKING:
    from .racks import Cluster

COLOURS = 8  # and as many patterns, so that colours are not needed to tell neighbours apart
LOOKS = COLOURS * COLOURS  # more partitions begin again; wherever there is room, their names are told
BORDERS = 4  # kinds of lines around allocations

Told = t.Mapping[str, t.Any]


def look(number: int) -> dict[str, int]:
    """The colour and the pattern of a partition: neighbours in the list have neither in common."""
    return {"colour": number % COLOURS, "pattern": (number + number // COLOURS) % COLOURS}


class Owners:
    """What a controller told of allocations and partitions."""

    def __init__(self, info: Told, clusters: t.Sequence[Cluster]) -> None:
        """``clusters`` as they are now."""
        self.told = info.get("partitions") is not None
        self.partitions: t.Sequence[Told] = info.get("partitions") or ()
        self.allocations: t.Sequence[Told] = info.get("allocations") or ()
        self._looks = {each["id"]: number % LOOKS for number, each in enumerate(self.partitions)}
        self._borders = {each["id"]: number % BORDERS for number, each in enumerate(self.allocations)}
        self._allocation = {agent: each["id"] for each in self.allocations for agent in each.get("agents") or ()}
        self._holders: dict[str, list[str | None]] = {}
        for cluster in clusters:
            self._hold(cluster)

    def _hold(self, cluster: Cluster) -> None:
        self._holders.update((agent, [None] * IPUS_PER_MACHINE) for agent in cluster.agents)
        for partition in self._of(cluster):
            for ipu in partition.get("ipus") or ():
                position = ipu["ild"] * cluster.layout.machines_per_ild + ipu["topology_id"] // IPUS_PER_MACHINE
                if 0 <= position < len(cluster.agents):
                    self._holders[cluster.agents[position]][ipu["topology_id"] % IPUS_PER_MACHINE] = partition["id"]

    def _of(self, cluster: Cluster) -> t.Iterator[Told]:
        """The partitions of a cluster."""
        cluster_of = {each["id"]: each.get("cluster") for each in self.allocations}
        for partition in self.partitions:
            if (partition.get("cluster") or cluster_of.get(partition.get("allocation"))) == cluster.id:
                yield partition

    def look(self, partition: str) -> int:
        """The number of a look."""
        return self._looks[partition]

    def looks(self, agent: str) -> list[int | None]:
        """The looks of the IPUs of a machine, in their order; None are free."""
        return [None if id is None else self._looks[id] for id in self._holders.get(agent, [None] * IPUS_PER_MACHINE)]

    def bands(self, agents: t.Iterable[str]) -> list[dict[str, t.Any]]:
        """Neighbours that are of one allocation, or of none."""
        return [
            {"allocation": id, "border": self._borders.get(id or ""), "agents": list(same)}
            for id, same in groupby(agents, self._allocation.get)
        ]

    def map(self, cluster: Cluster) -> dict[str, t.Any]:
        """The IPUs of every machine, from the top down; neighbours that one partition holds are one cell."""
        # Partitions of which it is not told which IPUs they have: they may have any of their allocation.
        untold = [each for each in self._of(cluster) if not each.get("ipus")]
        where = {each.get("allocation") for each in untold}
        size = cluster.layout.machines_per_ild
        last = set(cluster.agents[size - 1 :: size])  # of each domain, where it begins from the top down
        rows = []
        for band in self.bands(reversed(cluster.agents)):
            free = "not told" if None in where or band["allocation"] in where else "free"
            for number, agent in enumerate(band["agents"]):
                cells = [
                    {"text": id or free, "look": None if id is None else self._looks[id], "count": len(list(same))}
                    for id, same in groupby(self._holders[agent])
                ]
                # One cell for all of the band, in the first of its rows.
                start = {**band, "count": len(band["agents"])} if number == 0 else None
                rows.append({"agent": agent, "band": start, "cells": cells, "first": agent in last})
        return {"id": cluster.id, "rows": rows, "untold": [each["id"] for each in untold]}
