# SPDX-License-Identifier: GPL-3.0-or-later
"""Database: stored records, rejected changes, locking and permissions."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from openipu.shared.vipu.client import Connection
from openipu.vipu.domain.model import (
    Certificate,
    Change,
    Cluster,
    Delete,
    Device,
    Kind,
    Operation,
    PlacedIpu,
    Put,
    ReadyState,
    Role,
    User,
)
from openipu.vipu.domain.state import State
from openipu.vipu.server.initialise import first_admin, initialise
from openipu.vipu.storage import migrations
from openipu.vipu.storage.store import Store, StoreError
from tests.unit.vipu.domain.rules_support import agents, partition, pod, user

DEVICE = Device("127.5.1.1", 8080, 18515, 0, 2, "chip", "2.0.5", "2.4.4", "v1.3.3")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    initialise(path)
    opened = Store(path)
    yield opened
    opened.close()


def write(store: Store, state: State, *changes: Change) -> None:
    """Apply changes to a state and to the database."""
    state.apply(changes)
    transaction = store.transaction()
    transaction.add(changes, state)
    transaction.commit()


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


def test_all_records_are_restored(store: Store) -> None:
    state = State()
    write(store, state, *all_records(rack()))
    assert state == rack()
    assert reopened(store) == state


def test_an_ipu_cannot_be_in_two_partitions(store: Store) -> None:
    state = State()
    write(store, state, *all_records(rack()))
    write_raw = sqlite3.connect(store.path)
    with pytest.raises(sqlite3.IntegrityError, match=r"partition_ipus\.agent, partition_ipus\.ipu"):
        write_raw.execute(
            "INSERT INTO partition_ipus SELECT agent, ipu, 'small', segment, 99 FROM partition_ipus "
            "WHERE partition = 'one'"
        )
    write_raw.close()
    one = state.partitions["one"]
    transaction = store.transaction()
    transaction.add([Put(replace(one, id="thief"))], state)
    with pytest.raises(StoreError, match="UNIQUE constraint failed"):
        transaction.commit()
    assert reopened(store) == state


def test_changes_of_a_partition_are_stored(store: Store) -> None:
    state = State()
    write(store, state, *all_records(rack()))
    eight = state.partitions["eight"]
    for changed in (
        replace(eight, ready=ReadyState.ERROR, operation=Operation.FAILED, errors=("A.", "B.", "C.")),
        replace(eight, ready=ReadyState.ERROR, operation=Operation.FAILED, errors=("B.",)),
        replace(eight, ready=ReadyState.PENDING, operation=Operation.RESETTING, errors=(), devices=(), retries=1),
        replace(eight, devices=tuple(replace(DEVICE, chip_id=f"new {n}") for n in range(8))),
        replace(eight, devices=tuple(replace(DEVICE, chip_id=f"newer {n}") for n in range(8))),
    ):
        write(store, state, Put(changed))
        assert reopened(store) == state


def test_a_partition_moves_and_moves_back_in_one_transaction(store: Store) -> None:
    state = State()
    write(store, state, *all_records(pod(2)))
    one = partition(state, "one", 1)
    write(store, state, Put(one))
    moved = replace(one, ipus=(PlacedIpu(0, 0, 6, 0),))
    returned = replace(one, ipus=(replace(one.ipus[0]),))
    transaction = store.transaction()
    for record in (moved, returned, replace(moved, devices=(DEVICE,)), returned, moved):
        state.apply([Put(record)])
        transaction.add([Put(record)], state)
    transaction.commit()
    assert reopened(store) == state
    assert reopened(store).holders == {"ag02": {2: "one"}}


def test_ipus_change_their_partition_in_one_transaction(store: Store) -> None:
    state = State()
    write(store, state, *all_records(pod(1)))
    one = partition(state, "one", 1)
    write(store, state, Put(one))
    transaction = store.transaction()
    for changes in ([Delete(Kind.PARTITION, "one")], [Put(replace(one, id="two"))], [Delete(Kind.PARTITION, "two")]):
        state.apply(changes)
        transaction.add(changes, state)
    changes = [Put(replace(one, num_replicas=1))]
    state.apply(changes)
    transaction.add(changes, state)
    transaction.commit()
    assert reopened(store) == state
    assert list(state.partitions) == ["one"]


def test_a_cluster_and_its_partitions_are_created_and_deleted_in_one_transaction(store: Store) -> None:
    state, desired = State(), rack()
    transaction = store.transaction()
    for change in all_records(desired):
        state.apply([change])
        transaction.add([change], state)
    deletions: list[Change] = [Delete(Kind.PARTITION, id) for id in desired.partitions]
    deletions += [Delete(Kind.USER, id) for id in desired.users]
    deletions += [Delete(Kind.ALLOCATION, id) for id in desired.allocations]
    deletions.append(Delete(Kind.CLUSTER, "cl0"))
    state.apply(deletions)
    transaction.add(deletions, state)
    transaction.commit()
    assert reopened(store) == state
    assert list(state.agents) == [agent.id for agent in agents(8)]


def test_agents_exchange_their_endpoints_in_one_transaction(store: Store) -> None:
    first, second, third = agents(3)
    state = State()
    write(store, state, Put(first), Put(second))
    write(
        store,
        state,
        Put(replace(first, host=third.host)),
        Put(replace(second, host=first.host)),
        Put(replace(first, host=second.host)),
    )
    assert reopened(store) == state


def test_clusters_and_allocations_change(store: Store) -> None:
    state = State()
    write(store, state, *all_records(pod(4, allocations={"a1": 2})))
    cluster = state.clusters["cl0"]
    write(store, state, Put(Cluster("cl0", tuple(reversed(cluster.agents)), 2, cluster.topology)))
    write(store, state, Put(replace(state.allocations["a1"], agents=("ag04", "ag03", "ag02", "ag01"))))
    assert reopened(store) == state


def test_a_failed_commit_changes_nothing(store: Store) -> None:
    state = State()
    write(store, state, *all_records(rack()))
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    many = [Put(replace(agent, id=f"{agent.id}-{'x' * 50}", host=f"host-{agent.id}")) for agent in agents(500)]
    after = state.copy()
    transaction = store.transaction()
    after.apply(many)
    transaction.add(many, after)
    with pytest.raises(
        StoreError, match=r"^Cannot write to the database: database or disk is full\. Nothing was changed\.$"
    ):
        transaction.commit()
    assert reopened(store) == state
    write(store, state, Delete(Kind.PARTITION, "one"))  # a deletion is always possible
    assert reopened(store) == state


def test_values_of_a_wrong_type_are_rolled_back(store: Store) -> None:
    state = State()
    write(store, state, *all_records(rack()))
    transaction = store.transaction()
    other = user("other")
    transaction.add([Delete(Kind.PARTITION, "one"), Put(replace(other, allocations=None))], state)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        transaction.commit()
    assert not store._connection.in_transaction
    assert reopened(store) == state
    write(store, state, Delete(Kind.PARTITION, "one"))
    assert reopened(store) == state


def test_only_the_owner_can_read_it(store: Store) -> None:
    write(store, State(), *all_records(rack()))
    for file in store.path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_the_database_settings_make_commits_durable(store: Store) -> None:
    settings = {
        name: store._connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "foreign_keys")
    }
    assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_one_process_at_a_time(store: Store) -> None:
    script = "import sys, pathlib; from openipu.vipu.storage.store import Store; Store(pathlib.Path(sys.argv[1]))"
    other = subprocess.run([sys.executable, "-c", script, str(store.path)], capture_output=True, text=True, timeout=30)
    assert other.returncode == 1
    assert other.stderr.strip().endswith(
        f"Cannot open database {str(store.path)!r}: another vipu-server uses it. "
        "Stop that one, or give another --database."
    )


def test_a_missing_database_is_not_created_by_accident(path: Path) -> None:
    with pytest.raises(
        StoreError, match=r"Cannot open database .*: it does not exist\. Create it with 'vipu-server --init"
    ):
        Store(path)
    assert not path.exists()
    path.touch()
    with pytest.raises(StoreError, match=r"it is empty\. Create it with 'vipu-server --init"):
        Store(path)


def test_initialise_keeps_existing_records(store: Store) -> None:
    state = State()
    write(store, state, *all_records(rack()))
    path = store.path.with_name("again.db")
    store._connection.execute("VACUUM INTO ?", (str(path),))
    assert initialise(path) is False
    again = Store(path)
    assert again.load() == state
    again.close()


def test_first_admin_is_created_once(path: Path) -> None:
    initialise(path)
    written = first_admin(path, Connection("10.3.1.101", 8090), shared_certificate=True)
    assert written == path.parent / "admin.vipu-cli.hcl"
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert 'api-host="10.3.1.101"\napi-port=8090\napi-user-id="admin"\napi-access-key="' in written.read_text()
    assert first_admin(path, Connection("10.3.1.101", 8090), shared_certificate=True) is None
    opened = Store(path)
    assert [(user.id, user.role) for user in opened.load().users.values()] == [("admin", Role.ADMIN)]
    opened.close()


def spoil(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA foreign_keys = OFF")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_newer_database_is_rejected(path: Path) -> None:
    initialise(path)
    spoil(path, "UPDATE alembic_version SET version_num = '9999'")
    before = path.read_bytes()
    with pytest.raises(
        StoreError,
        match=rf"it was written by a newer release \(version 9999, this release supports {migrations.HEAD}\)",
    ):
        Store(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_of_the_controller_is_rejected(path: Path) -> None:
    spoil(path, "CREATE TABLE notes (text)")
    with pytest.raises(StoreError, match="it belongs to another program"):
        Store(path)
    path.write_text("This is a letter, and no database at all, however long it may be. " * 20)
    with pytest.raises(StoreError, match=r"Cannot use database .*: file is not a database"):
        Store(path)
    with pytest.raises(StoreError, match=r"Cannot open database .*: Is a directory\. Check the path"):
        Store(path.parent)


def test_a_database_in_a_missing_folder_is_not_created(path: Path) -> None:
    database = path.parent / "missing" / "vipu.db"
    with pytest.raises(StoreError) as error:
        Store(database, create=True)
    assert str(error.value) == (
        f"Cannot open database {str(database)!r}: folder {str(database.parent)!r} does not exist. "
        "Create the folder, or give another --database."
    )


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("DELETE FROM agents WHERE id = 'ag01'", "The cluster 'cl0' is invalid"),
        ("DELETE FROM cluster_agents WHERE agent = 'ag03'", "ag03"),
        ("UPDATE clusters SET topology = 'star'", "star"),
        ("UPDATE clusters SET num_ilds = 3", "cannot be divided evenly"),
        ("UPDATE partitions SET num_gcds = 3 WHERE id = 'eight'", "The partition 'eight' is invalid"),
        ("DELETE FROM partition_ipus WHERE partition = 'one'", "The partition 'one' is invalid: it has no IPUs"),
        ("DELETE FROM devices WHERE ipu = 2", "The partition 'eight' is invalid: it has 8 IPUs but 6 devices"),
        ("UPDATE partitions SET ready = 9", "9 is not a valid ReadyState"),
        ("UPDATE users SET role = 'emperor'", "emperor"),
        ("DROP TABLE devices", "no such table: devices"),
    ],
)
def test_a_damaged_database_is_rejected(store: Store, damage: str, message: str) -> None:
    write(store, State(), *all_records(rack()))
    spoil(store.path, damage)
    with pytest.raises(StoreError) as caught:
        store.load()
    assert message in str(caught.value)
    assert "Restore a backup" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_head_of_the_migrations_is_the_one_that_is_expected() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    assert ScriptDirectory.from_config(config).get_heads() == [migrations.HEAD]


def test_an_up_to_date_database_needs_no_alembic(store: Store) -> None:
    store.close()
    script = (
        "import sys, pathlib; from openipu.vipu.storage.store import Store; "
        "s = Store(pathlib.Path(sys.argv[1])); s.load(); "
        "s.close(); assert not {'alembic', 'sqlalchemy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script, str(store.path)], check=True, timeout=30)
    store.__init__(store.path)  # type: ignore[misc]


def test_certificates_of_users(store: Store) -> None:
    state = State()
    own = (Certificate("k1", "1f", 100, True), Certificate("k2", "2f", 200))
    user = User("alice", Role.USER, (), "hash", "salt", own)
    write(store, state, Put(user), Put(User("bob", Role.USER, (), "hash", "salt")))
    assert reopened(store).users == state.users
    write(store, state, Put(replace(user, certificates=own[1:])))
    assert reopened(store).users == state.users
    write(store, state, Delete(Kind.USER, "alice"))
    assert (reopened(store).users, reopened(store).certificate_users) == (state.users, {})
