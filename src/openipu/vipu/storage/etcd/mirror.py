# SPDX-License-Identifier: GPL-3.0-or-later
"""Copy of all keys below the prefix, which follows etcd by watch: followers have the records before they lead."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog
from aetcd import rpc

from openipu.vipu.domain.model import Kind, Record
from openipu.vipu.storage.checksums import ByKind
from openipu.vipu.storage.etcd import codec
from openipu.vipu.storage.etcd.client import EtcdClient, EtcdError
from openipu.vipu.storage.etcd.keys import VERSION, Keys, end_of
from openipu.vipu.storage.interface import StoreError

_META = {"version": int, "deployment": str, "epoch": int, "complete_since": int}
_HEAD = {"revision": int, "total": int}
_PAGE = 500  # keys of one response
_PROGRESS_SECONDS = 0.5  # between two requests that prove that the node of the watch responds
_MAX_SILENCE = 2.0  # seconds without a response until another node is used
_RETRY_SECONDS = 0.2

_log = structlog.get_logger("openipu.vipu.storage.etcd")


class DamagedError(StoreError):
    """Raised for records that cannot be used. ``fault``: a sentence about what is damaged."""

    def __init__(self, fault: str) -> None:
        super().__init__(f"Cannot read the records in etcd: they are damaged. {fault} Restore a backup.")
        self.fault = fault


class NewerReleaseError(StoreError):
    """Raised for records in the format of a newer release, which this one may not be able to decode."""


@dataclass(frozen=True, slots=True)
class Leader:
    """Leader key: its value, its lease, and the revision of etcd that created it, which is the token of the leader."""

    addresses: dict[str, str]
    token: int
    lease: int


@dataclass
class Content:
    """Decoded keys. ``at``: revision of etcd up to which they are complete.

    ``unreadable``: keys with damaged values, with the fault; they are missing in the other fields.
    """

    at: int = 0
    records: dict[Kind, dict[str, Record]] = field(default_factory=lambda: {kind: {} for kind in Kind})
    checksums: ByKind = field(default_factory=lambda: {kind: {} for kind in Kind})
    history: dict[tuple[int, int], bytes] = field(default_factory=dict)  # by revision and part
    meta: dict[str, Any] | None = None
    head: dict[str, Any] | None = None
    head_revision: int = 0  # of etcd, of the last change of the head
    leader: Leader | None = None
    unreadable: dict[bytes, str] = field(default_factory=dict)

    def put(self, keys: Keys, pair: Any) -> None:
        """Apply a key with a value. Raises ValueError for a damaged one."""
        key, value = pair.key, pair.value
        if key.startswith(keys.records):
            kind, id = keys.split_record(key)
            self.records[kind][id], self.checksums[kind][id] = codec.decode(kind, id, value)
        elif key.startswith(keys.revisions):
            self.history[keys.split_revision(key)] = value
        elif key == keys.head:
            self.head_revision = pair.mod_revision
            self.head = _object(value, _HEAD)
        elif key == keys.meta:
            self.meta = _meta(value)
        elif key == keys.leader:
            self.leader = Leader(json.loads(value), pair.mod_revision, pair.lease)

    def delete(self, keys: Keys, key: bytes) -> None:
        """Apply the removal of a key. Raises ValueError for an invalid one."""
        if key.startswith(keys.records):
            kind, id = keys.split_record(key)
            self.records[kind].pop(id, None)
            self.checksums[kind].pop(id, None)
        elif key.startswith(keys.revisions):
            self.history.pop(keys.split_revision(key), None)
        elif key == keys.leader:
            self.leader = None
        elif key == keys.head:
            self.head = None
        elif key == keys.meta:
            self.meta = None


def _meta(value: bytes) -> dict[str, Any]:
    """Return the value of ``meta``, of which only the version is known in a newer release. Raises ValueError."""
    found = _object(value, {"version": int})
    return _object(value, _META) if found["version"] == VERSION else found


def _object(value: bytes, types: Mapping[str, type]) -> dict[str, Any]:
    """Return a JSON object that has values of these types. Raises ValueError for another one."""
    found = json.loads(value)
    if not isinstance(found, dict) or not all(isinstance(found.get(each), type) for each, type in types.items()):
        raise ValueError("it has other fields")
    return found


def read(client: EtcdClient, keys: Keys, *, damaged_allowed: bool = False) -> Content:
    """Return all keys as of one revision of etcd. Raises StoreError.

    ``damaged_allowed``: collect the keys with damaged values instead of an error.
    """
    content = Content()
    _read_range(client, keys, content, (keys.meta, b""), damaged_allowed)
    if not damaged_allowed:
        check_release(content)  # before the other keys, which a newer release may write in another form
    _read_range(client, keys, content, (keys.prefix, end_of(keys.prefix)), damaged_allowed)
    return content


def _read_range(
    client: EtcdClient, keys: Keys, content: Content, names: tuple[bytes, bytes], damaged_allowed: bool
) -> None:
    """Add the keys from the first name up to the second one, or the first key only. Raises StoreError."""
    key, end = names
    while True:
        request = rpc.RangeRequest(key=key, range_end=end, limit=_PAGE, revision=content.at)
        response = client.call("KV", "Range", request, 10.0)
        content.at = content.at or response.header.revision
        for pair in response.kvs:
            try:
                content.put(keys, pair)
            except (ValueError, RecursionError) as error:
                content.unreadable[pair.key] = key_fault(pair.key, error)
                if not damaged_allowed:
                    raise DamagedError(content.unreadable[pair.key]) from None
        if not response.more:
            return
        key = response.kvs[-1].key + b"\0"


def check_release(content: Content) -> None:
    """Raise NewerReleaseError for records of a newer release. Call it before any other check."""
    if content.meta is not None and content.meta["version"] != VERSION:
        raise NewerReleaseError(
            "Cannot use the store in etcd: it was written by a newer release (version "
            f"{content.meta['version']}, this release supports {VERSION}). Start that release, or restore an older "
            "backup."
        )


def key_fault(key: bytes, error: Exception) -> str:
    """Return a sentence about a key that cannot be decoded."""
    return f"The key {key.decode(errors='replace')!r} has a damaged name or value: {error}."


class Mirror:
    """Content that follows etcd, in a thread."""

    def __init__(self, client: EtcdClient, keys: Keys) -> None:
        """Prepare the copy; ``start`` reads it."""
        self._client = client
        self._keys = keys
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mirror", daemon=True)
        self.content = Content()
        self.leader_changes = 0  # since the start
        self.last_response = time.monotonic()  # of etcd, at first of the start
        self.fault: StoreError | None = None  # why the records are no longer followed

    def start(self) -> None:
        """Read everything, and follow it from then on. Raises StoreError."""
        self.content = read(self._client, self._keys)
        self.last_response = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """End the thread. The content stays. Repeated calls have no effect."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def wait(self, condition: Callable[[Content], bool], seconds: float) -> bool:
        """Return whether the content meets the condition within ``seconds``. Raises StoreError after a fault."""

        def done() -> bool:
            if self.fault:
                raise self.fault
            return condition(self.content)

        with self._changed:
            return self._changed.wait_for(done, seconds)

    def _run(self) -> None:
        while not self._stopping.is_set():
            used = self._client.current
            try:
                self._follow()
            except EtcdError as error:
                if self._stopping.is_set():
                    return
                _log.warning("watch interrupted", reason=error.details)
                self._client.leave(used)
                self._stopping.wait(_RETRY_SECONDS)
            except StoreError as error:
                with self._changed:
                    self.fault = error
                    self._changed.notify_all()
                return

    def _follow(self) -> None:
        """Apply the changes until the stop, or until the node does not respond. Raises StoreError."""
        requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        requests.put(
            rpc.WatchRequest(
                create_request=rpc.WatchCreateRequest(
                    key=self._keys.prefix, range_end=end_of(self._keys.prefix), start_revision=self.content.at + 1
                )
            )
        )
        ended = threading.Event()
        last = time.monotonic()

        def produce() -> Iterator[Any]:
            while (request := requests.get()) is not None:
                yield request

        with self._client.watching(produce()) as stream:

            def probe() -> None:
                """Request progress, so that a node that does not respond is noticed."""
                while not ended.wait(_PROGRESS_SECONDS):
                    if self._stopping.is_set() or time.monotonic() - last > _MAX_SILENCE:
                        stream.cancel()
                        return
                    requests.put(rpc.WatchRequest(progress_request=rpc.WatchProgressRequest()))

            prober = threading.Thread(target=probe, name="mirror-probe", daemon=True)
            prober.start()
            try:
                for response in stream:
                    last = self.last_response = time.monotonic()
                    if response.canceled:
                        self._restart(response)
                        return
                    self._apply(response)
            finally:
                ended.set()
                requests.put(None)
                prober.join()

    def _apply(self, response: Any) -> None:
        """Apply changes. Raises StoreError."""
        if not response.events:
            return
        try:
            with self._changed:
                for event in response.events:
                    self._apply_event(event)
                check_release(self.content)
                # Not earlier: after a fault, the watch starts with the first change of the transaction.
                self.content.at = max(self.content.at, response.events[-1].kv.mod_revision)
                self._changed.notify_all()
        except (ValueError, RecursionError) as error:  # the new version may follow in the same transaction
            present = Content()
            _read_range(self._client, self._keys, present, (self._keys.meta, b""), damaged_allowed=True)
            check_release(present)
            raise DamagedError(key_fault(event.kv.key, error)) from None

    def _apply_event(self, event: Any) -> None:
        if event.type == rpc.Event.DELETE:
            self.content.delete(self._keys, event.kv.key)
        else:
            self.content.put(self._keys, event.kv)
        self.leader_changes += event.kv.key == self._keys.leader and event.type != rpc.Event.DELETE

    def _restart(self, response: Any) -> None:
        """Read everything again, when etcd no longer has the changes since the last response."""
        _log.warning("watch cancelled", reason=response.cancel_reason, compacted=response.compact_revision)
        content = read(self._client, self._keys)
        with self._changed:
            former, self.content = self.content.leader, content
            self.leader_changes += content.leader is not None and content.leader != former
            self._changed.notify_all()
