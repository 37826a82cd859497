# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters, allocations, partitions and users of pod.yml.

The checks cover errors that are visible in the file. The controller checks what depends on its state, such as
free consecutive machines for a partition.
"""

from __future__ import annotations

import itertools
import typing as t

from ..vipu.object_rules import IPUS_PER_MACHINE, is_power_of_two
from . import model, spec
from .addresses import UniqueValues
from .source import Block, Items, unknown


class ObjectLists:
    """Reader of the four lists, each checked against the previous ones. Raises PodError."""

    def __init__(self, top: Block, racks: tuple[model.Rack, ...]) -> None:
        """``top`` is pod.yml."""
        self._racks = {rack.name: rack for rack in racks}
        self._machines = {machine.name: machine for rack in racks for machine in rack.machines}
        self._ids: dict[str, UniqueValues] = {}
        self._machines_in_clusters, self._machines_in_allocations = UniqueValues("machine"), UniqueValues("machine")
        self.clusters: dict[str, model.Cluster] = {}
        self.allocations: dict[str, model.Allocation] = {}
        self._left: dict[str, int] = {}  # cluster id -> IPU-Machines in no allocation yet
        self._free: dict[str, int] = {}  # allocation id -> IPUs in no partition yet
        for block in spec.CLUSTER.children(top, "clusters"):
            cluster = self._cluster(block)
            self.clusters[cluster.id] = cluster
            self._left[cluster.id] = len(cluster.machines)
        for block in spec.ALLOCATION.children(top, "allocations"):
            allocation = self._allocation(block)
            self.allocations[allocation.id] = allocation
            self._free[allocation.id] = allocation.size * IPUS_PER_MACHINE
        self.partitions = tuple(self._partition(block) for block in spec.PARTITION.children(top, "partitions"))
        self.users = tuple(self._user(block) for block in spec.USER.children(top, "users"))

    def _id(self, block: Block, kind: str) -> str:
        id: str = block["id"]
        self._ids.setdefault(kind, UniqueValues(kind)).take(id, None, block.error("", "id"))
        return id

    def _resolve(
        self, block: Block, key: str, kind: str, known: t.Mapping[str, t.Any]
    ) -> t.Iterator[tuple[t.Any, int | None]]:
        """Yield the objects of a list of names, each with its line."""
        names = block[key]
        lines = names.lines if isinstance(names, Items) else itertools.repeat(block.lines.get(key))
        for name, line in zip(names, lines, strict=False):
            if str(name) not in known:
                raise block.error(unknown(kind, str(name), known), key, line)
            yield known[str(name)], line

    def _cluster(self, block: Block) -> model.Cluster:
        id = self._id(block, "cluster")
        key = "machines" if block.get("machines") is not None else "racks"
        if key == "machines":
            rows = list(self._resolve(block, key, "machine", self._machines))
        else:
            racks = self._resolve(block, key, "rack", self._racks)
            rows = [(machine, line) for rack, line in racks for machine in rack.machines]
        if not rows:
            raise block.error("cluster '%s' has no machines: add machines to the machines file" % id, key)
        ilds = block["num_ilds"]
        if ilds < 1 or len(rows) % ilds:
            message = "%d machines of cluster '%s' cannot be divided evenly into %d IPU-Link domains: correct num_ilds"
            raise block.error(message % (len(rows), id, ilds), "num_ilds")
        for position, (machine, line) in enumerate(rows):
            self._machines_in_clusters.take(machine.name, "cluster '%s'" % id, block.error("", key, line))
            if position % (len(rows) // ilds):
                reason = self._placement_error(rows[position - 1][0], machine)
                if reason:
                    raise block.error("cluster '%s': %s" % (id, reason), key, line)
        return model.Cluster(
            id, tuple(machine for machine, _line in rows), block["topology"], ilds, block["cluster_topology"]
        )

    def _placement_error(self, lower: model.Machine, upper: model.Machine) -> str | None:
        """Return why a machine cannot follow another in an IPU-Link domain, None when it is directly above."""
        if upper.rack != lower.rack:
            message = "'%s' is in rack '%s' but '%s' in rack '%s', and IPU-Links do not leave a rack: set num_ilds"
            return message % (upper.name, upper.rack, lower.name, lower.rack)
        if upper.unit < lower.unit:
            message = "'%s' (unit %d) comes after '%s' (unit %d): list machines from the lowest unit up"
            return message % (upper.name, upper.unit, lower.name, lower.unit)
        gap = lower.unit + 1
        if upper.unit == gap:
            return None
        names = [machine.name for machine in self._racks[upper.rack].machines if machine.unit == gap]
        remedy = "list '%s' there" % names[0] if names else "add it to the machines file, or end the cluster below it"
        message = "unit %d of rack '%s' is missing between '%s' and '%s': %s"
        return message % (gap, upper.rack, lower.name, upper.name, remedy)

    def _allocation(self, block: Block) -> model.Allocation:
        id = self._id(block, "allocation")
        if block["cluster"] not in self.clusters:
            raise block.error(unknown("cluster", block["cluster"], self.clusters), "cluster")
        cluster = self.clusters[block["cluster"]]
        by_size = block.get("size") is not None
        key = "size" if by_size else "machines"
        machines = () if by_size else self._allocated_machines(block, cluster)
        size = block["size"] if by_size else len(machines)
        if size < 1:
            raise block.error("allocation '%s' has no machines: set at least one" % id, key)
        left, total = self._left[cluster.id], len(cluster.machines)
        if size > left:
            message = "allocation '%s' needs %d machines, but cluster '%s' has %d%s: reduce the allocation"
            rest = "" if left == total else " and other allocations leave %d" % left
            raise block.error(message % (id, size, cluster.id, total, rest), key)
        self._left[cluster.id] -= size
        return model.Allocation(id, cluster.id, size, machines)

    def _allocated_machines(self, block: Block, cluster: model.Cluster) -> tuple[model.Machine, ...]:
        """Return the machines of an allocation: consecutive in its cluster, and in no other allocation."""
        order = {machine.name: position for position, machine in enumerate(cluster.machines)}
        machines: list[model.Machine] = []
        for machine, line in self._resolve(block, "machines", "machine", self._machines):
            message = None
            if machine.name not in order:
                message = "machine '%s' is not in cluster '%s': remove it" % (machine.name, cluster.id)
            elif machines and order[machine.name] != order[machines[-1].name] + 1:
                message = "'%s' does not follow '%s' in cluster '%s': list consecutive machines in order"
                message %= (machine.name, machines[-1].name, cluster.id)
            if message:
                raise block.error("allocation '%s': %s" % (block["id"], message), "machines", line)
            self._machines_in_allocations.take(
                machine.name, "allocation '%s'" % block["id"], block.error("", "machines", line)
            )
            machines.append(machine)
        return tuple(machines)

    def _partition(self, block: Block) -> model.Partition:
        id = self._id(block, "partition")
        name, size = block["allocation"], block["size"]
        if name not in self.allocations:
            raise block.error(unknown("allocation", name, self.allocations), "allocation")
        if not is_power_of_two(size):
            raise block.error(
                "partition '%s': the size must be a power of two (1, 2, 4, 8, …), not %d" % (id, size), "size"
            )
        free, total = self._free[name], self.allocations[name].size * IPUS_PER_MACHINE
        if size > free:
            message = "partition '%s' needs %d IPUs, but allocation '%s' has %d%s: reduce the size"
            rest = "" if free == total else " and other partitions leave %d" % free
            raise block.error(message % (id, size, name, total, rest), "size")
        self._free[name] -= size
        options = {key: block[key] for key in spec.PARTITION_OPTIONS if block.get(key) is not None}
        if "cluster" in options and options["cluster"] != self.allocations[name].cluster:
            message = "partition '%s': allocation '%s' is in cluster '%s': remove the option cluster"
            raise block.error(message % (id, name, self.allocations[name].cluster), "cluster")
        if "ipus" in options:
            options["ipus"] = [dict(ipu) for ipu in spec.IPU.children(block, "ipus")]
            if len(options["ipus"]) != size:
                message = "partition '%s' lists %d IPUs but has size %d: make the two numbers equal"
                raise block.error(message % (id, len(options["ipus"]), size), "ipus")
        for key in spec.PARTITION_DIVISORS:
            if key in options and (options[key] < 1 or size % options[key]):
                message = "partition '%s': %d IPUs cannot be divided evenly by %s %d: correct it"
                raise block.error(message % (id, size, key, options[key]), key)
        return model.Partition(id, name, size, options)

    def _user(self, block: Block) -> model.User:
        id = self._id(block, "user")
        names = [] if block.get("allocations") is None else block["allocations"]
        rows = list(self._resolve(block, "allocations", "allocation", self.allocations)) if names else []
        return model.User(id, block["role"], tuple(allocation.id for allocation, _line in rows))
