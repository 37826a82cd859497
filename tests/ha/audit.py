# SPDX-License-Identifier: GPL-3.0-or-later
"""Audit of the history of etcd: only the leader of the time wrote, and no IPU was ever in two partitions."""

from __future__ import annotations

import json
import queue
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from aetcd import rpc

from openipu.vipu.domain.model import Kind, Partition
from openipu.vipu.storage.etcd import codec
from openipu.vipu.storage.etcd.client import EtcdClient
from openipu.vipu.storage.etcd.keys import Keys, Location, end_of

Ipu = tuple[str, int, int]  # cluster, IPU-Link domain and number in it


@dataclass
class Findings:
    """Result of an audit. All messages begin with the revision of etcd."""

    transactions: int = 0  # with records
    foreign: list[str] = field(default_factory=list)  # transactions that the leader did not write
    shared: list[str] = field(default_factory=list)  # IPUs in two partitions, or twice in one


class Allocations:
    """Partitions of each IPU, as of one revision."""

    def __init__(self) -> None:
        self._ipus: dict[str, list[Ipu]] = {}  # by partition
        self._users: defaultdict[Ipu, list[str]] = defaultdict(list)  # partitions
        self._changed: set[Ipu] = set()

    def put(self, partition: Partition) -> None:
        """Add or replace a partition."""
        self.delete(partition.id)
        self._ipus[partition.id] = [(partition.cluster, ipu.ild, ipu.topology_id) for ipu in partition.ipus]
        for ipu in self._ipus[partition.id]:
            self._users[ipu].append(partition.id)
            self._changed.add(ipu)

    def delete(self, id: str) -> None:
        """Remove a partition, if there is one."""
        for ipu in self._ipus.pop(id, ()):
            self._users[ipu].remove(id)

    def collisions(self) -> list[str]:
        """Return the IPUs with several users, of those that partitions have received since the last call."""
        changed, self._changed = sorted(self._changed), set()
        return [
            f"IPU {number} in domain {ild} of {cluster} is used by {' and '.join(users)}"
            for cluster, ild, number in changed
            if len(users := self._users[cluster, ild, number]) > 1
        ]


def revision(location: Location) -> int:
    """Return the present revision of etcd."""
    client = EtcdClient(location)
    try:
        return int(client.call("KV", "Range", rpc.RangeRequest(key=b"x"), 10.0).header.revision)
    finally:
        client.close()


def replay(location: Location, start: int) -> Findings:
    """Return the findings in all transactions after a revision without a leader and partitions.

    Revisions of the store must also grow by one.
    """
    keys, client = Keys(location.prefix), EtcdClient(location)
    findings, allocations = Findings(), Allocations()
    leader = last = 0
    staged = False  # the operations of a large transaction are executed one group after the other
    end = keys.prefix + b"audit"  # progress reports of etcd may come before the events, so the end is a key
    try:
        client.call("KV", "Put", rpc.PutRequest(key=end), 10.0)
        events = _events(client, keys, start + 1, end)
        for revision, changes in groupby(events, lambda event: int(event.kv.mod_revision)):
            for event in changes:
                deleted = event.type == rpc.Event.DELETE
                if event.kv.key == keys.leader:
                    leader = 0 if deleted else revision
                elif event.kv.key == keys.head and not deleted:
                    head = json.loads(event.kv.value)
                    findings.transactions += 1
                    staged = "staged" in head
                    if head["leader"] != leader:
                        findings.foreign.append(f"revision {revision}: leader {head['leader']} wrote, {leader} led")
                    if last and head["revision"] - last not in (0, 1):
                        findings.foreign.append(f"revision {revision}: {head['revision']} follows {last}")
                    last = head["revision"]
                elif event.kv.key.startswith(keys.records):
                    _apply(allocations, keys, event, deleted)
            if not staged:
                findings.shared += [f"revision {revision}: {each}" for each in allocations.collisions()]
    finally:
        client.close()
    return findings


def _apply(allocations: Allocations, keys: Keys, event: Any, deleted: bool) -> None:
    """Apply a change of a record. Raises ValueError for a damaged one."""
    kind, id = keys.split_record(event.kv.key)
    if kind is not Kind.PARTITION:
        return
    if deleted:
        allocations.delete(id)
    else:
        partition, _ = codec.decode(kind, id, event.kv.value)
        assert isinstance(partition, Partition)
        allocations.put(partition)


def _events(client: EtcdClient, keys: Keys, start: int, end: bytes) -> Iterator[Any]:
    """Yield all events of the prefix from revision ``start`` until the key ``end`` is written."""
    requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
    created = rpc.WatchCreateRequest(key=keys.prefix, range_end=end_of(keys.prefix), start_revision=start)
    requests.put(rpc.WatchRequest(create_request=created))
    with client.watching(iter(requests.get, None)) as stream:
        try:
            for response in stream:
                assert not response.canceled, response.cancel_reason
                for event in response.events:
                    if event.kv.key == end:
                        return
                    yield event
        finally:
            requests.put(None)
