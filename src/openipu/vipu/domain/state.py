# SPDX-License-Identifier: GPL-3.0-or-later
"""State of all records in memory, with the indexes that the rules need. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar

from openipu.vipu.domain.model import (
    Agent,
    Allocation,
    Change,
    Cluster,
    Delete,
    Kind,
    Partition,
    Put,
    Record,
    RevokedKey,
    User,
)

_Key = TypeVar("_Key")


@dataclass
class State:
    """All records by id, with the indexes that the rules need. Only ``apply`` changes it."""

    agents: dict[str, Agent] = field(default_factory=dict)
    clusters: dict[str, Cluster] = field(default_factory=dict)
    allocations: dict[str, Allocation] = field(default_factory=dict)
    partitions: dict[str, Partition] = field(default_factory=dict)
    users: dict[str, User] = field(default_factory=dict)
    revoked_keys: dict[str, RevokedKey] = field(default_factory=dict)
    # (host in lower case, port) -> agent id
    endpoints: dict[tuple[str, int], str] = field(default_factory=dict)
    # ids of the agents that are out of service
    out_of_service: set[str] = field(default_factory=set)
    # agent id -> cluster id, position in that cluster, allocation id, {IPU number -> partition id}
    cluster_of: dict[str, str] = field(default_factory=dict)
    position_of: dict[str, int] = field(default_factory=dict)
    allocation_of: dict[str, str] = field(default_factory=dict)
    holders: dict[str, dict[int, str]] = field(default_factory=dict)
    # cluster id -> allocation ids, allocation id -> partition ids, allocation id -> user ids; never empty sets
    allocations_in: dict[str, set[str]] = field(default_factory=dict)
    partitions_in: dict[str, set[str]] = field(default_factory=dict)
    users_of: dict[str, set[str]] = field(default_factory=dict)
    # key of a certificate -> user id
    certificate_users: dict[str, str] = field(default_factory=dict)
    # cluster id -> for each position, one bit for every used IPU; placement searches these
    occupied: dict[str, bytearray] = field(default_factory=dict)

    def apply(self, changes: Iterable[Change]) -> list[Change]:
        """Apply changes of the rules without checking them again.

        Returns the changes that undo them, in the order to apply them. The undone state is equal to the
        original one; only the order of a table may differ.
        """
        undo: list[Change] = []
        for change in changes:
            if isinstance(change, Delete):
                old = self.table(change.kind).pop(change.id, None)
                if old is not None:
                    self._unindex(old)
                    undo.append(Put(old))
            else:
                undo.append(self._put(change.record))
        undo.reverse()
        return undo

    def table(self, kind: Kind) -> dict[str, Record]:
        """Return the records of one kind by id."""
        return _tables[kind](self)  # type: ignore[no-any-return]

    def machines_of(self, partition: Partition) -> Iterator[tuple[str, int]]:
        """Yield the agent and the IPU number of every IPU of a partition, in the order of ``ipus``."""
        cluster = self.clusters[partition.cluster]
        per_ild = cluster.machines_per_ild
        for ipu in partition.ipus:
            yield cluster.agents[ipu.position(per_ild)], ipu.ipu

    def copy(self) -> State:
        """Return an independent state with the same records."""
        return State(**{field.name: _copied(getattr(self, field.name)) for field in fields(self)})

    def _put(self, record: Record) -> Change:
        table = self.table(record.kind)
        old = table.get(record.id)
        if isinstance(record, Partition) and isinstance(old, Partition) and record.ipus is old.ipus:
            table[record.id] = record  # same IPUs: the indexes are unchanged
            return Put(old)
        if old is not None:
            self._unindex(old)
        table[record.id] = record
        self._index(record)
        return Delete(record.kind, record.id) if old is None else Put(old)

    def _index(self, record: Record) -> None:
        if isinstance(record, Agent):
            self.endpoints[record.host.lower(), record.port] = record.id
            if record.out_of_service:
                self.out_of_service.add(record.id)
        elif isinstance(record, Cluster):
            for position, agent in enumerate(record.agents):
                self.cluster_of[agent] = record.id
                self.position_of[agent] = position
            self.occupied[record.id] = bytearray(
                sum(1 << ipu for ipu in self.holders.get(agent, ())) for agent in record.agents
            )
        elif isinstance(record, Allocation):
            self.allocation_of.update(dict.fromkeys(record.agents, record.id))
            _link(self.allocations_in, record.cluster, record.id)
        elif isinstance(record, Partition):
            _link(self.partitions_in, record.allocation, record.id)
            occupied = self.occupied[record.cluster]
            for agent, ipu in self.machines_of(record):
                self.holders.setdefault(agent, {})[ipu] = record.id
                occupied[self.position_of[agent]] |= 1 << ipu
        elif isinstance(record, User):
            for allocation in record.allocations:
                _link(self.users_of, allocation, record.id)
            self.certificate_users.update((each.key, record.id) for each in record.certificates)

    def _unindex(self, record: Record) -> None:
        if isinstance(record, Agent):
            _drop(self.endpoints, (record.host.lower(), record.port), record.id)
            self.out_of_service.discard(record.id)
        elif isinstance(record, Cluster):
            for agent in record.agents:
                if _drop(self.cluster_of, agent, record.id):
                    del self.position_of[agent]
            del self.occupied[record.id]
        elif isinstance(record, Allocation):
            for agent in record.agents:
                _drop(self.allocation_of, agent, record.id)
            _unlink(self.allocations_in, record.cluster, record.id)
        elif isinstance(record, Partition):
            _unlink(self.partitions_in, record.allocation, record.id)
            occupied = self.occupied[record.cluster]
            for agent, ipu in self.machines_of(record):
                held = self.holders.get(agent, {})
                if _drop(held, ipu, record.id):
                    occupied[self.position_of[agent]] &= ~(1 << ipu)
                    if not held:
                        del self.holders[agent]
        elif isinstance(record, User):
            for allocation in record.allocations:
                _unlink(self.users_of, allocation, record.id)
            for each in record.certificates:
                _drop(self.certificate_users, each.key, record.id)


def _copied(table: Any) -> Any:
    """Return a copy of a table or an index. Records are immutable, and nothing changes a value of them."""
    if isinstance(table, dict):
        return {key: _copied(value) for key, value in table.items()}
    return type(table)(table) if isinstance(table, (set, bytearray)) else table


_tables = {kind: attrgetter(f"{kind}s") for kind in Kind}


def _drop(index: dict[_Key, str], key: _Key, id: str) -> bool:
    """Remove a key if it still refers to this record; return whether it did."""
    if index.get(key) != id:
        return False
    del index[key]
    return True


def _link(index: dict[str, set[str]], key: str, id: str) -> None:
    index.setdefault(key, set()).add(id)


def _unlink(index: dict[str, set[str]], key: str, id: str) -> None:
    ids = index[key]
    ids.discard(id)
    if not ids:
        del index[key]
