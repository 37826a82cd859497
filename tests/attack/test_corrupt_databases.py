# SPDX-License-Identifier: GPL-3.0-or-later
"""Damaged databases and write-ahead logs are rejected with a message, or read as they were: never as another state."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import pytest

from openipu.vipu.domain.model import Change, Delete, Device, Kind, Operation, Put, ReadyState, Role
from openipu.vipu.domain.state import State
from openipu.vipu.server.initialise import initialise
from openipu.vipu.storage import backup
from openipu.vipu.storage.store import Store, StoreError
from tests.unit.vipu.domain.rules_support import partition, pod, user
from tests.unit.vipu.storage.store_support import write_revision

SEED = "OPENIPU_CORRUPTION_SEED"  # environment variable
LAST = "openipu.vipu.storage.last_revision.LastRevision.read"
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


class Content(Protocol):
    """Content of a file, and before its last changes."""

    content: bytes
    earlier: bytes


def load(folder: Path, files: dict[str, bytes]) -> State | str:
    """Return the state of a database with these contents by suffix, or the message of its rejection."""
    path = folder / "copy.db"
    for file in folder.glob("copy.db*"):
        file.unlink()
    for suffix, content in files.items():
        Path(f"{path}{suffix}").write_bytes(content)
    try:
        store = Store(path)
    except StoreError as error:
        return str(error)
    try:
        return store.load()
    except StoreError as error:
        return str(error)
    finally:
        store.close()


@dataclass
class Database:
    """A database without a log, its state, and the file before its last changes."""

    path: Path
    content: bytes
    earlier: bytes
    state: State

    def load(self, content: bytes) -> State | str:
        """Return the state of a damaged file, or the message of its rejection."""
        return load(self.path.parent, {"": content})


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
    store.begin_epoch()
    write(store, state, rack())
    store.close()
    shutil.copy(path, path.with_name("earlier.db"))
    store = Store(path)
    state = store.load()
    changed = [replace(each, operation=Operation.RESETTING, retries=1) for each in state.partitions.values()]
    write(store, state, [Delete(Kind.USER, "tenant7"), *(Put(each) for each in changed[::3])])
    store.close()
    return Database(path, path.read_bytes(), path.with_name("earlier.db").read_bytes(), state)


def flip(chance: random.Random, file: Content) -> bytes:
    """Change up to eight bits."""
    content = bytearray(file.content)
    for _ in range(chance.randint(1, 8)):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return bytes(content)


def change_value(chance: random.Random, file: Content) -> bytes:
    """Change a printable character to the next one."""
    content = bytearray(file.content)
    at = chance.choice([at for at, byte in enumerate(content[PAGE:], PAGE) if 48 <= byte < 57 or 97 <= byte < 122])
    content[at] += 1
    return bytes(content)


def truncate(chance: random.Random, file: Content) -> bytes:
    return file.content[: chance.randrange(len(file.content))]


def zero(chance: random.Random, file: Content) -> bytes:
    """Overwrite a page with zeros."""
    at = chance.randrange(len(file.content) // PAGE) * PAGE
    return file.content[:at] + bytes(PAGE) + file.content[at + PAGE :]


def swap(chance: random.Random, file: Content) -> bytes:
    """Exchange two pages."""
    content = bytearray(file.content)
    first, second = (PAGE * page for page in chance.sample(range(len(content) // PAGE), 2))
    one, other = content[first : first + PAGE], content[second : second + PAGE]
    content[first : first + PAGE], content[second : second + PAGE] = other, one
    return bytes(content)


def lose_write(chance: random.Random, file: Content) -> bytes:
    """Return to the previous content of a page, as after a lost write."""
    at = chance.randrange(len(file.earlier) // PAGE) * PAGE
    return file.content[:at] + file.earlier[at : at + PAGE] + file.content[at + PAGE :]


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


@pytest.mark.defence("openipu.vipu.storage.deployment.faults", list)
@pytest.mark.parametrize("column", ["id", "epoch", "complete_since"])
def test_a_damaged_identity(database: Database, column: str) -> None:
    """Agents would reject another deployment. With other epochs, they could release the shares of running jobs."""
    path = database.path.with_name("identity.db")
    path.write_bytes(database.content)
    with closing(sqlite3.connect(path)) as connection:
        other = "iif(id LIKE '0%', '1', '0') || substr(id, 2)"
        value = other if column == "id" else f"{column} + 64"
        connection.execute(f"UPDATE deployment SET {column} = {value}")
        connection.commit()
    assert "identity does not match its checksum. Restore a backup." in str(database.load(path.read_bytes()))


@pytest.mark.defence(FAULTS, OFF)
def test_the_message_names_the_damaged_record(database: Database) -> None:
    found = database.load(database.content.replace(b"hashsalt", b"hashsold", 1))
    assert isinstance(found, str), "The other value of the record is not noticed."
    assert "it is damaged. The user '" in found
    assert found.endswith("does not match its checksum. Restore a backup.")


@dataclass
class Crash:
    """A database, its write-ahead log and its last revision after a crash, and all states that were acknowledged."""

    folder: Path
    database: bytes
    content: bytes
    earlier: bytes
    last: bytes
    states: list[State]

    def load(self, log: bytes | None, *, power_cut: bool = False) -> State | str:
        """Return the state with a damaged or missing log. A power cut loses the file with the last revision."""
        files = {"": self.database}
        if log is not None:
            files["-wal"] = log
        if not power_cut:
            files["-revision"] = self.last
        return load(self.folder, files)


@pytest.fixture(scope="module")
def crash(tmp_path_factory: pytest.TempPathFactory) -> Crash:
    """Return a crash with a log that began again in the middle, so that it ends with frames of earlier changes."""
    path = tmp_path_factory.mktemp("crash") / "vipu.db"
    log = Path(f"{path}-wal")
    initialise(path)
    store = Store(path)
    state = store.load()
    write_revision(store, state, *rack())
    earlier, states = b"", []
    for number in range(60):
        if number == 30:
            earlier = log.read_bytes()
            store._connection.execute("PRAGMA wal_checkpoint")
            database = path.read_bytes()
            states.append(state.copy())
        partition = state.partitions[f"p{number % 40:02}"]
        write_revision(
            store, state, Put(replace(partition, operation=Operation.RESETTING, retries=partition.retries + 1))
        )
        if number >= 30:
            states.append(state.copy())
    assert path.read_bytes() == database
    made = Crash(path.parent, database, log.read_bytes(), earlier, Path(f"{path}-revision").read_bytes(), states)
    store.close()
    return made


def attack_log(crash: Crash, seed: int, count: int, *, power_cut: bool = False) -> None:
    print(f"{SEED}={seed}")
    chance = random.Random(seed)
    allowed = crash.states if power_cut else crash.states[-1:]
    outcomes: list[bool] = []
    for number in range(count):
        damage = DAMAGES[number % len(DAMAGES)]
        found = crash.load(damage(chance, crash), power_cut=power_cut)
        outcomes.append(isinstance(found, str))
        if isinstance(found, str):
            assert "Its last changes are lost: it ends with revision " in found, found
        else:
            assert found in allowed, f"Attack {number} ({damage.__name__}) of seed {seed} lost changes."
    assert power_cut or 0 < sum(outcomes) < count
    assert not power_cut or not any(outcomes)


def unknown(self: object) -> int:
    """Return no revision."""
    return 0


@pytest.mark.defence(LAST, unknown)
def test_damaged_logs(crash: Crash) -> None:
    attack_log(crash, 1, 30)


@pytest.mark.long
@pytest.mark.defence(LAST, unknown)
def test_many_damaged_logs(crash: Crash) -> None:
    attack_log(crash, int(os.environ.get(SEED, random.randrange(1 << 32))), 600)


@pytest.mark.defence(LAST, unknown)
def test_a_missing_log(crash: Crash) -> None:
    assert isinstance(crash.load(None), str)


def later_than_all(self: object) -> int:
    """Return a revision that no log has, if the file is missing."""
    return 1 << 60


@pytest.mark.long
@pytest.mark.defence(LAST, later_than_all)
def test_after_a_power_cut_a_damaged_log_has_an_acknowledged_state(crash: Crash) -> None:
    assert crash.load(crash.content, power_cut=True) == crash.states[-1]
    attack_log(crash, 1, 60, power_cut=True)


def trust(content: bytes) -> int:
    """Return a high revision for each content without digits, in place of ``_decode``."""
    return int(content[:20]) if content[:20].isdigit() else 1 << 60


@pytest.mark.defence("openipu.vipu.storage.last_revision._decode", trust)
def test_a_damaged_revision_is_ignored(crash: Crash) -> None:
    for last in (b"", b"\xff" * 30, crash.last[:-1], b"9" + crash.last[1:]):
        assert load(crash.folder, {"": crash.database, "-wal": crash.content, "-revision": last}) == crash.states[-1]


@pytest.mark.defence(LAST, unknown)
def test_backups_and_checks_notice_a_damaged_log(crash: Crash, tmp_path: Path) -> None:
    crash.load(None)
    for path in crash.folder.glob("copy.db-shm"):
        path.unlink()
    Path(f"{crash.folder / 'copy.db'}-wal").unlink(missing_ok=True)
    with pytest.raises(StoreError, match="Its last changes are lost"):
        backup.check(crash.folder / "copy.db")
    with pytest.raises(StoreError, match="Its last changes are lost"):
        backup.create(crash.folder / "copy.db", tmp_path / "certs", tmp_path / "backup.tar.gz")
