# SPDX-License-Identifier: GPL-3.0-or-later
"""Floods of unfinished calls and connections, by tenants and by clients without credentials."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from openipu.process import limits
from openipu.shared.vipu.client import ACCESS_KEY_METADATA, USER_ID_METADATA
from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.api import auth, endpoints, exchange
from openipu.vipu.api.admission import Group, Limits
from openipu.vipu.api.health import Health
from openipu.vipu.domain.model import Put, Role
from openipu.vipu.tls import issue, load
from tests.attack import http2
from tests.integration.vipu_servers import InProcess, InstantLife, Process
from tests.waiting import until

MEGABYTE = 1 << 20
STATUS = "/virmgrpc.UserService/GetPartitionStatus"
VERSION = "/virmgrpc.VersionService/GetVersion"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
THREADS = 8
# Limits so small that the attacks are quick, with the separation of groups and users, and without it.
SMALL = {group: Limits(8 * THREADS, THREADS, 4 * THREADS, THREADS // 2) for group in Group}
SMALL[Group.REFLECTION] = Limits(THREADS, THREADS, THREADS // 2, THREADS // 2)
NONE = {group: Limits(10**6, THREADS, 10**6, THREADS) for group in Group}

Metadata = tuple[tuple[str, str], ...]


class Secure:
    """Secure controller with administrator ``root`` and users ``alice`` and ``bob``."""

    def __init__(self, start: Callable[..., InProcess], certs: Path, life: type[InstantLife] = InstantLife) -> None:
        issue.create(certs, ["127.0.0.1"])
        ca, key, certificate = (certs / "client" / name for name in ("ca.crt", "client.key", "client.crt"))
        self.credentials = grpc.ssl_channel_credentials(ca.read_bytes(), key.read_bytes(), certificate.read_bytes())
        self.server = start(life=life, channel=self.credentials, credentials=load.server_credentials(certs))
        self._keys: dict[str, str] = {}
        for id, role in (("root", Role.ADMIN), ("alice", Role.USER), ("bob", Role.USER)):
            user, self._keys[id] = auth.new_user(id, role, (), shared_certificate=True)
            self.server.server.controller.submit(lambda state, user=user: ([Put(user)], None)).result(10)
        self._hold = threading.Event()
        self._channels: list[grpc.Channel] = []
        self._calls: list[Any] = []

    def login(self, id: str) -> Metadata:
        """Return the metadata of a user, none for an empty id."""
        return ((USER_ID_METADATA, id), (ACCESS_KEY_METADATA, self._keys[id])) if id else ()

    def hold(self, path: str, user: str, count: int) -> list[Any]:
        """Begin calls with headers and no message, on a new connection."""
        channel = grpc.secure_channel(self.server.address, self.credentials, [("grpc.use_local_subchannel_pool", 1)])
        self._channels.append(channel)

        def silence() -> Iterator[bytes]:
            self._hold.wait()
            yield from ()

        stream = channel.stream_stream(path, None, None)
        calls = [stream(silence(), metadata=self.login(user)) for _ in range(count)]
        self._calls += calls  # a call without a reference is cancelled
        return calls

    def works(self, user: str) -> bool:
        """Return whether a call of a user is answered."""
        request = virmgrpc.ListPartitionsRequest()
        try:
            self.server.user.ListPartitions(request, metadata=self.login(user), timeout=2)
        except grpc.RpcError:
            return False
        return True

    def admission(self) -> Any:
        """Return the admission of calls."""
        return self.server.server._endpoints.admission

    def close(self) -> None:
        """End the held calls."""
        self._hold.set()
        for channel in self._channels:
            channel.close()


@pytest.fixture
def secure(vipu_server: Callable[..., InProcess], tmp_path: Path) -> Iterator[Callable[..., Secure]]:
    """Yield a factory of secure controllers."""
    made: list[Secure] = []

    def make(life: type[InstantLife] = InstantLife) -> Secure:
        made.append(Secure(vipu_server, tmp_path / "certs", life))
        return made[-1]

    yield make
    for each in made:
        each.close()


def one_group(self: Any, method: Any, metadata: Any) -> tuple[Group, auth.Caller]:
    """Identify callers, and count all of them as one."""
    allowed = self._authenticator(metadata).allowed if metadata_of_user(metadata) else None
    return Group.ADMINISTRATORS, auth.Caller("", allowed)


def metadata_of_user(metadata: Any) -> bool:
    """Return whether metadata contains a user id."""
    return USER_ID_METADATA in dict(metadata)


@pytest.mark.defence("openipu.vipu.api.guard.RequestGuard._identify", one_group)
@pytest.mark.parametrize(("path", "attacker"), [(STATUS, "alice"), (VERSION, "")])
def test_calls_without_a_message(
    secure: Callable[[], Secure], monkeypatch: pytest.MonkeyPatch, path: str, attacker: str
) -> None:
    monkeypatch.setattr("openipu.vipu.api.admission.LIMITS", SMALL)
    controller = secure()
    controller.hold(path, attacker, 4 * THREADS)
    until(lambda: controller.admission().unfinished() >= THREADS)
    assert controller.works("root")
    assert controller.works("bob")


def ignore(self: Any) -> None:
    """Do nothing."""


@pytest.mark.defence("openipu.vipu.api.exchange.Exchanges.cancel_late", ignore)
def test_late_messages(secure: Callable[[], Secure], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "RECEIVE_SECONDS", 0.3)
    monkeypatch.setattr(endpoints, "_MAINTENANCE_SECONDS", 0.05)
    controller = secure()
    controller.hold(STATUS, "alice", 3)
    until(lambda: controller.admission().unfinished() == 3)
    until(lambda: not controller.admission().unfinished(), 2)


@pytest.mark.defence("openipu.vipu.api.admission.LIMITS", NONE)
def test_calls_of_one_user(secure: Callable[[], Secure], defence: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if defence:
        monkeypatch.setattr("openipu.vipu.api.admission.LIMITS", SMALL)
    controller = secure()
    controller.hold(STATUS, "alice", 2 * THREADS)
    until(lambda: controller.admission().unfinished() >= THREADS)
    assert controller.works("bob")


class BlockedLife(InstantLife):
    """Partition life whose IPU-Machines never return attributes."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.blocked: list[Future[dict[str, dict[int, dict[str, str]]]]] = []

    def ipu_attributes(self, agent_ids: Any) -> Future[dict[str, dict[int, dict[str, str]]]]:
        self.blocked.append(Future())
        return self.blocked[-1]

    def stop(self) -> None:
        for each in self.blocked:
            each.set_result({})


