# SPDX-License-Identifier: GPL-3.0-or-later
"""Records of a newer release in etcd: every message names the release, and none claims damage."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from aetcd import rpc

from openipu.vipu.domain.deployment import Deployment
from openipu.vipu.domain.model import Agent, Put
from openipu.vipu.domain.state import State
from openipu.vipu.server.initialise import initialise
from openipu.vipu.storage import snapshot
from openipu.vipu.storage.etcd import codec, content, mirror, writes
from openipu.vipu.storage.etcd.client import EtcdClient
from openipu.vipu.storage.etcd.keys import VERSION, Keys, Location
from openipu.vipu.storage.interface import LeadershipLostError, StoreError
from openipu.vipu.storage.store import Store
from tests.ha.replica import Replica
from tests.ha.store_writes import end_after
from tests.integration.vipu_servers import run
from tests.unit.vipu.storage.store_support import all_records, rack, write

Values = dict[str, Any]
NEWER: dict[str, Values] = {
    "field": {"records/agent/new": {"checksum": 1, "record": {"id": "new", "host": "10.0.0.1", "colour": "red"}}},
    "kind": {"records/rack/r1": {"checksum": 1, "record": {"id": "r1"}}},
    "head": {"head": {"revisions": [1]}},
    "meta": {"meta": {"version": VERSION + 1}},
    "nothing else": {},
}
"""Keys of a newer release, beside a ``meta`` with its version."""


@pytest.fixture
def existing(location: Location) -> Iterator[EtcdClient]:
    """A client of a store that exists."""
    content.initialise(location)
    with content.connected(location) as client:
        yield client


def upgrade(client: EtcdClient, keys: Keys, values: Values) -> None:
    """Write keys and then the new version, in one transaction."""
    meta = json.loads(client.call("KV", "Range", rpc.RangeRequest(key=keys.meta)).kvs[0].value)
    everything = {"meta": {**meta, "version": VERSION + 1}} | values
    puts = [
        rpc.RequestOp(request_put=rpc.PutRequest(key=keys.prefix + name.encode(), value=json.dumps(value).encode()))
        for name, value in sorted(everything.items(), key=lambda item: item[0] == "meta")
    ]
    assert client.call("KV", "Txn", rpc.TxnRequest(success=puts)).succeeded


def rejected(action: Callable[[], object]) -> None:
    """Check that an action names the newer release."""
    with pytest.raises(StoreError, match="newer release") as raised:
        action()
    assert "damaged" not in str(raised.value)


@pytest.mark.parametrize("values", NEWER.values(), ids=NEWER)
def test_a_complete_read(existing: EtcdClient, location: Location, values: Values) -> None:
    upgrade(existing, Keys(location.prefix), values)
    rejected(lambda: content.read(location))
    rejected(lambda: content.initialise(location))
    rejected(lambda: Replica(location))
    with pytest.raises(StoreError, match="newer release"), content.exclusive(location):
        pass


@pytest.mark.parametrize("values", NEWER.values(), ids=NEWER)
def test_a_follower(existing: EtcdClient, location: Location, values: Values) -> None:
    replica = Replica(location)
    with closing(replica):
        upgrade(existing, replica.keys, values)
        rejected(lambda: replica.mirror.wait(lambda seen: False, 10))
        replica.mirror.stop()
        assert replica.mirror.fault is not None


def test_a_follower_whose_watch_was_compacted(existing: EtcdClient, location: Location) -> None:
    replica = Replica(location)
    with closing(replica):
        upgrade(existing, replica.keys, NEWER["kind"])
        rejected(lambda: replica.mirror._restart(rpc.WatchResponse(canceled=True)))


def test_damage_with_the_version_of_this_release(existing: EtcdClient, location: Location) -> None:
    """A follower that reads the version after a fault still reports damage."""
    replica = Replica(location)
    with closing(replica):
        existing.call("KV", "Put", rpc.PutRequest(key=replica.keys.records + b"rack/r1", value=b"{}"))
        with pytest.raises(mirror.DamagedError, match=r"The key '.+/records/rack/r1' has .+\. Restore a backup\."):
            replica.mirror.wait(lambda seen: False, 10)


@pytest.mark.parametrize("transactions", range(8))
def test_an_interrupted_replacement(
    existing: EtcdClient, location: Location, monkeypatch: pytest.MonkeyPatch, transactions: int
) -> None:
    """The version is written before the first record of the newer release, in whichever order records are written."""
    before = content.read(location)
    state = State()
    state.apply(all_records(rack()))
    new = snapshot.of_state(state, Deployment("d1", 3, 1), before.revision + 7)
    with monkeypatch.context() as newer:
        newer.setattr(writes, "MAX_OPERATIONS", 4)
        newer.setattr(writes, "_PARALLEL", 1)
        newer.setattr(content, "VERSION", VERSION + 1)
        newer.setattr(codec, "encode", lambda record, checksum: '{"new": "form"}')
        with pytest.raises(LeadershipLostError), content.exclusive(location) as target:
            writer = target._writer
            end_after(newer, writer._client, writer._leadership, transactions)
            target.replace(new)
    if transactions < 2:  # the second transaction commits: part, head
        assert content.read(location) == before
    else:
        rejected(lambda: content.read(location))


@pytest.fixture
def archive(existing: EtcdClient, url: str, tmp_path: Path) -> Path:
    """A backup of the store, before its upgrade."""
    path = tmp_path / "backup.tar.gz"
    made = run("backup", "--store", url, "--certs", str(tmp_path / "none"), str(path))
    assert made.returncode == 0, made.stderr
    return path


def test_commands(existing: EtcdClient, archive: Path, url: str, location: Location, tmp_path: Path) -> None:
    database = tmp_path / "vipu-server.db"
    initialise(database)
    with closing(Store(database)) as store:
        write(store, store.load(), Put(Agent("ag0", "10.0.0.1")))
    upgrade(existing, Keys(location.prefix), NEWER["kind"] | NEWER["field"])
    restore = ["restore", "--store", url, "--records-only", "--overwrite", str(archive)]
    for command in (
        ["--host", "127.0.0.1", "--port", "0", "--store", url],
        ["--init", "--store", url],
        ["check", "--store", url],
        ["backup", "--store", url, "--certs", str(tmp_path / "none"), str(tmp_path / "new.tar.gz")],
        ["migrate", "--store", url, "--database", str(database)],
        ["migrate", "--to-database", "--store", url, "--database", str(tmp_path / "back.db")],
        restore,
    ):
        ended = run(*command)
        output = ended.stdout + ended.stderr
        assert ended.returncode == 1, output
        assert "newer release" in output
        assert "damaged" not in output
    restored = run(*restore, "--yes")
    assert restored.returncode == 0, restored.stderr
    assert run("check", "--store", url).returncode == 0


def test_a_command_while_a_newer_release_leads(
    existing: EtcdClient, url: str, location: Location, archive: Path
) -> None:
    replica = Replica(location)
    with closing(replica):
        replica.lead()
        upgrade(existing, replica.keys, NEWER["kind"])
        ended = run("restore", "--store", url, "--records-only", "--overwrite", str(archive))
    assert ended.returncode == 1
    assert "a controller uses it (127.0.0.1:1)" in ended.stderr
