# SPDX-License-Identifier: GPL-3.0-or-later
"""All records in etcd: creation, copies, and replacement while no controller leads."""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Iterator

from aetcd import rpc

from openipu.vipu.domain.deployment import Deployment
from openipu.vipu.domain.history import changed_objects
from openipu.vipu.domain.model import Kind, Put
from openipu.vipu.domain.state import State
from openipu.vipu.storage import event_log, snapshot
from openipu.vipu.storage.checksums import checksum, of_records
from openipu.vipu.storage.etcd import codec, mirror, staged
from openipu.vipu.storage.etcd.client import EtcdClient, EtcdUnavailableError
from openipu.vipu.storage.etcd.election import Leadership
from openipu.vipu.storage.etcd.keys import VERSION, Keys, Location
from openipu.vipu.storage.etcd.mirror import Content, DamagedError
from openipu.vipu.storage.etcd.staged import Operation
from openipu.vipu.storage.etcd.store import EtcdTransaction, check_version, load, revision_entries
from openipu.vipu.storage.etcd.writes import GuardedWriter
from openipu.vipu.storage.interface import StoreError
from openipu.vipu.storage.position import UNKNOWN, Position
from openipu.vipu.storage.snapshot import Snapshot

_TTL = 10  # seconds for the lease of a maintenance command


@contextlib.contextmanager
def connected(location: Location) -> Iterator[EtcdClient]:
    """Return a context with a client. Raises StoreError with the location when no node responds."""
    client = EtcdClient(location)
    try:
        yield client
    except EtcdUnavailableError as error:
        raise StoreError(
            f"Cannot use the store {str(location)!r}: no node responds ({error.details}). Check the addresses, that "
            "etcd runs there, and the options for TLS."
        ) from None
    finally:
        client.close()


def initialise(location: Location) -> bool:
    """Create an empty store unless it exists. Return whether it is new. Raises StoreError."""
    keys = Keys(location.prefix)
    revision = event_log.first_revision()
    with connected(location) as client:
        (entry,) = revision_entries(keys, revision, {})
        request = rpc.TxnRequest(
            compare=[
                rpc.Compare(key=key, target=rpc.Compare.CREATE, result=rpc.Compare.EQUAL, create_revision=0)
                for key in (keys.meta, keys.head)
            ],
            success=[
                rpc.RequestOp(request_put=rpc.PutRequest(key=key, value=(value or "").encode()))
                for key, value in (
                    (keys.meta, _meta(Deployment(secrets.token_hex(8)))),
                    (keys.head, json.dumps({"revision": revision, "total": 0, "leader": 0})),
                    entry,
                )
            ],
        )
        if client.call("KV", "Txn", request).succeeded:
            return True
        if mirror.read(client, keys).meta is None:
            with exclusive(location):  # completes a replacement that was committed and interrupted
                pass
        check_version(mirror.read(client, keys))
        return False


def exists(location: Location) -> bool:
    """Return whether the store was created. Raises StoreError."""
    with connected(location) as client:
        return mirror.read(client, Keys(location.prefix)).meta is not None


def read(location: Location) -> Snapshot:
    """Return the last committed records, while controllers may run. Raises StoreError."""
    with connected(location) as client:
        keys = Keys(location.prefix)
        content = mirror.read(client, keys)
        check_version(content)
        if content.head and "staged" in content.head:
            _apply_staged(client, keys, content)
        return _snapshot(keys, content)


