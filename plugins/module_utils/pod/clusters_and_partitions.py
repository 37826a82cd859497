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
from .mistakes import ConsequenceError, Mistakes
from .source import Block, Items, unknown

Object = t.TypeVar("Object")

_REFERENCED = ("cluster", "allocation")  # kinds of objects that others refer to


class ObjectLists:
    """Reader of the four lists, each checked against the previous ones."""

    def __init__(self, top: Block, racks: tuple[model.Rack, ...], mistakes: Mistakes) -> None:
        """``top`` is pod.yml. Objects with mistakes, and those that refer to them, are left out."""
        self._racks = {rack.name: rack for rack in racks}
        self._machines = {machine.name: machine for rack in racks for machine in rack.machines}
        self._ids: dict[str, UniqueValues] = {}
        self._machines_in_clusters, self._machines_in_allocations = UniqueValues("machine"), UniqueValues("machine")
        self.clusters: dict[str, model.Cluster] = {}
        self.allocations: dict[str, model.Allocation] = {}
        self._left: dict[str, int] = {}  # cluster id -> IPU-Machines in no allocation yet
        self._free: dict[str, int] = {}  # allocation id -> IPUs in no partition yet
        self._declared = {kind: {str(each.get("id")) for each in top[kind + "s"] or ()} for kind in _REFERENCED}
        self._mistakes = mistakes
        for cluster in self._read(top, "clusters", self._cluster):
            self.clusters[cluster.id] = cluster
            self._left[cluster.id] = len(cluster.machines)
        for allocation in self._read(top, "allocations", self._allocation):
            self.allocations[allocation.id] = allocation
            self._free[allocation.id] = allocation.size * IPUS_PER_MACHINE
        self.partitions = tuple(self._read(top, "partitions", self._partition))
        self.users = tuple(self._read(top, "users", self._user))

    def _read(self, top: Block, key: str, read: t.Callable[[Block], Object]) -> t.Iterator[Object]:
        """Yield the objects of a list."""
        for block in spec.POD.children(top, key, self._mistakes):
            with self._mistakes.collect():
                yield read(block)

    def allocation(self, block: Block, name: str, line: int | None = None, subject: str = "") -> model.Allocation:
        """Return an allocation that an object refers to. Raises PodError."""
        return self._find(block, "allocation", name, self.allocations, line, subject)

    def _find(
        self,
        block: Block,
        kind: str,
        name: str,
        known: t.Mapping[str, Object],
        line: int | None = None,
        subject: str = "",
    ) -> Object:
        """Return the object of a name. Raises PodError, ConsequenceError when that object has a mistake."""
        if name in known:
            return known[name]
        message = subject + unknown(kind, name, known)
        if name in self._declared.get(kind, ()):
            raise ConsequenceError(block.file, line, message)
        raise block.error(message, kind, line)

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
            yield self._find(block, kind, str(name), known, line or block.lines.get(key)), line

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
        cluster = self._find(block, "cluster", block["cluster"], self.clusters)
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
        allocation = self.allocation(block, name)
        if not is_power_of_two(size):
            raise block.error(
                "partition '%s': the size must be a power of two (1, 2, 4, 8, …), not %d" % (id, size), "size"
            )
        free, total = self._free[name], allocation.size * IPUS_PER_MACHINE
        if size > free:
            message = "partition '%s' needs %d IPUs, but allocation '%s' has %d%s: reduce the size"
            rest = "" if free == total else " and other partitions leave %d" % free
            raise block.error(message % (id, size, name, total, rest), "size")
        self._free[name] -= size
        options = {key: block[key] for key in spec.PARTITION_OPTIONS if block.get(key) is not None}
        if "cluster" in options and options["cluster"] != allocation.cluster:
            message = "partition '%s': allocation '%s' is in cluster '%s': remove the option cluster"
            raise block.error(message % (id, name, allocation.cluster), "cluster")
        if "ipus" in options:
            options["ipus"] = [dict(ipu) for ipu in spec.PARTITION.children(block, "ipus", self._mistakes)]
            if len(block["ipus"]) != size:
                message = "partition '%s' lists %d IPUs but has size %d: make the two numbers equal"
                raise block.error(message % (id, len(block["ipus"]), size), "ipus")
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
