# SPDX-License-Identifier: GPL-3.0-or-later
"""A database, and the records of a rack in it."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

from openipu.vipu.domain.history import changed_objects
from openipu.vipu.domain.model import (
    Change,
    Device,
    Kind,
    Operation,
    Put,
    ReadyState,
    Role,
)
from openipu.vipu.domain.state import State
from openipu.vipu.storage.interface import RecordStore
from openipu.vipu.storage.store import Store
from tests.unit.vipu.domain.rules_support import partition, pod, user

DEVICE = Device("127.5.1.1", 8080, 18515, 0, 2, "chip", "2.0.5", "2.4.4", "v1.3.3")


def write(store: Store, state: State, *changes: Change) -> None:
    """Apply changes to a state and to the database."""
    state.apply(changes)
    transaction = store.transaction()
    transaction.add(changes, state)
    transaction.commit()


def write_revision(store: RecordStore, state: State, *changes: Change) -> int:
    """Apply changes to a state and to a store as the controller does, and return the revision, 0 without a new one."""
    before = state.copy()
    state.apply(changes)
    transaction = store.transaction()
    transaction.add(changes, state)
    changed = changed_objects(before, state, changes)
    transaction.log(store.events, changed)
    revision = transaction.commit()
    if revision:
        store.events.append(revision, changed)
    return revision


def all_records(state: State) -> list[Change]:
    return [Put(record) for kind in Kind for record in state.table(kind).values()]


def reopened(store: Store) -> State:
    """Return the state that another process would read now."""
    other = sqlite3.connect(store.path)
    try:
        copy = store.path.with_suffix(".copy")
        copy.unlink(missing_ok=True)
        other.execute("VACUUM INTO ?", (str(copy),))
    finally:
        other.close()
    again = Store(copy)
    try:
        return again.load()
    finally:
        again.close()


def rack() -> State:
    """Create two IPU-Link domains, three allocations, users, and partitions in every state."""
    state = pod(8, ilds=2, allocations={"a1": 4, "a2": 2, "a3": 2})
    partition(state, "one", 1)
    eight = partition(state, "eight", 8, num_gcds=2, num_replicas=4, reconfigurable=True, relocatable=True)
    small = partition(state, "small", 2, "a2", disable_auto_reset=True)
    state.apply(
        [
            Put(user("alice", "a2", "a1")),
            Put(user("bob", all_allocations=True)),
            Put(user("root", role=Role.ADMIN)),
            Put(
                replace(
                    eight,
                    ready=ReadyState.ACTIVE,
                    operation=Operation.IDLE,
                    devices=tuple(replace(DEVICE, device_id=n) for n in range(8)),
                )
            ),
            Put(
                replace(
                    small,
                    ready=ReadyState.ERROR,
                    operation=Operation.FAILED,
                    errors=("Agent 'ag05' is down.", "Twice."),
                    retries=2,
                    last_auto_reset=1234.5,
                )
            ),
        ]
    )
    return state


def spoil(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA foreign_keys = OFF")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
