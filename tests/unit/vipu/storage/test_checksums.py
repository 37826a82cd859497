# SPDX-License-Identifier: GPL-3.0-or-later
"""Checksums of records: every field counts, and the sum notices missing and outdated records."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path

import pytest

from openipu.vipu.domain.certificates import needs_own
from openipu.vipu.domain.model import Delete, Device, Kind, Operation, Partition, PlacedIpu, Put, Record
from openipu.vipu.storage import migrations
from openipu.vipu.storage.checksums import Checksums, checksum, of_records, stored_total
from openipu.vipu.storage.store import Store, StoreError
from tests.unit.vipu.domain.rules_support import agents
from tests.unit.vipu.storage import first_version
from tests.unit.vipu.storage.store_support import all_records, rack, spoil, write


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "records.db", create=True)
    write(opened, opened.load(), *all_records(rack()))
    yield opened
    opened.close()


def records() -> list[Record]:
    state = rack()
    return [record for kind in Kind for record in state.table(kind).values()]


@pytest.mark.parametrize("record", records(), ids=lambda record: f"{record.kind} {record.id}")
def test_every_field_counts(record: Record) -> None:
    for field in fields(record):
        value = getattr(record, field.name)
        other = (
            value[:-1] or ("other",) if isinstance(value, tuple) else 77 if field.type == "float | None" else "other"
        )
        assert checksum(replace(record, **{field.name: other})) != checksum(record), field.name


@pytest.mark.parametrize("sort", [PlacedIpu, Device])
def test_every_field_of_a_part_counts(sort: type[PlacedIpu] | type[Device]) -> None:
    part = sort(*range(len(fields(sort))))  # type: ignore[arg-type]
    where = "ipus" if sort is PlacedIpu else "devices"
    record = replace(Partition("p", "a", "c", ()), **{where: (part, part)})
    for field in fields(sort):
        other = replace(record, **{where: (part, replace(part, **{field.name: 99}))})
        assert checksum(other) != checksum(record), field.name


def test_checksums_do_not_depend_on_the_process() -> None:
    assert checksum(agents(1)[0]) == 2351954717865069736
    assert checksum(Partition("p", "a", "c", (PlacedIpu(0, 0, 1, 0),))) == -7200332645595444261


def test_whole_real_numbers_have_one_form() -> None:
    record = Partition("p", "a", "c", (), last_auto_reset=5.0)
    assert checksum(replace(record, last_auto_reset=5)) == checksum(record)
    assert checksum(replace(record, last_auto_reset=5.5)) != checksum(record)


def test_the_sum_follows_the_changes() -> None:
    first, second = (checksum(agent) for agent in agents(2))
    sums = of_records(agents(2))
    assert -(1 << 63) <= sums.total < 1 << 63
    assert (sums.total - first - second) % (1 << 64) == 0
    changes = {Kind.AGENT: {"ag01": 0, "ag02": 5}, Kind.USER: {"u": 7, "unknown": 0}}
    assert sums.total_with(changes) == 12
    sums.apply(changes, sums.total_with(changes))
    assert sums.total == 12
    assert Checksums({}).total == 0


def test_stored_checksums_match_after_each_change(store: Store) -> None:
    state = store.load()
    small = state.partitions["small"]
    for changes in (
        [Put(replace(small, retries=2, errors=("Another.",)))],
        [Put(replace(small, operation=Operation.REMOVING)), Delete(Kind.PARTITION, "small")],
        [Delete(Kind.USER, "alice"), Put(replace(agents(1)[0], host="10.9.9.9"))],
        [Delete(Kind.PARTITION, "one"), Put(state.partitions["one"])],
    ):
        write(store, state, *changes)
        assert Store.load(store) == state


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("UPDATE agents SET port = port + 1 WHERE id = 'ag02'", "The agent 'ag02' does not match its checksum"),
        ("UPDATE clusters SET topology = 'mesh'", "The cluster 'cl0' does not match its checksum"),
        ("UPDATE partitions SET checksum = 0", "The partition 'eight' does not match its checksum (and 2 more faults)"),
        ("UPDATE devices SET chip_id = 'x' WHERE ipu = 2", "The partition 'eight' does not match its checksum"),
        ("DELETE FROM partition_errors WHERE position = 1", "The partition 'small' does not match its checksum"),
        ("UPDATE users SET role = 'admin' WHERE id = 'alice'", "The user 'alice' does not match its checksum"),
        ("DELETE FROM user_allocations WHERE position = 1", "The user 'alice' does not match its checksum"),
        ("DELETE FROM users WHERE id = 'root'", "Records are missing or outdated"),
        ("UPDATE record_checksum SET total = total + 1", "Records are missing or outdated"),
        ("DELETE FROM agents WHERE id = 'ag01'", "Records are missing or outdated"),
        ("DELETE FROM clusters", "A record refers to 'cl0', which is missing"),
    ],
)
def test_changed_records_are_noticed(store: Store, damage: str, message: str) -> None:
    spoil(store.path, damage)
    with pytest.raises(StoreError) as caught:
        store.load()
    assert str(caught.value) == (
        f"Cannot read database {str(store.path)!r}: it is damaged. {message}. Restore a backup."
    )


def test_a_migration_computes_the_checksums_anew(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    first_version.create(path)
    for _ in range(2):
        store = Store(path)
        assert list(store.load().agents.values()) == list(agents(1))
        store.close()
    with closing(sqlite3.connect(path)) as connection:
        assert migrations.version(connection) == migrations.HEAD
        assert stored_total(connection) == checksum(agents(1)[0])


def test_users_of_earlier_releases_keep_the_shared_certificate(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    first_version.create(path)
    spoil(path, "INSERT INTO users VALUES ('alice', 'admin', 'hash', 'salt')")
    for _ in range(2):
        store = Store(path)
        (alice,) = store.load().users.values()
        store.close()
        assert (alice.shared_certificate, needs_own(alice)) == (True, False)


def test_users_of_earlier_releases_keep_their_allocations(tmp_path: Path) -> None:
    """A user without allocations must not become a user of all allocations."""
    path = tmp_path / "old.db"
    first_version.create(path)
    spoil(
        path,
        "INSERT INTO users VALUES ('alice', 'user', 'hash', 'salt'), ('bob', 'user', 'hash', 'salt')",
        "INSERT INTO clusters VALUES ('cl0', 1, 'mesh', 'looped')",
        "INSERT INTO cluster_agents VALUES ('ag01', 'cl0', 0)",
        "INSERT INTO allocations VALUES ('a1', 'cl0')",
        "INSERT INTO allocation_agents VALUES ('ag01', 'a1')",
        "INSERT INTO user_allocations VALUES ('bob', 0, 'a1')",
    )
    store = Store(path)
    users = store.load().users
    store.close()
    rights = {id: (user.allocations, user.all_allocations) for id, user in users.items()}
    assert rights == {"alice": ((), False), "bob": (("a1",), False)}


def test_agents_of_earlier_releases_are_in_service(tmp_path: Path) -> None:
    first_version.create(tmp_path / "old.db")
    store = Store(tmp_path / "old.db")
    (agent,) = store.load().agents.values()
    store.close()
    assert (agent.out_of_service, agent.service_reason) == (False, "")


def test_a_failed_migration_is_reported(store: Store) -> None:
    """A damaged version may repeat a migration."""
    store.close()
    spoil(store.path, "UPDATE alembic_version SET version_num = '0001'")
    with pytest.raises(StoreError, match=r"Cannot use database .*: (duplicate column|table \w+ already exists)"):
        Store(store.path)
    spoil(store.path, f"UPDATE alembic_version SET version_num = '{migrations.HEAD}'")
    store.__init__(store.path)  # type: ignore[misc]
    assert store.load() == rack()
