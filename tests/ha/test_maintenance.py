# SPDX-License-Identifier: GPL-3.0-or-later
"""Migration between the database and etcd, backups and restores, as commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from aetcd import rpc

from openipu.vipu.server.initialise import initialise
from openipu.vipu.storage import snapshot, transfer
from openipu.vipu.storage.etcd import content
from openipu.vipu.storage.etcd.keys import Keys, Location, end_of
from openipu.vipu.storage.etcd.mirror import DamagedError
from openipu.vipu.storage.store import Store
from tests.ha.replica import Replica
from tests.integration.vipu_servers import run
from tests.unit.vipu.storage.store_support import all_records, rack, write


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database with the records of a rack."""
    path = tmp_path / "vipu-server.db"
    initialise(path)
    with closing(Store(path)) as store:
        write(store, store.load(), *all_records(rack()))
        store.begin_epoch()
    return path


@pytest.fixture
def leader(location: Location) -> Iterator[Replica]:
    content.initialise(location)
    replica = Replica(location)
    replica.lead()
    yield replica
    replica.close()


def test_migration_there_and_back(database: Path, url: str, location: Location, tmp_path: Path) -> None:
    original, back = snapshot.from_database(database), tmp_path / "back" / "vipu-server.db"
    there = run("migrate", "--database", str(database), "--store", url)
    assert there.stdout == (
        f"Migrated: {database} to {location} (8 agents, 1 cluster, 3 allocations, 3 partitions and 3 users)\n"
    ), there.stderr
    assert content.read(location) == original
    again = run("migrate", "--database", str(database), "--store", url)
    assert again.returncode == 1
    assert "has records already" in again.stderr
    assert content.read(location) == original
    returned = run("migrate", "--to-database", "--database", str(back), "--store", url)
    assert returned.returncode == 0, returned.stderr
    assert snapshot.from_database(back) == original
    occupied = run("migrate", "--to-database", "--database", str(back), "--store", url)
    assert "exists already. Nothing was changed" in occupied.stderr


def test_a_migration_needs_that_no_controller_leads(database: Path, url: str, leader: Replica, tmp_path: Path) -> None:
    for options in (["--database", str(database)], ["--to-database", "--database", str(tmp_path / "new.db")]):
        ended = run("migrate", *options, "--store", url)
        assert ended.returncode == 1
        assert "a controller uses it" in ended.stderr


def test_backup_and_restore(database: Path, url: str, location: Location, tmp_path: Path) -> None:
    """A backup of either store restores either store."""
    assert run("migrate", "--database", str(database), "--store", url).returncode == 0
    before = content.read(location)
    archive = tmp_path / "backup.tar.gz"
    made = run("backup", "--store", url, "--certs", str(tmp_path / "none"), str(archive))
    assert made.returncode == 0, made.stderr
    checked = run("check", "--store", url)
    assert checked.stdout.splitlines()[1] == f"Deployment: {before.deployment.id}", checked.stderr

    with content.exclusive(location) as records:
        records.replace(snapshot.Snapshot(before.records[:-1], before.deployment, before.revision + 7))
    command = ["restore", "--store", url, "--records-only", str(archive)]
    existing = run(*command)
    assert "already exists. Nothing was restored" in existing.stderr
    restored = run(*command, "--overwrite")
    assert restored.returncode == 0, restored.stderr
    after = content.read(location)
    assert after.records == before.records
    assert after.deployment.id == before.deployment.id
    assert after.deployment.epoch == after.deployment.complete_since > before.deployment.epoch
    assert after.revision > before.revision + 7

    other = tmp_path / "other.db"
    assert run("restore", "--database", str(other), "--records-only", str(archive)).returncode == 0
    assert snapshot.from_database(other).records == before.records


