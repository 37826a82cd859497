# SPDX-License-Identifier: GPL-3.0-or-later
"""Cache of all nodes, with the fields that matter for IPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from openipu.kubernetes.cluster.client import NODES, Client, Object
from openipu.kubernetes.cluster.informer import Informer
from openipu.kubernetes.domain import reserved, visibility


class Nodes:
    """All nodes. ``listen`` adds a function that is called after each change."""

    def __init__(self, client: Client) -> None:
        self._listeners: list[Callable[[], None]] = []
        self._cache = Informer(client, NODES, self._changed, keep=needed)

    def listen(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` after each change of a node."""
        self._listeners.append(listener)

    def all(self) -> list[Object] | None:
        """Return all nodes, None if they are not known yet."""
        return list(self._cache) if self._cache.synced.is_set() else None

    def labels(self, name: str) -> Mapping[str, str] | None:
        """Return the labels of a node, None for an unknown one."""
        found = self._cache.get(("", name))
        return None if found is None else visibility.labels(found)

    async def run(self) -> None:
        """Follow the nodes until cancelled."""
        await self._cache.run()

    def _changed(self, node: Object) -> None:
        for each in self._listeners:
            each()


def needed(node: Object) -> Object:
    """Return the part of a node that the proxy needs."""
    metadata, status = node["metadata"], node.get("status") or {}
    fields = ("name", "resourceVersion", "labels", "annotations")
    return {
        "metadata": {each: metadata[each] for each in fields if each in metadata},
        "status": {
            each: {name: value for name, value in (status.get(each) or {}).items() if name == reserved.IPU_RESOURCE}
            for each in visibility.FIELDS
        },
    }
