# SPDX-License-Identifier: GPL-3.0-or-later
"""The event source with real controllers: restarts, compaction, TLS, tenants, back pressure, shutdown."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.api.addresses import ListenAddress
from openipu.vipu.storage import event_log
from tests.events.rulebook import state
from tests.events.source import Source
from tests.integration.vipu.test_server_secure import User, certs, secure, tenants
from tests.integration.vipu_servers import InProcess, InstantLife, partition, pod
from tests.ports import free_port
from tests.waiting import until

__all__ = ["certs", "secure", "tenants"]

Start = Callable[..., Source]


class Life(InstantLife):
    """Partition life without agents, and without cluster tests."""

    def cluster_test(self) -> None:
        return None

    def wait_cluster_test(self, known: int, seconds: float) -> None:
        return None


@pytest.fixture
def server(vipu_server: Callable[..., InProcess]) -> InProcess:
    made = vipu_server(life=Life)
    pod(made, 4)
    return made


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Yield a factory of sources of a controller, with a state file: ``start(server, **options)``."""
    made: list[Source] = []

    def make(server: InProcess | None, **options: Any) -> Source:
        host, _, port = server.address.rpartition(":") if server else ("", "", "")
        given = {"api_host": host, "api_port": port, "poll_seconds": 0.1, "state_file": str(tmp_path / "state.json")}
        made.append(Source(**{**given, **options}))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def create(server: InProcess, *ids: str) -> None:
    for id in ids:
        server.user.CreatePartition(partition(id))


def remove(server: InProcess, *ids: str) -> None:
    for id in ids:
        server.user.RemovePartition(virmgrpc.RemovePartitionRequest(partition_id=id))


def followed(source: Source, server: InProcess, path: Path) -> None:
    """Wait until the state of the source has the present revision of the controller."""
    until(lambda: state(path).get("revision") == server.server.controller.events.revision, what=str(source.types()))


def test_events_of_partitions(server: InProcess, start: Start, tmp_path: Path) -> None:
    create(server, "before")
    source = start(server)
    followed(source, server, tmp_path / "state.json")
    assert source.types() == []
    create(server, "p1")
    event = source.wait("partition_ready", "p1")
    assert event["object"]["allocation"] == "a1"
    assert event["controller"] == f"{server.address}/admin"
    remove(server, "p1")
    source.wait("partition_removed", "p1")
    assert source.types() == [("partition_ready", "p1"), ("partition_removed", "p1")]


def test_a_restart_neither_loses_nor_repeats_events(server: InProcess, start: Start, tmp_path: Path) -> None:
    source = start(server)
    followed(source, server, tmp_path / "state.json")
    create(server, "p1")
    source.wait("partition_ready", "p1")
    followed(source, server, tmp_path / "state.json")
    source.stop()
    create(server, "p2")
    remove(server, "p1")
    second = start(server)
    second.wait("partition_ready", "p2")
    second.wait("partition_removed", "p1")
    followed(second, server, tmp_path / "state.json")
    assert len(second.events) == 2
    second.stop()
    third = start(server)
    create(server, "p3")
    third.wait("partition_ready", "p3")
    assert len(third.events) == 1
    assert len({event["key"] for each in (source, second, third) for event in each.events}) == 4


def test_events_without_a_state_file_start_again(server: InProcess, start: Start) -> None:
    create(server, "p1")
    source = start(server, state_file="")
    create(server, "p2")
    source.wait("partition_ready", "p2")


def test_a_compacted_revision_lists_again(
    server: InProcess, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "KEPT_CHANGES", 10)
    create(server, "p1", "p2")
    source = start(server)
    followed(source, server, tmp_path / "state.json")
    source.stop()
    old = state(tmp_path / "state.json")["revision"]
    remove(server, "p1")
    for _ in range(10):
        create(server, "other")
        remove(server, "other")
    create(server, "p3")
    until(lambda: server.server.controller.events.compacted > old)
    second = start(server)
    second.wait("partition_ready", "p3")
    second.wait("partition_removed", "p1")
    followed(second, server, tmp_path / "state.json")
    assert len(second.events) == 2


def test_a_lost_agent_is_reported_across_a_restart(server: InProcess, start: Start, tmp_path: Path) -> None:
    source = start(server, lost_seconds=3600)
    until(lambda: state(tmp_path / "state.json").get("agents_known"))
    server.life.down = frozenset({"ag02"})
    event = source.wait("agent_down", "ag02")
    assert event["object"]["reason"] == "no response"
    until(lambda: state(tmp_path / "state.json")["agents"]["ag02"]["state"] == "Down")
    assert source.types() == [("agent_down", "ag02")]
    source.stop()
    second = start(server, lost_seconds=0)
    second.wait("agent_lost", "ag02")
    server.life.down = frozenset()
    second.wait("agent_up", "ag02")
    assert second.types() == [("agent_lost", "ag02"), ("agent_up", "ag02")]


def test_a_stuck_partition_is_reported_twice(
    vipu_server: Callable[..., InProcess], start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Life, "configures", False)
    server = vipu_server(life=Life)
    pod(server, 4)
    source = start(server, stuck_seconds=0.2)
    create(server, "p1")
    until(lambda: len(source.events) == 2)
    assert [(event["type"], event["object"]["attempt"]) for event in source.events] == [
        ("partition_stuck", 1),
        ("partition_stuck", 2),
    ]


