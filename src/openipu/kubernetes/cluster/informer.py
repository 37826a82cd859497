# SPDX-License-Identifier: GPL-3.0-or-later
"""Cache of all objects of a kind. A list fills it, and a stream of changes keeps it up to date."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

import structlog

from openipu.kubernetes.cluster.client import ApiError, Client, Object, Resource

_log = structlog.get_logger("openipu.kubernetes.cluster.informer")

Key = tuple[str, str]
"""Namespace and name of an object."""

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0  # seconds between attempts


def key(thing: Object) -> Key:
    """Return the key of an object."""
    metadata = thing["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


class Informer:
    """Objects of a kind. ``changed`` is called with each object that appears, changes or disappears.

    ``group``: returns the key of the object to which another one belongs; ``members`` finds those of a key.
    ``keep``: returns the part of an object that is needed, to save memory.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        changed: Callable[[Object], None],
        *,
        namespaces: Iterable[str] = ("",),
        selector: str = "",
        group: Callable[[Object], Key | None] = lambda thing: None,
        keep: Callable[[Object], Object] = lambda thing: thing,
    ) -> None:
        self._client = client
        self._resource = resource
        self._changed = changed
        self._namespaces = tuple(namespaces)
        self._selector = selector
        self._group = group
        self._keep = keep
        self._objects: dict[Key, Object] = {}
        self._members: defaultdict[Key, set[Key]] = defaultdict(set)
        self._pending = set(self._namespaces)
        self.synced = asyncio.Event()

    def __iter__(self) -> Iterator[Object]:
        """Iterate over all objects."""
        return iter(list(self._objects.values()))

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: Key) -> Object | None:
        """Return an object, None if there is none."""
        return self._objects.get(key)

    def members(self, owner: Key) -> list[Object]:
        """Return the objects that belong to a key, in the order of their names."""
        return [self._objects[each] for each in sorted(self._members.get(owner, ()))]

    async def run(self) -> None:
        """Follow the objects until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for namespace in self._namespaces:
                tasks.create_task(self._follow(namespace))

    async def _follow(self, namespace: str) -> None:
        revision, pause = "", _SHORTEST_PAUSE
        while True:
            try:
                if not revision:
                    revision = await self._list(namespace)
                    pause = _SHORTEST_PAUSE
                async for kind, thing in self._client.watch(self._resource, namespace, revision, self._selector):
                    revision = thing["metadata"]["resourceVersion"]
                    if kind == "DELETED":
                        self._remove(thing)
                    elif kind != "BOOKMARK":
                        self._store(self._keep(thing))
                    pause = _SHORTEST_PAUSE
            except ApiError as error:
                if error.code:  # rejected, for example because the revision is no longer stored
                    revision = ""
                if not error.is_expired:
                    _log.warning("cannot follow objects", kind=self._resource.plural, error=str(error))
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    async def _list(self, namespace: str) -> str:
        objects, revision = await self._client.list(self._resource, namespace, self._selector, self._keep)
        found = {key(each) for each in objects}
        for each in objects:
            cached = self._objects.get(key(each))
            if cached is None or cached["metadata"]["resourceVersion"] != each["metadata"]["resourceVersion"]:
                self._store(each)
        for gone in [each for each in self._objects if each not in found and namespace in ("", each[0])]:
            self._remove(self._objects[gone])
        self._pending.discard(namespace)
        if not self._pending:
            self.synced.set()
        return revision

    def _store(self, thing: Object) -> None:
        name = key(thing)
        self._objects[name] = thing
        owner = self._group(thing)
        if owner is not None:
            self._members[owner].add(name)
        self._changed(thing)

    def _remove(self, thing: Object) -> None:
        name = key(thing)
        self._objects.pop(name, None)
        owner = self._group(thing)
        if owner is not None and owner in self._members:
            self._members[owner].discard(name)
            if not self._members[owner]:
                del self._members[owner]
        self._changed(thing)