@pytest.mark.defence("openipu.vipu.api.admission.Ticket.hold", ignore)
def test_cancelled_calls_keep_their_threads(secure: Callable[..., Secure], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openipu.vipu.api.admission.LIMITS", SMALL)
    controller = secure(BlockedLife)
    life = controller.server.life
    request = virmgrpc.ListIPUAttributesRequest()
    for blocked in (THREADS // 2, THREADS):  # together they would take all threads for such calls
        calls = [
            controller.server.user.ListIPUAttributes.future(request, metadata=controller.login("alice"), timeout=10)
            for _ in range(THREADS // 2)
        ]
        until(lambda: len(life.blocked) == blocked or controller.admission().unfinished() == THREADS)  # noqa: B023
        for call in calls:
            call.cancel()
    with pytest.raises(grpc.RpcError) as caught:
        controller.server.user.RemovePartition(
            virmgrpc.RemovePartitionRequest(partition_id="p"), metadata=controller.login("bob"), timeout=3
        )
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


@pytest.mark.defence("openipu.vipu.api.admission.LIMITS", NONE)
def test_readings_of_all_agents(secure: Callable[..., Secure]) -> None:
    """Each of them calls up to 64 agents at a time."""
    controller = secure(BlockedLife)
    life, user = controller.server.life, controller.server.user

    def read(name: str, count: int) -> list[Any]:
        request, metadata = virmgrpc.ListIPUAttributesRequest(), controller.login(name)
        return [user.ListIPUAttributes.future(request, metadata=metadata, timeout=20) for _ in range(count)]

    calls = read("alice", THREADS - 1)
    until(lambda: controller.admission().unfinished() == THREADS - 1)
    for name in ("alice", "bob"):
        with pytest.raises(grpc.RpcError) as caught:
            user.RemovePartition(
                virmgrpc.RemovePartitionRequest(partition_id="p"), metadata=controller.login(name), timeout=10
            )
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert len(life.blocked) == 2
    calls += read("bob", 1)
    until(lambda: len(life.blocked) == 3)
    for call in calls:
        call.cancel()


@pytest.mark.defence("openipu.vipu.api.admission.LIMITS", NONE)
def test_idle_reflection(secure: Callable[[], Secure], defence: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if defence:
        monkeypatch.setattr("openipu.vipu.api.admission.LIMITS", SMALL)
    controller = secure()
    controller.hold(REFLECTION, "alice", 2 * THREADS)
    until(lambda: controller.admission().unfinished() >= THREADS // 2)
    stub = reflection_pb2_grpc.ServerReflectionStub(controller.server.channel)
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    with pytest.raises(grpc.RpcError) as caught:
        list(stub.ServerReflectionInfo(iter([request]), timeout=5))
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    try:
        replies = list(stub.ServerReflectionInfo(iter([request]), metadata=controller.login("bob"), timeout=2))
    except grpc.RpcError:
        replies = []
    assert replies
    assert controller.works("root")


_watch = Health.Watch


def keep_watcher(self: Health, request: Any, caller: Any, context: Any) -> Iterator[Any]:
    """Keep what a stream has stored after its end, as the servicer of the library does."""
    self._watchers.add(threading.Event())
    yield from _watch(self, request, caller, context)


@pytest.mark.defence("openipu.vipu.api.health.Health.Watch", keep_watcher)
def test_health_watches_of_unknown_names_are_not_stored(instant_server: InProcess) -> None:
    stub = health_pb2_grpc.HealthStub(instant_server.channel)
    for number in range(3):
        watch = stub.Watch(health_pb2.HealthCheckRequest(service=f"x{number}"), timeout=10)
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
        watch.cancel()
    (endpoint,) = instant_server.server._endpoints
    until(lambda: not endpoint.health_checks.unfinished())
    assert not endpoint.health._watchers


def unlimited(files: int) -> int:
    """Return no limit of connections."""
    return 1 << 30


@pytest.mark.defence("openipu.vipu.api.endpoints.connection_limit", unlimited)
def test_connections_without_a_handshake(
    vipu_server: Callable[..., InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_MAX_CONNECTIONS", 40)
    monkeypatch.setattr(endpoints, "_HANDSHAKE_SECONDS", 1)
    server = vipu_server(life=InstantLife)
    held = [http2.Connection(server.address, preface=False) for _ in range(60)]
    try:
        assert sum(connection.closed(0.01) for connection in held) >= 20
        assert all(connection.closed(5) for connection in held)
        server.version.GetVersion(virmgrpc.VersionRequest(), timeout=5, wait_for_ready=True)
    finally:
        for connection in held:
            connection.close()


@pytest.mark.long
@pytest.mark.defence("openipu.vipu.api.endpoints.MAX_ADMIN_MESSAGE", 16 * MEGABYTE)
def test_unfinished_large_messages(vipu_process: Callable[..., Process]) -> None:
    server = vipu_process("--log-level", "warning")
    process = psutil.Process(server.process.pid)
    server.version.GetVersion(virmgrpc.VersionRequest(), timeout=10)
    before = process.memory_info().rss
    held = [http2.Connection(server.address) for _ in range(60)]
    senders = [
        threading.Thread(target=connection.begin, args=(STATUS, 15 * MEGABYTE, 15 * MEGABYTE - 10))
        for connection in held
    ]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    peak = process.memory_info().rss
    server.admin.ListUsers(admin.ListUsersRequest(), timeout=10)
    for connection in held:
        connection.close()
    assert peak <= before + 300 * MEGABYTE, (before, peak)
    until(
        lambda: process.memory_info().rss <= before + 50 * MEGABYTE, 60, lambda: str(process.memory_info().rss - before)
    )