def test_a_restart_of_the_controller(vipu_server: Callable[..., InProcess], start: Start, tmp_path: Path) -> None:
    address = ListenAddress("127.0.0.1", free_port())
    server = vipu_server(life=Life, user=address)
    pod(server, 4)
    source = start(server)
    create(server, "p1")
    source.wait("partition_ready", "p1")
    server.stop()
    again = vipu_server(life=Life, user=address)
    create(again, "p2")
    source.wait("partition_ready", "p2")
    followed(source, again, tmp_path / "state.json")
    assert source.types() == [("partition_ready", "p1"), ("partition_ready", "p2")]


def test_a_controller_that_starts_later(
    vipu_server: Callable[..., InProcess], start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    source = start(None, api_host="127.0.0.1", api_port=port)
    until(lambda: "does not respond (connection refused)" in caplog.text)
    server = vipu_server(life=Life, user=ListenAddress("127.0.0.1", port))
    pod(server, 4)
    followed(source, server, tmp_path / "state.json")
    create(server, "p1")
    source.wait("partition_ready", "p1")
    assert caplog.text.count("does not respond") == 1


def secured(user: User, certs: Path, folder: Path) -> dict[str, Any]:
    """Return the options for a user, with the key and the certificates in files."""
    id, key = (value for _name, value in user.metadata)
    file = folder / f"{id}.key"
    file.write_text(f"{key}\n")
    return {
        "api_user_id": id,
        "api_access_key_file": str(file),
        "ca_path": str(certs / "server" / "ca.crt"),
        "client_cert": str(certs / "client" / "client.crt"),
        "client_key": str(certs / "client" / "client.key"),
    }


def test_tenants_receive_their_own_events(
    tenants: tuple[User, User, User], certs: Path, start: Start, tmp_path: Path
) -> None:
    root, alice, bob = tenants
    server = root.client
    assert isinstance(server, InProcess)
    source = start(server, api="tenant", **secured(alice, certs, tmp_path))
    until(lambda: state(tmp_path / "state.json").get("partitions", {}).keys() == {"pa"})
    bob.create("pb2", "a2")
    alice.create("pa2", "a1")
    source.wait("partition_ready", "pa2")
    assert source.types() == [("partition_ready", "pa2")]


def test_a_rejected_user_ends_the_source(
    tenants: tuple[User, User, User], certs: Path, start: Start, tmp_path: Path
) -> None:
    root, alice, _bob = tenants
    server = root.client
    assert isinstance(server, InProcess)
    assert "administrator" in str(start(server, **secured(alice, certs, tmp_path)).error())
    options = secured(alice, certs, tmp_path)
    Path(options["api_access_key_file"]).write_text("wrong")
    assert start(server, api="tenant", **options).error() is not None


def test_rules_that_do_not_take_events_stop_the_reading(server: InProcess, start: Start, tmp_path: Path) -> None:
    source = start(server, taken=False, queue_size=2)
    until(lambda: state(tmp_path / "state.json").get("agents_known"))
    for _ in range(30):
        create(server, "p1")
        until(lambda: not [p for p in server.server.controller.state.partitions.values() if p.ready.name != "ACTIVE"])
        remove(server, "p1")
    create(server, "p2")
    until(source.queue.full)
    assert state(tmp_path / "state.json")["revision"] < server.server.controller.events.revision
    source.take()
    source.wait("partition_ready", "p2")
    followed(source, server, tmp_path / "state.json")


def test_the_source_ends_while_the_rules_do_not_take_events(server: InProcess, start: Start, tmp_path: Path) -> None:
    source = start(server, taken=False, queue_size=1)
    until(lambda: state(tmp_path / "state.json").get("agents_known"))
    create(server, "p1", "p2", "p3")
    until(source.queue.full)
    source.stop()
    assert [each.name for each in threading.enumerate() if each.name.startswith("vipu_events")] == []
    second = start(server)  # what was not taken is delivered again
    second.wait("partition_ready", "p3")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"poll_seconds": 0}, "Cannot use poll_seconds 0.0 of vipu_events: the minimum is 0.1."),
        ({"colour": "red"}, "Cannot use the options of vipu_events: colour. Supported parameters include"),
        ({"api_port": "x"}, "api_port"),
        ({"client_cert": "/x"}, "client_key"),
        ({"api_access_key_file": "/nonexistent"}, "Cannot read api_access_key_file"),
    ],
)
def test_invalid_options(server: InProcess, start: Start, options: dict[str, Any], message: str) -> None:
    assert message in str(start(server, **options).error())


@pytest.mark.parametrize("text", ["{", "[]", '{"version": 1, "controller": "other:1/admin"}'])
def test_an_unusable_state_file(server: InProcess, start: Start, tmp_path: Path, text: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(text)
    error = str(start(server).error())
    assert f"Cannot read state file '{path}'" in error
    assert "Remove it to start without knowledge of earlier events." in error
    assert path.read_text() == text


def test_cluster_tests_use_the_admin_api_only(server: InProcess, start: Start, tmp_path: Path) -> None:
    calls = admin.service("TenantService").methods_by_name
    assert "GetClusterTest" not in calls
    source = start(server, api="tenant")
    followed(source, server, tmp_path / "state.json")
    assert state(tmp_path / "state.json")["agents"] == {}
