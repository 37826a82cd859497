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
from .mistakes import ConsequenceError, LeftOut, Mistakes, PodError, unknown
from .source import Block, Items

Object = t.TypeVar("Object")

_REFERENCED = ("cluster", "allocation")  # kinds of objects that others refer to


class ObjectLists:
    """Reader of the four lists, each checked against the previous ones."""

    def __init__(self, top: Block, racks: tuple[model.Rack, ...], mistakes: Mistakes, left_out: LeftOut) -> None:
        """``top`` is pod.yml. Objects with mistakes, and those that refer to them, are left out."""
        self._racks = {rack.name: rack for rack in racks}
        self._machines = {machine.name: machine for rack in racks for machine in rack.machines}
        self._ids: dict[str, UniqueValues] = {}
        self._cluster_of: dict[str, str] = {}  # first cluster of each machine, with its line
        self._machines_in_allocations = UniqueValues("machine")
        self.clusters: dict[str, model.Cluster] = {}
        self.allocations: dict[str, model.Allocation] = {}
        self._left: dict[str, int] = {}  # cluster id -> IPU-Machines in no allocation yet
        self._free: dict[str, int] = {}  # allocation id -> IPUs in no partition yet
        self._declared = {kind: {str(each.get("id")) for each in top[kind + "s"] or ()} for kind in _REFERENCED}
        self._unnamed = {kind for kind in _REFERENCED if kind + "s" in top.invalid}
        self._uncertain: set[str] = set()  # clusters and allocations of unknown size
        self._left_out = left_out
        self._mistakes = mistakes
        for cluster in self._read(top, "clusters", self._cluster):
            self.clusters.setdefault(cluster.id, cluster)
            self._left.setdefault(cluster.id, len(cluster.machines))
        for allocation in self._read(top, "allocations", self._allocation):
            self.allocations.setdefault(allocation.id, allocation)
            self._free.setdefault(allocation.id, allocation.size * IPUS_PER_MACHINE)
        self.partitions = tuple(self._read(top, "partitions", self._partition))
        self.users = tuple(self._read(top, "users", self._user))

    def _read(self, top: Block, key: str, read: t.Callable[[Block], Object]) -> t.Iterator[Object]:
        """Yield the objects of a list."""
        for block in spec.POD.children(top, key, self._mistakes):
            with self._mistakes.collect():
                yield read(block)

    def allocation(self, block: Block, name: str, *, subject: str) -> model.Allocation:
        """Return an allocation that the object ``subject`` refers to. Raises PodError."""
        return self._find(block, "allocation", name, self.allocations, subject=subject)

    def uncertain(self, allocation: str) -> bool:
        """Return whether machines of an allocation are left out."""
        return allocation in self._uncertain

    def _find(
        self,
        block: Block,
        kind: str,
        name: str,
        known: t.Mapping[str, Object],
        line: int | None = None,
        *,
        subject: str,
    ) -> Object:
        """Return the object of a name. Raises PodError, ConsequenceError when that object has a mistake."""
        if name in known:
            return known[name]
        declared = self._declared.get(kind, set())  # also those with mistakes
        message = "%s: %s" % (subject, unknown(kind, name, declared.union(known), self._mistakes))
        doubt = name in declared or kind in self._unnamed
        if kind not in _REFERENCED:
            doubt = self._left_out.explains(name, kind)
        raise block.error(message, kind, line).unless(doubt)

    def _id(self, block: Block, kind: str) -> str:
        id: str = block["id"] or ""
        if "id" in block.invalid:
            self._unnamed.add(kind)
        else:
            try:
                self._ids.setdefault(kind, UniqueValues(kind)).take(id, None, block.error("", "id"))
            except PodError as error:
                # One of the two needs another id, which is unknown. Others may refer to it.
                self._mistakes.add(error)
                self._unnamed.add(kind)
                self._uncertain.add(id)
        return id

    def _resolve(
        self, block: Block, key: str, kind: str, known: t.Mapping[str, t.Any], subject: str
    ) -> t.Iterator[tuple[t.Any, int | None]]:
        """Yield the objects of a list of names, each with its line. Record unknown names.

        ``subject`` is the kind of object with the list, for messages.
        """
        names = block[key] or ()
        lines = names.lines if isinstance(names, Items) else itertools.repeat(block.lines.get(key))
        for name, line in zip(names, lines, strict=False):
            with self._mistakes.collect():
                found = self._find(
                    block, kind, str(name), known, line or block.lines.get(key), subject=_subject(subject, block)
                )
                yield found, line

    def _cluster(self, block: Block) -> model.Cluster:
        id = self._id(block, "cluster")
        key = "machines" if block.get("machines") is not None or "machines" in block.invalid else "racks"
        if key == "machines":
            found = rows = list(self._resolve(block, key, "machine", self._machines, "cluster"))
        else:
            found = list(self._resolve(block, key, "rack", self._racks, "cluster"))
            rows = [(machine, line) for rack, line in found for machine in rack.machines]
        incomplete = key == "racks" and any(rack.name in self._left_out.machines for rack, _line in found)
        if incomplete or block[key] is None or len(found) < len(block[key]):
            self._uncertain.add(id)
        if not rows and id not in self._uncertain:
            raise block.error("cluster '%s' has no machines: add machines to the machines file" % id, key)
        if id and id not in self.clusters:  # one with a used id may be a copy
            self._compare_machines(block, id, key, rows)
        ilds = block["num_ilds"]
        if ilds is not None and id not in self._uncertain:
            with self._mistakes.collect():
                self._check_domains(block, key, rows, ilds)
        return model.Cluster(
            id, tuple(machine for machine, _line in rows), block["topology"], ilds or 1, block["cluster_topology"]
        )

    def _compare_machines(
        self, block: Block, id: str, key: str, rows: t.Iterable[tuple[model.Machine, int | None]]
    ) -> None:
        """Record the other clusters with machines of this one, each once, and machines that are in this one twice."""
        own = "cluster '%s' (line %d)" % (id, block.line)
        shared: dict[str, list[tuple[model.Machine, int | None]]] = {}
        for machine, line in rows:
            if machine.name in self._cluster_of:
                shared.setdefault(self._cluster_of[machine.name], []).append((machine, line))
            else:
                self._cluster_of[machine.name] = own
        for owner, found in shared.items():
            message = "cluster '%s' shares %s with %s: list each machine in one cluster"
            message %= (id, _listed(found, key), owner)
            if owner == own:
                self._uncertain.add(id)
                message = "cluster '%s' lists %s twice: remove one of the entries" % (id, _listed(found, key))
            self._mistakes.add(block.error(message, key, found[0][1]))

    def _check_domains(self, block: Block, key: str, rows: list[tuple[model.Machine, int | None]], ilds: int) -> None:
        """Reject IPU-Link domains of different sizes, and those with machines that are not above each other."""
        if ilds < 1:
            raise block.error("cluster '%s': invalid num_ilds %d: use 1 or more" % (block["id"], ilds), "num_ilds")
        if len(rows) % ilds:
            message = "%d machines of cluster '%s' cannot be divided evenly into %d IPU-Link domains: %s"
            remedy = _domains_remedy(rows) or "correct num_ilds"
            raise block.error(message % (len(rows), block["id"], ilds, remedy), "num_ilds")
        for position, (machine, line) in enumerate(rows):
            if position % (len(rows) // ilds):
                below = rows[position - 1][0]
                same = machine.rack == below.rack
                reason = self._placement_error(below, machine) if same else _rack_error(rows, ilds)
                if reason:
                    doubt = machine.rack in self._left_out.machines
                    raise block.error("cluster '%s': %s" % (block["id"], reason), key, line).unless(doubt)

    def _placement_error(self, lower: model.Machine, upper: model.Machine) -> str | None:
        """Return why a machine cannot follow another of its rack in a domain, None when it is directly above."""
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
        by_size = block.get("size") is not None
        key = "size" if by_size else "machines"
        if by_size and block["size"] < 1:
            raise block.error("allocation '%s' has no machines: set at least one" % id, key)
        if block["cluster"] is None:
            raise ConsequenceError(block.file, block.line, "the cluster is unknown")
        cluster = self._find(block, "cluster", block["cluster"], self.clusters, subject=_subject("allocation", block))
        if id in self.allocations:
            raise ConsequenceError(block.file, block.line, "the allocation may be a copy")
        machines = () if by_size else self._allocated_machines(block, cluster)
        if not by_size and (len(machines) < len(block[key] or ()) or block[key] is None):
            self._uncertain.add(id)
        size = block["size"] if by_size else len(machines)
        if size < 1 and id not in self._uncertain:
            raise block.error("allocation '%s' has no machines: set at least one" % id, key)
        left, total = self._left[cluster.id], len(cluster.machines)
        if size > left:
            message = "allocation '%s' needs %d machines, but cluster '%s' has %d%s: reduce '%s' (IPU-Machines)"
            rest = "" if left == total else " and other allocations leave %d" % left
            error = block.error(message % (id, size, cluster.id, total, rest, key), key)
            raise error.unless(cluster.id in self._uncertain)
        self._left[cluster.id] -= size
        return model.Allocation(id, cluster.id, size, machines)

    def _allocated_machines(self, block: Block, cluster: model.Cluster) -> tuple[model.Machine, ...]:
        """Return the machines of an allocation: consecutive in its cluster, and in no other allocation."""
        order = {machine.name: position for position, machine in enumerate(cluster.machines)}
        rows = list(self._resolve(block, "machines", "machine", self._machines, "allocation"))
        complete = len(rows) == len(block["machines"] or ()) and cluster.id not in self._uncertain
        machines: list[model.Machine] = []
        for machine, line in rows:
            message = None
            if complete and machine.name not in order:
                message = "machine '%s' is not in cluster '%s': remove it" % (machine.name, cluster.id)
            elif complete and machines and order[machine.name] != order[machines[-1].name] + 1:
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
        options = {key: block[key] for key in spec.PARTITION_OPTIONS if block.get(key) is not None}
        if size is not None:
            with self._mistakes.collect():
                self._check_size(block, id, size, options)
        if "ipus" in options:
            options["ipus"] = [dict(ipu) for ipu in spec.PARTITION.children(block, "ipus", self._mistakes)]
        if name is None:
            raise ConsequenceError(block.file, block.line, "the allocation is unknown")
        allocation = self.allocation(block, name, subject=_subject("partition", block))
        if "cluster" in options and options["cluster"] != allocation.cluster:
            message = "partition '%s': allocation '%s' is in cluster '%s': remove the option cluster"
            self._mistakes.add(block.error(message % (id, name, allocation.cluster), "cluster"))
        free, total = self._free[name], allocation.size * IPUS_PER_MACHINE
        if size is not None and size > free:
            message = "partition '%s' needs %d IPUs, but allocation '%s' has %d%s: reduce the size"
            rest = "" if free == total else " and other partitions leave %d" % free
            error = block.error(message % (id, size, name, total, rest), "size")
            raise error.unless(name in self._uncertain)
        self._free[name] -= size or 0
        return model.Partition(id, name, size or 0, options)

    @staticmethod
    def _check_size(block: Block, id: str, size: int, options: dict[str, t.Any]) -> None:
        """Reject a size that is not a power of two, or that does not fit to the other options."""
        if not is_power_of_two(size):
            message = "partition '%s': the size must be a power of two (1, 2, 4, 8, …), not %d"
            raise block.error(message % (id, size), "size")
        if "ipus" in options and len(options["ipus"]) != size:
            message = "partition '%s' lists %d IPUs but has size %d: make the two numbers equal"
            raise block.error(message % (id, len(options["ipus"]), size), "ipus")
        for key in spec.PARTITION_DIVISORS:
            if key in options and options[key] < 1:
                raise block.error("partition '%s': invalid %s %d: use 1 or more" % (id, key, options[key]), key)
            if key in options and size % options[key]:
                message = "partition '%s': %d IPUs cannot be divided evenly by %s %d: correct it"
                raise block.error(message % (id, size, key, options[key]), key)

    def _user(self, block: Block) -> model.User:
        id = self._id(block, "user")
        rows = list(self._resolve(block, "allocations", "allocation", self.allocations, "user"))
        return model.User(id, block["role"] or "", tuple(allocation.id for allocation, _line in rows))


def _subject(kind: str, block: Block) -> str:
    """Return an object for messages, without an invalid id."""
    return "%s '%s'" % (kind, block["id"]) if block["id"] else kind


def _listed(rows: t.Iterable[tuple[model.Machine, int | None]], key: str) -> str:
    """Return machines of a cluster by the entries of ``key``: machines, or racks."""
    names = list(dict.fromkeys(machine.rack if key == "racks" else machine.name for machine, _line in rows))
    more = " and %d more" % (len(names) - 1) if len(names) > 1 else ""
    return "%s '%s'%s" % ("machines of rack" if key == "racks" else "machine", names[0], more)


def _machines_by_rack(rows: t.Iterable[tuple[model.Machine, int | None]]) -> list[tuple[str, int]]:
    """Return the racks of a cluster, each with its number of consecutive machines."""
    return [(rack, len(list(found))) for rack, found in itertools.groupby(machine.rack for machine, _line in rows)]


def _domains_remedy(rows: t.Iterable[tuple[model.Machine, int | None]]) -> str | None:
    """Return how to divide a cluster of several racks into domains, None for a single rack."""
    racks = _machines_by_rack(rows)
    if len(racks) == 1:
        return None
    if len({size for _rack, size in racks}) == 1:
        return "set num_ilds to %d" % len(racks)
    return "use racks with the same number of machines, or one cluster for each rack"


def _rack_error(rows: t.Sequence[tuple[model.Machine, int | None]], ilds: int) -> str:
    """Return the message for a domain with machines of two racks."""
    domains = "the IPU-Link domain has" if ilds == 1 else "the %d IPU-Link domains have" % ilds
    each = "%d machines" % len(rows) if ilds == 1 else "%d machines each" % (len(rows) // ilds)
    places = ", ".join("%d in rack '%s'" % (size, rack) for rack, size in _machines_by_rack(rows))
    message = "%s %s, but IPU-Links do not leave a rack, and the cluster has %s: %s"
    return message % (domains, each, places, _domains_remedy(rows))
