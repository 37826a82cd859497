# SPDX-License-Identifier: GPL-3.0-or-later
"""Records in etcd, as the leader writes them: an implementation of ``interface.RecordStore``."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from openipu.vipu.domain import invariants
from openipu.vipu.domain.deployment import Deployment, next_epoch
from openipu.vipu.domain.history import Changed
from openipu.vipu.domain.model import Change, Delete, Kind, Record
from openipu.vipu.domain.state import State
from openipu.vipu.storage import event_log
from openipu.vipu.storage.checksums import ByKind, Checksums, checksum
from openipu.vipu.storage.etcd import codec
from openipu.vipu.storage.etcd.client import EtcdClient
from openipu.vipu.storage.etcd.election import Leadership
from openipu.vipu.storage.etcd.keys import Keys
from openipu.vipu.storage.etcd.mirror import Content, DamagedError, Mirror, check_release, key_fault
from openipu.vipu.storage.etcd.staged import Operation
from openipu.vipu.storage.etcd.writes import GuardedWriter
from openipu.vipu.storage.event_log import EventLog
from openipu.vipu.storage.interface import NotLeaderError, StoreError

CATCH_UP_SECONDS = 10.0  # for the changes of the former leader to arrive
_CHANGES_PER_PART = 2_000  # changed objects in one key


class EtcdStore:
    """Records of the leader. ``leadership`` must have won; ``close`` gives it up."""

    events: EventLog
    group_seconds = 0.0005  # a transaction takes longer

    def __init__(self, client: EtcdClient, keys: Keys, mirror: Mirror, leadership: Leadership) -> None:
        """Wait until the mirror has all changes of the former leader. Raises StoreError."""
        self._client = client
        self._keys = keys
        self._mirror = mirror
        self._leadership = leadership
        # The watch delivers changes in order, so no earlier change is missing when the leader key arrives.
        if not mirror.wait(lambda content: _token(content) >= leadership.token, CATCH_UP_SECONDS):
            raise StoreError("Cannot read the records in etcd: its changes do not arrive. Check the nodes of etcd.")
        check_version(mirror.content)
        self._writer = GuardedWriter(client, keys, leadership, mirror.content.head_revision)

    def load(self) -> State:
        """Return the state of all records, each verified; raises StoreError."""
        head = self._mirror.content.head
        if head and "staged" in head:
            self._writer.complete(head)
            if not self._mirror.wait(
                lambda content: content.head is not None and "staged" not in content.head, CATCH_UP_SECONDS
            ):
                raise StoreError("Cannot read the records in etcd: its changes do not arrive. Check the nodes of etcd.")
        self._mirror.stop()
        state, self._checksums, self.events = load(self._keys, self._mirror.content)
        return state

    def begin_epoch(self) -> Deployment:
        """Return the identity of this controller, with an epoch of its own; raises StoreError."""
        meta = self._mirror.content.meta
        assert meta is not None
        epoch = next_epoch(meta["epoch"], time.time())
        self._writer.set(self._keys.meta, json.dumps({**meta, "epoch": epoch}))
        return Deployment(meta["deployment"], epoch, meta["complete_since"])

    def transaction(self) -> EtcdTransaction:
        """Return an empty transaction."""
        return EtcdTransaction(self._writer, self._keys, self._checksums)

    def verify(self) -> None:
        """Raise NotLeaderError when this controller no longer leads."""
        if self.lost:
            raise NotLeaderError

    @property
    def lost(self) -> bool:
        """True when this controller no longer leads."""
        return self._leadership.lost

    def flush(self) -> None:
        """Do nothing: no work is delayed."""

    def close(self) -> None:
        """Give up the leadership. Repeated calls have no effect."""
        self._mirror.stop()
        self._leadership.resign()
        self._writer.close()
        self._client.close()


class EtcdTransaction:
    """Changes that are written together. Only the last change of each record counts."""

    def __init__(self, writer: GuardedWriter, keys: Keys, stored: Checksums) -> None:
        """``stored``: checksums of the stored records, which a commit updates."""
        self._writer = writer
        self._keys = keys
        self._stored = stored
        self._last: dict[tuple[Kind, str], Record | None] = {}
        self._events: EventLog | None = None
        self._changed: Changed = {}

    def add(self, changes: Sequence[Change], state: State) -> None:
        """Add changes that have just been applied to ``state``."""
        for change in changes:
            if isinstance(change, Delete):
                self._last[change.kind, change.id] = None
            else:
                self._last[change.record.kind, change.record.id] = change.record

    def log(self, events: EventLog, changed: Changed) -> None:
        """Add the changed objects to the log of revisions."""
        self._events, self._changed = events, changed

    def commit(self) -> int:
        """Write all changes, or none of them. Return the new revision, 0 when no object was changed.

        Raises StoreError, and LeadershipLostError when the result is not known.
        """
        if not self._last:
            return 0
        operations: list[Operation] = []
        sums: ByKind = {}
        for (kind, id), record in self._last.items():
            sum = 0 if record is None else checksum(record)
            sums.setdefault(kind, {})[id] = sum
            operations.append((self._keys.record(kind, id), None if record is None else codec.encode(record, sum)))
        total = self._stored.total_with(sums)
        revision = expired = 0
        events = self._events
        if events is not None:
            revision = events.revision + bool(self._changed)
            if self._changed:
                expired = events.expired()
                operations += revision_entries(self._keys, revision, self._changed)
        self._writer.commit(operations, {"revision": revision, "total": total}, expired)
        self._stored.apply(sums, total)
        return revision if self._changed else 0


def revision_entries(keys: Keys, revision: int, changed: Changed) -> list[Operation]:
    """Return the operations that store the objects of a revision, in parts that fit into a key."""
    items = list(changed.items())
    return [
        (keys.revision(revision, part), event_log.encode(dict(items[start : start + _CHANGES_PER_PART])))
        for part, start in enumerate(range(0, max(len(items), 1), _CHANGES_PER_PART))
    ]


def load(keys: Keys, content: Content) -> tuple[State, Checksums, EventLog]:
    """Return state, checksums and log of a complete content. Raises StoreError when it is damaged."""
    head = content.head
    if head is None:
        raise DamagedError("The key 'head' is missing.")
    sums = Checksums(content.checksums)
    if sums.total != head["total"]:
        raise DamagedError("Records are missing or outdated.")
    state, wrong = invariants.rebuild(record for kind in Kind for record in content.records[kind].values())
    if wrong:
        raise DamagedError(wrong[0])
    return state, sums, _events(keys, content, head)


def _events(keys: Keys, content: Content, head: dict[str, Any]) -> EventLog:
    history: dict[int, Changed] = {}
    for (revision, part), value in sorted(content.history.items()):
        try:
            history.setdefault(revision, {}).update(event_log.decode(value))
        except ValueError as error:
            raise DamagedError(key_fault(keys.revision(revision, part), error)) from None
    if not history or max(history) != head["revision"]:
        last = keys.revision(head["revision"]).decode()
        raise DamagedError(
            f"The log of revisions must end with the key {last!r}, as the key {keys.head.decode()!r} requires."
        )
    (first, _), *rest = history.items()
    return EventLog(first, rest)


def check_version(content: Content) -> None:
    """Raise StoreError for records that this release cannot use."""
    check_release(content)
    if content.unreadable:
        raise DamagedError(next(iter(content.unreadable.values())))
    if content.meta is None:
        raise StoreError(
            "Cannot use the store in etcd: it has no records. Create them with 'vipu-server --init --store …'."
        )


def _token(content: Content) -> int:
    return content.leader.token if content.leader else 0
