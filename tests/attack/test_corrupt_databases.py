# SPDX-License-Identifier: GPL-3.0-or-later
"""Damaged databases are rejected with a message, or read as they were: never as another state."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from openipu.vipu.domain.model import Change, Delete, Device, Kind, Operation, Put, ReadyState, Role, State
from openipu.vipu.server.initialise import initialise
from openipu.vipu.storage.store import Store, StoreError
from tests.unit.vipu.domain.rules_support import partition, pod, user

SEED = "OPENIPU_CORRUPTION_SEED"  # environment variable
FAULTS = "openipu.vipu.storage.checksums.Checksums.faults"
OFF = print  # returns no fault
DEVICE = Device("127.5.1.1", 8080, 18515, 0, 2, "chip", "2.0.5", "2.4.4", "v1.3.3")
PAGE = 4096


def rack() -> list[Change]:
    """Return the records of a POD whose tables need several pages."""
    state = pod(32, ilds=2, allocations={"a1": 16, "a2": 16})
    for n in range(40):
        made = partition(state, f"p{n:02}", 1 + n % 3 // 2 * 3, "a1" if n % 2 else "a2", num_replicas=1)
        devices = tuple(replace(DEVICE, device_id=n) for n in range(made.size))
        state.apply([Put(replace(made, ready=ReadyState.ACTIVE, operation=Operation.IDLE, devices=devices))])
    users = [user(f"tenant{n}", f"a{1 + n % 2}") for n in range(20)]
    state.apply(Put(each) for each in (*users, user("root", role=Role.ADMIN)))
    return [Put(record) for kind in Kind for record in state.table(kind).values()]


@dataclass
class Database:
    """A database without a log, its state, and the file before its last changes."""

    path: Path
    content: bytes
    earlier: bytes
    state: State

    def load(self, content: bytes) -> State | str:
        """Return the state of a damaged file, or the message of its rejection."""
        copy = self.path.with_name("copy.db")
        for file in self.path.parent.glob("copy.db*"):
            file.unlink()
        copy.write_bytes(content)
        try:
            store = Store(copy)
        except StoreError as error:
            return str(error)
        try:
            return store.load()
        except StoreError as error:
            return str(error)
        finally:
            store.close()


def write(store: Store, state: State, changes: Sequence[Change]) -> None:
    state.apply(changes)
    transaction = store.transaction()
    transaction.add(changes, state)
    transaction.commit()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    path = tmp_path_factory.mktemp("corrupt") / "vipu.db"
    initialise(path)
    store = Store(path)
    state = store.load()
    write(store, state, rack())
    store.close()
    shutil.copy(path, path.with_name("earlier.db"))
    store = Store(path)
    state = store.load()
    changed = [replace(each, operation=Operation.RESETTING, retries=1) for each in state.partitions.values()]
    write(store, state, [Delete(Kind.USER, "tenant7"), *(Put(each) for each in changed[::3])])
    store.close()
    return Database(path, path.read_bytes(), path.with_name("earlier.db").read_bytes(), state)


def flip(chance: random.Random, database: Database) -> bytes:
    """Change up to eight bits."""
    content = bytearray(database.content)
    for _ in range(chance.randint(1, 8)):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return bytes(content)


def change_value(chance: random.Random, database: Database) -> bytes:
    """Change a printable character to the next one."""
    content = bytearray(database.content)
    at = chance.choice([at for at, byte in enumerate(content[PAGE:], PAGE) if 48 <= byte < 57 or 97 <= byte < 122])
    content[at] += 1
    return bytes(content)


def truncate(chance: random.Random, database: Database) -> bytes:
    return database.content[: chance.randrange(len(database.content))]


def zero(chance: random.Random, database: Database) -> bytes:
    """Overwrite a page with zeros."""
    at = chance.randrange(len(database.content) // PAGE) * PAGE
    return database.content[:at] + bytes(PAGE) + database.content[at + PAGE :]


def swap(chance: random.Random, database: Database) -> bytes:
    """Exchange two pages."""
    content = bytearray(database.content)
    first, second = (PAGE * page for page in chance.sample(range(len(content) // PAGE), 2))
    one, other = content[first : first + PAGE], content[second : second + PAGE]
    content[first : first + PAGE], content[second : second + PAGE] = other, one
    return bytes(content)


def lose_write(chance: random.Random, database: Database) -> bytes:
    """Return to the previous content of a page, as after a lost write."""
    at = chance.randrange(len(database.earlier) // PAGE) * PAGE
    return database.content[:at] + database.earlier[at : at + PAGE] + database.content[at + PAGE :]


DAMAGES = (flip, change_value, truncate, zero, swap, lose_write)


def attack(database: Database, seed: int, count: int) -> None:
    print(f"{SEED}={seed}")
    chance = random.Random(seed)
    rejected = 0
    for number in range(count):
        damage = DAMAGES[number % len(DAMAGES)]
        found = database.load(damage(chance, database))
        if isinstance(found, str):
            rejected += 1
            assert found.startswith("Cannot ") and found.endswith("."), found
        else:
            assert found == database.state, f"Attack {number} ({damage.__name__}) of seed {seed} changed the state."
    assert rejected > count // 3


@pytest.mark.defence(FAULTS, OFF)
def test_damaged_databases(database: Database) -> None:
    attack(database, 1, 60)


@pytest.mark.long
@pytest.mark.defence(FAULTS, OFF)
def test_many_damaged_databases(database: Database) -> None:
    attack(database, int(os.environ.get(SEED, random.randrange(1 << 32))), 2500)


@pytest.mark.defence(FAULTS, OFF)
def test_the_message_names_the_damaged_record(database: Database) -> None:
    found = database.load(database.content.replace(b"hashsalt", b"hashsold", 1))
    assert isinstance(found, str), "The other value of the record is not noticed."
    assert "it is damaged. The user '" in found
    assert found.endswith("does not match its checksum. Restore a backup.")
