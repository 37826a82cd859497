# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects that transactions changed, and the events of a watcher that follow from them. No I/O.

The history contains no old records. It names the changed objects, and the allocations through which users saw
each one before. With the current records this is enough to bring any older view up to date.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from openipu.vipu.domain.context import ALL_ALLOCATIONS, Allowed
from openipu.vipu.domain.model import Agent, Allocation, Change, Cluster, Delete, Kind, Partition, Record, Role, User
from openipu.vipu.domain.state import State

Key = tuple[Kind, str]
Scopes = tuple[str, ...]
"""Allocations whose users see an object. Only administrators see objects without scopes."""

Changed = dict[Key, Scopes | None]
"""Changed objects, with their scopes before the change; None for an object that did not exist."""

EVERYTHING: Scopes = ("*",)
"""Scopes of an administrator. No allocation has this id."""

ALL_ALLOCATIONS_SCOPES: Scopes = ("+",)
"""Scopes of a user of all allocations. No allocation has this id."""

_ORDER = {kind: position for position, kind in enumerate(Kind)}


@dataclass(frozen=True, slots=True)
class Merged:
    """Changes of one object in several revisions: its scopes before the first one, and the last revision."""

    before: Scopes | None
    revision: int


@dataclass(frozen=True, slots=True)
class View:
    """Objects that one watcher sees: its rights and its filters.

    ``allowed``: allocations whose objects are visible, None for all objects. ``ids``: empty for all ids.
    """

    allowed: Allowed | None
    kinds: frozenset[Kind]
    ids: frozenset[str] = frozenset()

    def selects(self, key: Key) -> bool:
        """Return whether the filters include an object."""
        return key[0] in self.kinds and (not self.ids or key[1] in self.ids)

    def shows(self, scopes: Scopes | None) -> bool:
        """Return whether an object with these scopes exists and is visible."""
        return scopes is not None and (self.allowed is None or not self.allowed.isdisjoint(scopes))


@dataclass(frozen=True, slots=True)
class Event:
    """Change of a view: an object that it shows now, or the end of an object (``record`` is None)."""

    key: Key
    record: Record | None
    revision: int


def scopes_of(record: Record | None) -> Scopes | None:
    """Return the scopes of an object, None when it does not exist."""
    if record is None:
        return None
    if isinstance(record, Partition):
        return (record.allocation,)
    if isinstance(record, Allocation):
        return (record.id,)
    if isinstance(record, User):
        if record.role is Role.ADMIN:
            return EVERYTHING
        return ALL_ALLOCATIONS_SCOPES if record.all_allocations else record.allocations
    return ()


def rights_of(scopes: Scopes) -> Allowed | None:
    """Return the rights of a user whose record has these scopes: the inverse of ``scopes_of``."""
    if scopes == EVERYTHING:
        return None
    return ALL_ALLOCATIONS if scopes == ALL_ALLOCATIONS_SCOPES else frozenset(scopes)


def changed_objects(old: State, new: State, changes: Iterable[Change]) -> Changed:
    """Return the objects that ``changes`` change from ``old`` to ``new``, as lists of the API show them.

    Such a list shows more of an object than its record: a partition takes free IPUs of its allocation.
    """
    found: Changed = {}
    for change in changes:
        key = (change.kind, change.id) if isinstance(change, Delete) else (change.record.kind, change.record.id)
        before, after = old.table(key[0]).get(key[1]), new.table(key[0]).get(key[1])
        if before is after:
            continue  # created and deleted in the same transaction
        found[key] = scopes_of(before)
        dependent = [*_dependent(before, after)]
        if isinstance(before, Agent) and isinstance(after, Agent) and before.out_of_service != after.out_of_service:
            allocation = new.allocation_of.get(key[1])  # its free IPUs
            dependent += [(Kind.ALLOCATION, allocation)] if allocation else []
        for other in dependent:
            if other not in found:
                record = old.table(other[0]).get(other[1])
                if record is not None or other[1] in new.table(other[0]):
                    found[other] = scopes_of(record)
    return found


def _dependent(before: Record | None, after: Record | None) -> Iterator[Key]:
    """Yield the objects whose form in lists depends on this one and has changed with it."""
    if isinstance(before, Partition) and isinstance(after, Partition) and before.ipus is after.ipus:
        return  # the state of a partition changes far more often than its location
    for record in (before, after):
        if isinstance(record, Partition):
            yield Kind.ALLOCATION, record.allocation
        elif isinstance(record, Allocation):
            yield Kind.CLUSTER, record.cluster
        if isinstance(record, Allocation | Cluster):
            for agent in record.agents:
                yield Kind.AGENT, agent


def merge(history: Iterable[tuple[int, Changed]]) -> dict[Key, Merged]:
    """Return the changes of several revisions, given oldest first, as those of one."""
    merged: dict[Key, Merged] = {}
    for revision, changed in history:
        for key, before in changed.items():
            first = merged.get(key)
            merged[key] = Merged(before if first is None else first.before, revision)
    return merged


def snapshot(state: State, view: View, revision: int) -> list[Event]:
    """Return an event for every object of a view."""
    return [
        Event((kind, id), record, revision)
        for kind in sorted(view.kinds, key=_ORDER.__getitem__)
        for id, record in sorted(state.table(kind).items())
        if view.selects((kind, id)) and view.shows(scopes_of(record))
    ]


def transition(state: State, merged: Mapping[Key, Merged], old: View, new: View, revision: int) -> list[Event]:
    """Return the events that bring an old view up to date with ``state``, whose revision is ``revision``.

    ``merged``: all changes since the old view. Both views have the same filters. Removed objects come
    first, in the order of removal. The others follow in the order of dependency.
    """
    removed, present = [], []
    for key, change in merged.items():
        if not new.selects(key):
            continue
        record = state.table(key[0]).get(key[1])
        if new.shows(scopes_of(record)):
            present.append(Event(key, record, change.revision))
        elif old.shows(change.before):
            removed.append(Event(key, None, change.revision))
    if old.allowed != new.allowed:
        before, after = _existing(state, old.allowed), _existing(state, new.allowed)
        present += [
            Event(key, state.table(key[0])[key[1]], revision)
            for key in _objects_in(state, after - before)
            if key not in merged and new.selects(key)
        ]
        removed += [
            Event(key, None, revision)
            for key in _objects_in(state, before - after)
            if key not in merged and new.selects(key)
        ]
    removed.sort(key=_rank, reverse=True)
    present.sort(key=_rank)
    return removed + present


def _existing(state: State, allowed: Allowed | None) -> frozenset[str]:
    """Return the existing allocations of a user."""
    return frozenset(id for id in state.allocations if allowed is not None and id in allowed)


def _objects_in(state: State, allocations: Iterable[str]) -> Iterator[Key]:
    for id in allocations:
        yield Kind.ALLOCATION, id
        for partition in state.partitions_in.get(id, ()):
            yield Kind.PARTITION, partition


def _rank(event: Event) -> tuple[int, str]:
    return _ORDER[event.key[0]], event.key[1]