@pytest.mark.parametrize("name", ["records/agent/", "head", "meta", "revisions/"])
def test_damaged_records_are_restored(database: Path, url: str, location: Location, tmp_path: Path, name: str) -> None:
    assert run("migrate", "--database", str(database), "--store", url).returncode == 0
    before = content.read(location)
    archive = tmp_path / "backup.tar.gz"
    assert run("backup", "--store", url, "--certs", str(tmp_path / "none"), str(archive)).returncode == 0
    prefix = location.prefix.encode() + name.encode()
    with content.connected(location) as client:
        found = client.call("KV", "Range", rpc.RangeRequest(key=prefix, range_end=end_of(prefix)))
        client.call("KV", "Put", rpc.PutRequest(key=found.kvs[0].key, value=b"damaged"))
    checked = run("check", "--store", url)
    assert checked.returncode == 1
    fault = f"they are damaged. The key {found.kvs[0].key.decode()!r} has a damaged name or value: "
    assert fault in " ".join(checked.stderr.split())
    assert checked.stderr.rstrip().endswith("Restore a backup.")
    command = ["restore", "--store", url, "--records-only", str(archive)]
    assert "already exists. Nothing was restored" in run(*command).stderr
    restored = run(*command, "--overwrite", "--yes")
    assert restored.returncode == 0, restored.stderr
    after = content.read(location)
    assert after.records == before.records
    assert after.revision > before.revision


def test_a_missing_revision_is_reported_with_its_key(database: Path, location: Location) -> None:
    transfer.to_etcd(database, location)
    keys = Keys(location.prefix)
    last = keys.revision(content.read(location).revision)
    with content.connected(location) as client:
        client.call("KV", "DeleteRange", rpc.DeleteRangeRequest(key=last))
    with pytest.raises(DamagedError) as raised:
        content.read(location)
    assert raised.value.fault == (
        f"The log of revisions must end with the key {last.decode()!r}, as the key {keys.head.decode()!r} requires."
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [("records/agent/a", "{"), ("records/unknown/a", "{}"), ("revisions/x/0", "{}"), ("records/agent/a", 5), (5, "{}")],
    ids=str,
)
def test_damaged_values_of_a_committed_transaction_are_reported_and_restored(
    database: Path, location: Location, key: str | int, value: str | int
) -> None:
    """A leader has ended between the commit of a large transaction and its execution."""
    transfer.to_etcd(database, location)
    before = content.read(location)
    name = location.prefix + key if isinstance(key, str) else key
    keys = Keys(location.prefix)
    with content.connected(location) as client:
        head = json.loads(client.call("KV", "Range", rpc.RangeRequest(key=keys.head)).kvs[0].value)
        values = {
            keys.staged_part("1-1", 0): [[name, value]],
            keys.head: {**head, "staged": {"name": "1-1", "parts": 1}},
        }
        for changed, object in values.items():
            client.call("KV", "Put", rpc.PutRequest(key=changed, value=json.dumps(object).encode()))
    with pytest.raises(DamagedError) as raised:
        content.read(location)
    assert str(raised.value).startswith(
        f"Cannot read the records in etcd: they are damaged. A committed transaction has the key {name!r}"
    )
    assert str(raised.value).endswith("Restore a backup.")
    with content.exclusive(location, damaged_allowed=True) as target:
        target.replace(before.restored(target.position()))
    assert content.read(location).records == before.records


def test_a_restore_names_lost_partitions(database: Path, url: str, location: Location, tmp_path: Path) -> None:
    content.initialise(location)
    archive = tmp_path / "empty.tar.gz"
    assert run("backup", "--store", url, "--certs", str(tmp_path / "none"), str(archive)).returncode == 0
    with content.exclusive(location) as records:
        records.replace(snapshot.from_database(database))
    ended = run("restore", "--store", url, "--records-only", "--overwrite", str(archive))
    assert ended.returncode == 1
    assert "Partitions that are not in the backup: eight, one, small" in ended.stdout
    assert "Nothing was restored. Pass --yes" in ended.stderr
    assert len(content.read(location).records) > 0


def test_the_first_administrator(url: str, tmp_path: Path) -> None:
    certs, database = tmp_path / "certs", tmp_path / "vipu-server.db"
    command = ["--init", "--secure", "--tls-init", str(certs), "--store", url, "--database", str(database)]
    made = run(*command)
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "admin.vipu-cli.hcl").exists()
    assert not database.exists()
    assert run(*command[:2], "--certs", str(certs), *command[4:]).returncode == 0
