# SPDX-License-Identifier: GPL-3.0-or-later
"""Audit of the history of etcd: every transaction was written by the controller that led at that time."""

from __future__ import annotations

import json
import queue
from collections.abc import Iterator
from typing import Any

from aetcd import rpc

from openipu.vipu.storage.etcd.client import EtcdClient
from openipu.vipu.storage.etcd.keys import Keys, Location, end_of


def revision(location: Location) -> int:
    """Return the present revision of etcd."""
    client = EtcdClient(location)
    try:
        return int(client.call("KV", "Range", rpc.RangeRequest(key=b"x"), 10.0).header.revision)
    finally:
        client.close()


def foreign_writes(location: Location, start: int) -> tuple[int, list[str]]:
    """Return the number of transactions after a revision, and a message for each one not written by the leader.

    ``start`` must be a revision without a leader. Revisions of the store must also grow by one.
    """
    keys, client = Keys(location.prefix), EtcdClient(location)
    leader = count = last = 0
    faults = []
    end = keys.prefix + b"audit"  # progress reports of etcd may come before the events, so the end is a key
    try:
        client.call("KV", "Put", rpc.PutRequest(key=end), 10.0)
        for event in _events(client, keys, start + 1, end):
            if event.kv.key == keys.leader:
                leader = 0 if event.type == rpc.Event.DELETE else event.kv.mod_revision
            elif event.kv.key == keys.head and event.type != rpc.Event.DELETE:
                head = json.loads(event.kv.value)
                count += 1
                if head["leader"] != leader:
                    faults.append(f"revision {event.kv.mod_revision}: leader {head['leader']} wrote, {leader} led")
                if last and head["revision"] - last not in (0, 1):
                    faults.append(f"revision {event.kv.mod_revision}: {head['revision']} follows {last}")
                last = head["revision"]
    finally:
        client.close()
    return count, faults


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
