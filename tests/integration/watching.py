# SPDX-License-Identifier: GPL-3.0-or-later
"""Watchers for tests: they collect events in a thread and keep the objects that result from them."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import grpc

from openipu.shared.vipu import objects
from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.domain.model import Change, Put
from openipu.vipu.domain.state import State
from tests.integration.vipu_servers import Client, InProcess
from tests.waiting import until

Key = tuple[str, str]


class Watcher:
    """Client of ``Watch``. ``events`` and ``objects`` are those up to ``revision``, the last complete one."""

    def __init__(
        self, stub: Any, metadata: Any = (), *, paused: bool = False, after: Watcher | None = None, **request: Any
    ) -> None:
        """Start the stream of a service. ``paused``: take no replies before ``read``. ``after``: continue another."""
        self.events: list[Any] = []
        self.objects: dict[Key, Any] = {}
        if after is not None:
            with after.lock:
                self.objects = dict(after.objects)
                request["since_revision"] = after.revision
        self.lock = threading.Lock()
        self.revision = 0
        self.replies = 0
        self.code: grpc.StatusCode | None = None
        self.details = ""
        self.error_code = ""
        self._held: list[Any] = []
        self.call = stub.Watch(admin.WatchRequest(**request), metadata=metadata)
        self._thread = threading.Thread(target=self._run, daemon=True)
        if not paused:
            self.read()

    def read(self) -> None:
        """Start to take replies."""
        self._thread.start()

    def _run(self) -> None:
        try:
            for reply in self.call:
                self.replies += 1
                self._held += reply.events
                if reply.revision:
                    with self.lock:
                        for event in self._held:
                            self._apply(event)
                        self.events += self._held
                        self._held = []
                        self.revision = reply.revision
        except grpc.RpcError as error:
            self.details = error.details()  # type: ignore[attr-defined]
            metadata = dict(error.trailing_metadata() or ())  # type: ignore[attr-defined]
            self.error_code = metadata.get("openipu-error-code", "")
            self.code = error.code()  # type: ignore[attr-defined]

    def _apply(self, message: Any) -> None:
        event = objects.event(message)
        key = event["kind"], event["id"]
        if event["type"] == "delete":
            del self.objects[key]  # fails for an object that was never shown
        else:
            self.objects[key] = event["object"]

    def wait(self, revision: int = 1) -> Watcher:
        """Wait for all events up to a revision."""
        until(lambda: self.revision >= revision or self.code, what=lambda: f"revision {self.revision} < {revision}")
        assert self.code is None, self.details
        return self

    def ended(self) -> grpc.StatusCode:
        """Wait for the end of the stream and return its status code."""
        until(lambda: self.code)
        assert self.code is not None
        return self.code

    def stop(self) -> None:
        """Cancel the stream."""
        self.call.cancel()
        if self._thread.is_alive():
            self._thread.join(10)

    def ids(self, kind: str) -> list[str]:
        """Return the ids of the present objects of a kind."""
        return sorted(id for found, id in self.objects if found == kind)


def listed(client: Client, **call: Any) -> dict[Key, Any]:
    """Return all objects as the lists of an administrator show them, in the form of events."""
    found: dict[Key, Any] = {}
    for agent in client.admin.ListAgents(admin.ListAgentsRequest(), **call).agents:
        item = objects.agent(agent)
        names = ("id", "host", "port", "cluster", "allocation", "in_service", "service_reason")
        found["agent", item["id"]] = {name: item[name] for name in names}
    for cluster in client.admin.ListClusters(admin.ListClustersRequest(), **call).clusters:
        found["cluster", cluster.spec.id] = objects.cluster(cluster)
    for user in client.admin.ListUsers(admin.ListUsersRequest(), **call).users:
        found["user", user.id] = objects.user(user)
    return {**found, **listed_by_tenant(client, **call)}


def listed_by_tenant(client: Client, **call: Any) -> dict[Key, Any]:
    """Return the allocations and partitions as the lists of a user show them, in the form of events."""
    found: dict[Key, Any] = {}
    for allocation in client.tenant.ListAllocations(admin.ListAllocationsRequest(), **call).allocations:
        found["allocation", allocation.spec.id] = objects.allocation(allocation)
    options = {
        each.partition_id: objects.partition_options(each)
        for each in client.tenant.ListPartitionOptions(admin.ListPartitionOptionsRequest(), **call).partitions
    }
    for partition in client.user.ListPartitions(virmgrpc.ListPartitionsRequest(), **call).partitions:
        request = virmgrpc.GetPartitionStatusRequest(partition_id=partition.id)
        status = objects.status(client.user.GetPartitionStatus(request, **call).status)
        progress = {name: value for name, value in status.items() if name not in ("id", "state")}
        found["partition", partition.id] = {**objects.partition(partition), **options[partition.id], **progress}
    return found


def revision(server: InProcess) -> int:
    """Return the present revision."""
    return server.server.controller.events.revision


def settle(server: InProcess) -> int:
    """Wait until no partition is PENDING, and return the revision."""
    partitions = server.server.controller.state.partitions
    until(lambda: all(each.ready.name == "ACTIVE" for each in list(partitions.values())))
    return revision(server)


def put_large_error(server: InProcess, number: int) -> int:
    """Give partition p1 an error of 100 kB, and return the revision."""

    def command(state: State) -> tuple[list[Change], None]:
        return [Put(replace(state.partitions["p1"], errors=(f"{number} " * 20_000,)))], None

    server.server.controller.submit(command).result(10)
    return revision(server)


def open_streams(server: InProcess) -> int:
    """Return the number of open streams."""
    return len(server.server._services.watches._watchers)
