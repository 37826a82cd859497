# SPDX-License-Identifier: GPL-3.0-or-later
"""All records of a deployment at one time, to copy them from one store to another."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from openipu.vipu.domain.deployment import Deployment, next_epoch
from openipu.vipu.domain.model import Kind, Put, Record
from openipu.vipu.domain.state import State
from openipu.vipu.storage import event_log
from openipu.vipu.storage.position import Position
from openipu.vipu.storage.store import Store


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Records in the order of dependency, identity with the last epoch, and last revision."""

    records: Sequence[Record]
    deployment: Deployment
    revision: int

    def state(self) -> State:
        """Return the records with their indexes."""
        state = State()
        state.apply(Put(record) for record in self.records)
        return state

    def restored(self, after: Position) -> Snapshot:
        """Return the snapshot with a new epoch and revision, because later changes may be missing.

        ``after``: position of the records that it replaces.
        """
        epoch = next_epoch(max(self.deployment.epoch, after.epoch), time.time())
        revision = max(self.revision + 1, after.revision + 1, event_log.first_revision())
        return Snapshot(self.records, replace(self.deployment, epoch=epoch, complete_since=epoch), revision)


def of_state(state: State, deployment: Deployment, revision: int) -> Snapshot:
    """Return the snapshot of a state."""
    return Snapshot([record for kind in Kind for record in state.table(kind).values()], deployment, revision)


def from_database(database: Path) -> Snapshot:
    """Return the content of a database that no controller uses. Raises StoreError."""
    with closing(Store(database)) as store:
        state = store.load()
        return of_state(state, store.identity(), store.events.revision)


def to_database(snapshot: Snapshot, database: Path) -> None:
    """Write a snapshot into a new database. Raises StoreError."""
    with closing(Store(database, create=True)) as store:
        state = store.load()
        transaction = store.transaction()
        changes = [Put(record) for record in snapshot.records]
        state.apply(changes)
        transaction.add(changes, state)
        transaction.commit()
        store.set_identity(snapshot.deployment, snapshot.revision)
