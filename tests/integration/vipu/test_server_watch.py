# SPDX-License-Identifier: GPL-3.0-or-later
"""``Watch``: snapshots, changes, filters, revisions that survive restarts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest

from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.shared.vipu.object_rules import ID_RULE
from openipu.vipu.api import watch
from openipu.vipu.api.addresses import ListenAddress
from openipu.vipu.domain.model import Agent, Put
from openipu.vipu.server.controller import Server, Settings
from openipu.vipu.server.initialise import initialise
from openipu.vipu.storage import event_log
from openipu.vipu.storage.interface import LeadershipLostError
from tests.integration.vipu_servers import Client, InProcess, InstantLife, Process, partition, pod, wait_active
from tests.integration.watching import Watcher, listed, revision, settle
from tests.waiting import until


@pytest.fixture
def server(instant_server: InProcess) -> InProcess:
    pod(instant_server, 4, {"a1": 2, "a2": 1})
    return instant_server


def remove(client: Client, id: str) -> None:
    client.user.RemovePartition(virmgrpc.RemovePartitionRequest(partition_id=id))


def test_a_snapshot_and_its_changes_give_the_lists(server: InProcess, watcher: Callable[..., Watcher]) -> None:
    server.user.CreatePartition(partition("p1"))
    found = watcher(server.admin).wait(settle(server))
    assert found.objects == listed(server)
    server.user.CreatePartition(partition("p2", 2))
    server.admin.CreateUser(admin.CreateUserRequest(spec=admin.UserSpec(id="u1", allocation_ids=["a1"])))
    server.tenant.SetPartitionOptions(admin.SetPartitionOptionsRequest(partition_id="p2", relocatable=True))
    remove(server, "p1")
    server.admin.RemoveAllocation(admin.RemoveRequest(id="a2"))
    assert found.wait(settle(server)).objects == listed(server)
    server.admin.RemoveCluster(admin.RemoveRequest(id="cl0", force=True))
    assert found.wait(revision(server)).objects == listed(server)


def test_every_revision_is_delivered_once(server: InProcess, watcher: Callable[..., Watcher]) -> None:
    found = watcher(server.admin).wait()
    start = found.revision
    for _ in range(50):
        server.user.CreatePartition(partition("p1"))
        remove(server, "p1")
    found.wait(settle(server))
    keys = [(event.kind, event.id, event.revision) for event in found.events]
    assert len(keys) == len(set(keys))
    assert all(start < event.revision <= found.revision for event in found.events[len(listed(server)) :])


def test_a_former_leader_sends_nothing_outdated(tmp_path: Path, watcher: Callable[..., Watcher]) -> None:
    initialise(tmp_path / "vipu-server.db")
    lost = threading.Event()

    def confirm() -> None:
        if lost.is_set():
            raise LeadershipLostError

    settings = Settings(tmp_path / "vipu-server.db", ListenAddress("127.0.0.1", 0))
    server = Server(settings, InstantLife, confirm=confirm)
    with closing(Client(str(server.start()[0]))) as client:
        try:
            before = watcher(client.admin).wait()
            lost.set()
            agent = Agent("ag1", "ag1.invalid", 8080)
            server.controller.submit(lambda state: ([Put(agent)], None)).result(10)
            after = watcher(client.admin)
            for each in (before, after):
                until(lambda each=each: each.code, what="the stream ends")
                assert each.code is grpc.StatusCode.UNAVAILABLE
            assert after.replies == 0
            assert ("agent", "ag1") not in before.objects
        finally:
            server.stop(0)


def test_concurrent_changes_reach_every_watcher(server: InProcess, watcher: Callable[..., Watcher]) -> None:
    """Compare watchers that start at any time, and continue at any revision, with the lists."""
    first = watcher(server.admin).wait()

    def change(name: str) -> None:
        for number in range(15):
            server.user.CreatePartition(partition(f"{name}{number}"))
            if number % 5:
                remove(server, f"{name}{number}")

    threads = [threading.Thread(target=change, args=(name,)) for name in ("x", "y")]
    for thread in threads:
        thread.start()
    later = []
    for _ in range(5):
        later += [watcher(server.admin).wait(), watcher(server.admin, after=first)]
        until(lambda seen=first.revision: first.revision > seen or not any(t.is_alive() for t in threads))
    for thread in threads:
        thread.join()
    last = settle(server)
    expected = listed(server)
    for each in (first, *later):
        assert each.wait(last).objects == expected


def test_a_watcher_continues_at_a_revision(server: InProcess, watcher: Callable[..., Watcher]) -> None:
    server.user.CreatePartition(partition("p1"))
    start = settle(server)
    server.user.CreatePartition(partition("p2"))
    remove(server, "p1")
    request = admin.WatchRequest(since_revision=start, kinds=[admin.KIND_PARTITION])
    reply = next(server.admin.Watch(request))
    assert [(event.type, event.id) for event in reply.events] == [(admin.Event.DELETE, "p1"), (admin.Event.PUT, "p2")]


def test_a_watcher_that_is_up_to_date_gets_a_bookmark(server: InProcess) -> None:
    last = revision(server)
    reply = next(server.admin.Watch(admin.WatchRequest(since_revision=last)))
    assert (reply.revision, list(reply.events)) == (last, [])


def test_bookmarks_follow_in_quiet_times(
    server: InProcess, watcher: Callable[..., Watcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_BOOKMARK_SECONDS", 0.0)
    monkeypatch.setattr(watch, "_TICK_SECONDS", 0.01)
    found = watcher(server.admin, kinds=[admin.KIND_USER]).wait()
    server.user.CreatePartition(partition("p1"))
    found.wait(settle(server))
    assert found.events == []


@pytest.mark.parametrize(
    ("request_fields", "expected"),
    [
        ({"kinds": [admin.KIND_CLUSTER, admin.KIND_USER]}, {("cluster", "cl0"), ("user", "u1")}),
        ({"ids": ["ag01", "p1"]}, {("agent", "ag01"), ("partition", "p1")}),
        ({"allocation_id": "a1"}, {("allocation", "a1"), ("partition", "p1"), ("user", "u1")}),
        ({"kinds": [admin.KIND_PARTITION], "ids": ["p2"], "allocation_id": "a1"}, set()),
        ({"ids": ["none"]}, set()),
    ],
)
def test_filters(
    server: InProcess,
    watcher: Callable[..., Watcher],
    request_fields: dict[str, Any],
    expected: set[tuple[str, str]],
) -> None:
    start = revision(server)
    before = watcher(server.admin, **request_fields).wait()
    server.user.CreatePartition(partition("p1", 1, "a1"))
    server.user.CreatePartition(partition("p2", 1, "a2"))
    server.admin.CreateUser(admin.CreateUserRequest(spec=admin.UserSpec(id="u1", allocation_ids=["a1"])))
    last = settle(server)
    assert set(watcher(server.admin, **request_fields).wait(last).objects) == expected
    until(lambda: set(before.objects) == expected)
    resumed = watcher(server.admin, since_revision=start, **request_fields).wait(last)
    assert set(resumed.objects) <= expected


@pytest.mark.parametrize(
    ("stub", "fields", "reason"),
    [
        (
            "admin",
            {"kinds": [99]},
            "kind 99 is not available here. Choose from agent, cluster, allocation, partition, user",
        ),
        ("tenant", {"kinds": [admin.KIND_USER]}, "kind user is not available here. Choose from allocation, partition"),
        ("tenant", {"ids": ["p1", "x/"]}, f"the id 'x/' must have {ID_RULE}"),
        ("admin", {"ids": ["x"] * 101}, "the request has 101 ids; at most 100 are allowed"),
    ],
)
def test_invalid_requests(
    server: InProcess, watcher: Callable[..., Watcher], stub: str, fields: dict[str, Any], reason: str
) -> None:
    found = watcher(getattr(server, stub), **fields)
    assert found.ended() is grpc.StatusCode.INVALID_ARGUMENT
    assert found.details == f"Cannot watch: {reason}."


def test_unknown_revisions_must_be_listed_again(server: InProcess, watcher: Callable[..., Watcher]) -> None:
    for since in (1, revision(server) + 1):
        found = watcher(server.admin, since_revision=since)
        assert found.ended() is grpc.StatusCode.OUT_OF_RANGE
        assert f"Cannot continue after revision {since}: compacted" in found.details
        assert "List again" in found.details
        assert found.error_code == "OPU621"


def test_old_revisions_are_compacted(
    server: InProcess, watcher: Callable[..., Watcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "KEPT_CHANGES", 10)
    start = revision(server)
    for _ in range(10):
        server.user.CreatePartition(partition("p1"))
        remove(server, "p1")
    assert watcher(server.admin, since_revision=start).ended() is grpc.StatusCode.OUT_OF_RANGE
    watcher(server.admin, since_revision=server.server.controller.events.compacted).wait(revision(server))


def test_large_snapshots_are_sent_in_parts(
    server: InProcess, watcher: Callable[..., Watcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_CHUNK", 2)
    found = watcher(server.admin).wait()
    assert found.objects == listed(server)
    assert found.replies == -(-len(found.objects) // 2)


def test_nothing_acknowledged_is_lost_when_the_controller_is_killed(vipu_process: Callable[..., Process]) -> None:
    """Kill the controller during writes, repeatedly, and continue at the last revision."""
    server = vipu_process()
    acknowledged: list[str] = []
    seen: list[tuple[int, str]] = []
    since = 0
    for attempt in range(3):
        found = Watcher(server.admin, since_revision=since, kinds=[admin.KIND_AGENT]).wait()
        stop = threading.Event()

        def write(server: Process = server, attempt: int = attempt, stop: threading.Event = stop) -> None:
            number = 0
            while not stop.is_set():
                spec = admin.AgentSpec(id=f"ag{attempt}-{number}", host="10.0.0.1", port=1000 * (attempt + 1) + number)
                try:
                    server.admin.CreateAgent(admin.CreateAgentRequest(spec=spec), timeout=10)
                except grpc.RpcError:
                    return
                acknowledged.append(spec.id)
                number += 1

        writer = threading.Thread(target=write)
        writer.start()
        until(lambda expected=20 * (attempt + 1): len(acknowledged) > expected)
        server.kill()
        stop.set()
        writer.join()
        assert found.ended() is grpc.StatusCode.UNAVAILABLE
        found.stop()
        seen += [(event.revision, event.id) for event in found.events]
        since = found.revision
        server.close()
        server = vipu_process()
    found = Watcher(server.admin, since_revision=since, kinds=[admin.KIND_AGENT]).wait()
    seen += [(event.revision, event.id) for event in found.events]
    found.stop()
    assert set(acknowledged) <= {id for _, id in seen}
    assert len(seen) == len(set(seen))
    agents = server.admin.ListAgents(admin.ListAgentsRequest()).agents
    assert sorted(id for _, id in seen) == [agent.spec.id for agent in agents]


def test_a_clean_restart_continues(
    vipu_server: Callable[..., InProcess], watcher: Callable[..., Watcher], tmp_path: Path
) -> None:
    first = vipu_server(tmp_path / "records.db", life=InstantLife)
    pod(first, 2)
    found = watcher(first.admin).wait()
    first.server.stop(30)
    assert found.ended() is grpc.StatusCode.UNAVAILABLE
    assert found.details == "The controller is stopping. Try again after its restart."
    second = vipu_server(tmp_path / "records.db", life=InstantLife)
    second.user.CreatePartition(partition("p1"))
    wait_active(second, "p1")
    assert watcher(second.admin, after=found).wait(revision(second)).objects == listed(second)