@contextlib.contextmanager
def exclusive(location: Location, *, damaged_allowed: bool = False) -> Iterator[Exclusive]:
    """Return a context for changes while no controller can lead. Raises StoreError when one leads.

    ``damaged_allowed``: for ``replace``, which needs the names of all keys, but not their values.
    """
    keys = Keys(location.prefix)
    with connected(location) as client:
        leadership = Leadership(client, keys, {"maintenance": "vipu-server"}, _TTL)
        if not leadership.campaign():
            leader = mirror.read(client, keys, damaged_allowed=True).leader
            name = next(iter(leader.addresses.values()), "") if leader else ""
            raise StoreError(
                f"Cannot change the store {str(location)!r}: a controller uses it ({name}). Stop all controllers first."
            )
        try:
            content = mirror.read(client, keys, damaged_allowed=damaged_allowed)
            writer = GuardedWriter(client, keys, leadership, content.head_revision)
            try:
                if content.head and "staged" in content.head:
                    try:
                        writer.complete(content.head)
                    except DamagedError as error:
                        if not damaged_allowed:
                            raise
                        content.unreadable[keys.staged] = error.fault
                    else:
                        content = mirror.read(client, keys, damaged_allowed=damaged_allowed)
                yield Exclusive(keys, writer, content)
            finally:
                writer.close()
        finally:
            leadership.resign()


class Exclusive:
    """All records, which nothing else changes meanwhile."""

    def __init__(self, keys: Keys, writer: GuardedWriter, content: Content) -> None:
        """Use the present content."""
        self._keys = keys
        self._writer = writer
        self._content = content

    @property
    def empty(self) -> bool:
        """True before the creation of the store."""
        return self._content.meta is None and not self._content.unreadable

    def state(self) -> State:
        """Return the records. Raises StoreError when they are damaged."""
        check_version(self._content)
        return load(self._keys, self._content)[0]

    def snapshot(self) -> Snapshot:
        """Return the records with their identity. Raises StoreError when they are damaged."""
        return _snapshot(self._keys, self._content)

    def position(self) -> Position:
        """Return the last epoch and revision, which are known even when records are damaged."""
        meta, head = self._content.meta, self._content.head
        last = max((revision for revision, _ in self._content.history), default=0)
        if meta is None and head is None:
            return UNKNOWN
        return Position(meta.get("epoch", 0) if meta else 0, head["revision"] if head else last)

    def put(self, change: Put, state: State) -> None:
        """Write a record into ``state`` and the store. Raises StoreError."""
        _, stored, events = load(self._keys, self._content)
        before = state.copy()
        state.apply([change])
        transaction = EtcdTransaction(self._writer, self._keys, stored)
        transaction.add([change], state)
        transaction.log(events, changed_objects(before, state, [change]))
        transaction.commit()

    def replace(self, new: Snapshot) -> None:
        """Replace everything, in one transaction. Raises StoreError."""
        keys, content = self._keys, self._content
        operations: list[Operation] = [(keys.record(kind, id), None) for kind in Kind for id in content.records[kind]]
        operations += [(keys.revision(*entry), None) for entry in content.history]
        operations += [(key, None) for key in content.unreadable if key not in (keys.leader, keys.head)]
        operations += [
            (keys.record(record.kind, record.id), codec.encode(record, checksum(record))) for record in new.records
        ]
        operations += revision_entries(keys, new.revision, {})
        changes = dict(operations)  # etcd rejects two operations on a key
        changes.pop(keys.meta, None)
        head = {"revision": new.revision, "total": of_records(new.records).total}
        self._writer.commit(list(changes.items()), head, 0, _meta(new.deployment))


def _snapshot(keys: Keys, content: Content) -> Snapshot:
    check_version(content)
    state, _, events = load(keys, content)
    meta = content.meta
    assert meta is not None
    deployment = Deployment(meta["deployment"], meta["epoch"], meta["complete_since"])
    return snapshot.of_state(state, deployment, events.revision)


def _apply_staged(client: EtcdClient, keys: Keys, content: Content) -> None:
    """Apply a transaction that is committed and not yet executed, to the copy only. Raises StoreError."""
    assert content.head is not None
    for key, value in staged.read(client, keys, content.head["staged"], content.at):
        try:
            if value is None:
                content.delete(keys, key)
            else:
                content.put(keys, rpc.PutRequest(key=key, value=value.encode()))
        except (ValueError, RecursionError) as error:
            raise staged.damaged_operation(key.decode(), error) from None


def _meta(deployment: Deployment) -> str:
    return json.dumps(
        {
            "version": VERSION,
            "deployment": deployment.id,
            "epoch": deployment.epoch,
            "complete_since": deployment.complete_since,
        }
    )
