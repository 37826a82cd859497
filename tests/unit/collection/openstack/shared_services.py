# SPDX-License-Identifier: GPL-3.0-or-later
"""Fake OpenStack services that several clouds share, with the conflicts of the real ones."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ansible_collections.openipu.pod.plugins.module_utils.openstack.common.client import RejectedError

from tests.unit.collection.openstack.fake_cloud import FakeCloud

Raw = dict[str, Any]


@dataclass(frozen=True)
class Collection:
    """Collection of a service.

    ``post`` and ``get`` are the paths to create and list, ``one`` and ``many`` the keys in bodies. ``complete`` adds
    the fields that the service chooses. ``unique`` returns what only one object may have; ``status`` and ``kind``
    are those of the rejection otherwise.
    """

    post: str
    one: str
    many: str
    complete: Callable[[Raw], Raw]
    get: str = ""
    unique: Callable[[Raw], Any] = lambda raw: raw["name"]
    status: int = 409
    kind: str = "Conflict"


class SharedServices:
    """State of the services. All clouds read before the first one writes."""

    def __init__(self, *collections: Collection, clouds: int = 2, **responses: Any) -> None:
        self.collections = {each.post: each for each in collections}
        self.objects: dict[str, list[Raw]] = {each.post: [] for each in collections}
        self.lock = threading.Lock()
        self.all_read = threading.Event()
        self.barrier = threading.Barrier(clouds, action=self.all_read.set)

    def create(self, collection: Collection, body: Raw) -> Raw:
        """Create one object or several; several are created all or none."""
        wanted = body[collection.many] if collection.many in body else [body[collection.one]]
        objects = self.objects[collection.post]
        taken = {collection.unique(raw) for raw in objects}
        made = [collection.complete(item) for item in wanted]
        if any(collection.unique(raw) in taken for raw in made):
            raise RejectedError("The service returned an error: it exists.", collection.status, collection.kind)
        objects += made
        return {collection.many: made} if collection.many in body else {collection.one: made[0]}

    def list(self, collection: Collection, query: Raw) -> Raw:
        """Return the objects with the name of the query."""
        names = query.get("name")
        found = [raw for raw in self.objects[collection.post] if names is None or raw["name"] == names]
        return {collection.many: copy.deepcopy(found)}


class SharedCloud(FakeCloud):
    """Cloud of one task on shared services; other paths have fixed ``responses``."""

    def __init__(self, services: SharedServices, responses: dict[str, Any]) -> None:
        super().__init__(responses)
        self._services = services
        self._wrote = False

    def request(self, service: str, method: str, path: str, **options: Any) -> Any:
        services = self._services
        if method != "GET":
            self._wait_for_reads()
        with services.lock:
            for collection in services.collections.values():
                if (method, path) == ("POST", collection.post):
                    self.writes.append((f"{method} {path}", options.get("json")))
                    return services.create(collection, options["json"])
                if (method, path) == ("GET", collection.get or collection.post):
                    return services.list(collection, options.get("params") or {})
            return super().request(service, method, path, **options)

    def _wait_for_reads(self) -> None:
        if self._wrote:
            self._services.all_read.wait(10)
            return
        self._wrote = True
        if not self._services.all_read.is_set():
            self._services.barrier.wait(10)
