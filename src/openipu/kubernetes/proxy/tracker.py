# SPDX-License-Identifier: GPL-3.0-or-later
"""Durable records of partitions: a ConfigMap that outlives the release of the proxy.

Changes of concurrent requests share one write. Each write requires the version that was read, so two proxies never
overwrite each other's records.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping

import structlog

from openipu.kubernetes.cluster.client import CONFIG_MAPS, ApiError, Client, Object
from openipu.kubernetes.domain import tracking
from openipu.kubernetes.domain.tracking import Record

_log = structlog.get_logger("openipu.kubernetes.proxy.tracker")

_ATTEMPTS = 5  # of a write that conflicts
# Without an entry for each record in the managed fields. The API server would compare all of them for each change, and
# return them in its answer.
_NO_MANAGERS: list[Object] = [{}]

Changes = Mapping[str, Record | None]
"""Partition id -> new record, None to remove it."""


class TrackerError(Exception):
    """Raised when records cannot be read or written. The partitions are unchanged then."""

    error_code = "OPU901"


class Tracker:
    """All records. ``write`` returns when its records are durable."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._records: dict[str, Record] = {}
        self._texts: dict[str, str] = {}  # as stored, also of damaged records
        self._owners: defaultdict[str, set[str]] = defaultdict(set)  # UID of an owner -> ids of its records
        self._size = 0  # of ids and texts in characters, which are ASCII
        self._version = ""
        self._waiting: list[tuple[Changes, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None

    def __iter__(self) -> Iterator[Record]:
        """Iterate over all records."""
        return iter(list(self._records.values()))

    def __contains__(self, id: object) -> bool:
        """Return whether there is a record of a partition, even a damaged one."""
        return id in self._texts

    def get(self, id: str) -> Record | None:
        """Return the record of a partition."""
        return self._records.get(id)

    def of(self, uid: str) -> list[Record]:
        """Return the records of an owner."""
        return [self._records[id] for id in sorted(self._owners.get(uid, ()))]

    @property
    def ids(self) -> Mapping[str, object]:
        """Ids of all records."""
        return self._texts

    async def load(self) -> None:
        """Read all records, and create the ConfigMap if there is none. Raises TrackerError."""
        try:
            found = await self._client.find(CONFIG_MAPS, self._namespace, self._name)
            if found is None:
                found = await self._client.create(CONFIG_MAPS, self._object())
        except ApiError as error:
            raise TrackerError(f"Cannot read the tracker {self._namespace}/{self._name}: {error}") from None
        self._read(found)

    async def write(self, changes: Changes) -> None:
        """Make changes durable. Raises TrackerError."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((changes, future))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_all())
        await future

    async def _write_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                await self._write([changes for changes, _ in batch])
                error: Exception | None = None
            except Exception as failure:  # noqa: BLE001 - the callers raise it
                error = failure
            for _, future in batch:
                if future.cancelled():
                    continue
                if error is None:
                    future.set_result(None)
                else:
                    future.set_exception(TrackerError(f"Cannot write the tracker {self._name}: {error}"))

    async def _write(self, batch: list[Changes]) -> None:
        changes = {id: record for each in batch for id, record in each.items()}
        data = {id: None if record is None else record.encoded() for id, record in changes.items()}
        self._check_size(data)
        before = {id: self._texts.get(id) for id in changes}
        for _ in range(_ATTEMPTS):
            patch = {"metadata": {"resourceVersion": self._version, "managedFields": _NO_MANAGERS}, "data": data}
            try:
                # Without the records in the answer: reading all of them for each change would take most of the time.
                written = await self._client.patch_only(CONFIG_MAPS, self._namespace, self._name, patch)
            except ApiError as error:
                if error.is_missing:  # it was deleted: no record may be lost
                    _log.warning("tracker created again: it was deleted", name=self._name)
                    created = await self._client.create(CONFIG_MAPS, self._object(self._texts))
                    self._version = created["metadata"]["resourceVersion"]
                    continue
                if not error.is_conflict:
                    raise
            else:
                self._version = written["metadata"]["resourceVersion"]
                for id, record in changes.items():
                    self._put(id, data[id], record)
                return
            await self.load()
            if all(self._texts.get(id) == text for id, text in data.items()):
                return  # an earlier attempt succeeded, but its answer was lost
            if any(self._texts.get(id) != text for id, text in before.items()):
                raise TrackerError("another proxy has changed the same records. Try again.")
        raise TrackerError("others change it all the time. Try again.")

    def _check_size(self, data: Mapping[str, str | None]) -> None:
        grows = any(text is not None and id not in self._texts for id, text in data.items())
        size = self._size + sum(len(id) + len(text) for id, text in data.items() if text and id not in self._texts)
        if grows and size > tracking.MAX_BYTES:
            raise TrackerError(
                f"it has {len(self._texts)} partitions, which is the most that fit into a ConfigMap. Delete finished "
                "jobs, or install a second release for other namespaces."
            )

    def _read(self, found: Object) -> None:
        """Take over all stored records."""
        self._version = found["metadata"]["resourceVersion"]
        texts = found.get("data") or {}
        for id in self._texts.keys() - texts.keys():
            self._put(id, None, None)
        for id, text in texts.items():
            if self._texts.get(id) == text:
                continue
            try:
                self._put(id, text, tracking.decode(id, text))
            except ValueError as error:
                self._put(id, text, None)
                _log.error("record ignored; its partition is left alone", error=str(error))

    def _put(self, id: str, text: str | None, record: Record | None) -> None:
        """Store a record in memory. ``text`` is None for a removed record, ``record`` for a removed or damaged one."""
        before, old = self._records.pop(id, None), self._texts.pop(id, None)
        if before is not None:
            self._owners[before.owner.uid].discard(id)
            if not self._owners[before.owner.uid]:
                del self._owners[before.owner.uid]
        if old is not None:
            self._size -= len(id) + len(old)
        if text is not None:
            self._texts[id] = text
            self._size += len(id) + len(text)
        if record is not None:
            self._records[id] = record
            self._owners[record.owner.uid].add(id)

    def _object(self, data: Mapping[str, str] | None = None) -> Object:
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"namespace": self._namespace, "name": self._name},
            "data": dict(data or {}),
        }
