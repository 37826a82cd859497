# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections to a follower that becomes the leader: they stay open, and no call on them is cut."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from openipu.shared.vipu.client import ACCESS_KEY_METADATA, USER_ID_METADATA
from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.shared.vipu.failover import ERROR_CODE_METADATA, LEADER_METADATA, NOT_LEADER
from openipu.vipu.api.admission import LIMITS, Group
from openipu.vipu.api.methods import MAX_REQUEST
from openipu.vipu.storage.etcd import keys
from tests.ha.controllers import SERVER, Controller, Controllers
from tests.ha.replica import Replica
from tests.integration.vipu_servers import run
from tests.waiting import until

SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING
THREADS = 8

Metadata = tuple[tuple[str, str], ...]


class HealthStream:
    """Stream of health checks, and the statuses that it has received."""

    def __init__(self, channel: grpc.Channel, service: str = "") -> None:
        request = health_pb2.HealthCheckRequest(service=service)
        self._stream = health_pb2_grpc.HealthStub(channel).Watch(request, wait_for_ready=True)
        self.statuses: list[int] = []
        self.error: grpc.RpcError | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            for reply in self._stream:
                self.statuses.append(reply.status)
        except grpc.RpcError as error:
            self.error = error

    def wait(self, *statuses: int) -> None:
        """Wait until the stream has received exactly these statuses."""
        until(lambda: self.error or self.statuses == list(statuses), 60, lambda: str(self.statuses))
        assert self.error is None

    def close(self) -> None:
        self._stream.cancel()
        self._thread.join(10)
        assert not self._thread.is_alive()


class Changes:
    """Threads that change records over one channel without a pause, until ``stop``."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.made: list[str] = []
        self.leaders: list[str] = []  # that rejections named, empty without one
        self.others: list[grpc.RpcError] = []
        self._stub = admin.stub(channel, "AdminService")
        self._numbers = itertools.count()
        self._stopping = threading.Event()
        self._pool = ThreadPoolExecutor(THREADS)
        self._running = [self._pool.submit(self._run) for _ in range(THREADS)]

    def stop(self) -> None:
        self._stopping.set()
        for running in self._running:
            running.result(60)
        self._pool.shutdown()

    def _run(self) -> None:
        while not self._stopping.is_set():
            id = f"a{next(self._numbers)}"
            agent = admin.AgentSpec(id=id, host=f"{id}.invalid")
            try:
                assert self._stub.Apply(admin.ApplyRequest(agents=[agent]), timeout=30).applied
            except grpc.RpcError as error:
                metadata = {key: str(value) for key, value in error.trailing_metadata() or ()}
                if error.code() is grpc.StatusCode.UNAVAILABLE and metadata.get(ERROR_CODE_METADATA) == NOT_LEADER:
                    self.leaders.append(metadata.get(LEADER_METADATA, ""))
                else:
                    self.others.append(error)
            else:
                self.made.append(id)


def test_no_call_is_cut_by_a_takeover(url: str, tmp_path: Path) -> None:
    controllers = Controllers(tmp_path, url, 2)
    try:
        leader = controllers.wait_leader()
        (follower,) = (each for each in controllers.all if each is not leader)
        with grpc.insecure_channel(follower.address) as channel:
            health, changes = HealthStream(channel), Changes(channel)
            health.wait(NOT_SERVING)
            until(lambda: len(changes.leaders) > 10 * THREADS, 60, "the follower rejects calls")
            assert set(changes.leaders) == {leader.address}
            leader.kill()
            health.wait(NOT_SERVING, SERVING)
            until(
                lambda: len(changes.made) > 10 * THREADS, 60, lambda: f"changes: {changes.others} {controllers.logs()}"
            )
            changes.stop()
            listed = admin.stub(channel, "AdminService").ListAgents(admin.ListAgentsRequest(), timeout=10).agents
            assert {agent.spec.id for agent in listed} == set(changes.made), "a rejected change was made"
            health.close()
        assert not changes.others, changes.others[:3]
        assert health.statuses == [NOT_SERVING, SERVING]
        # During the takeover no controller leads, so no address is named, and not the own one either.
        assert set(changes.leaders) <= {leader.address, ""}
    finally:
        controllers.close()


@pytest.fixture
def secure(url: str, tmp_path: Path) -> Iterator[tuple[Replica, Controller, grpc.Channel, Metadata]]:
    """Leader in this process, follower with TLS and users, a channel to it, and the login of the administrator."""
    certs = tmp_path / "certs"
    made = run(
        "--tls-init", str(certs), "--init", "--secure", "--store", url, "--database", str(tmp_path / "unused.db")
    )
    assert made.returncode == 0, made.stderr
    location = keys.parse(url)
    leader = Replica(location)
    leader.lead()
    follower = Controller(
        "c0", tmp_path, location.endpoints, location.prefix, SERVER, "--secure", "--certs", str(certs)
    )
    follower.start()
    client = certs / "client"
    files = [(client / name).read_bytes() for name in ("ca.crt", "client.key", "client.crt")]
    found = re.search(r'api-access-key="(.*)"', (tmp_path / "admin.vipu-cli.hcl").read_text())
    assert found
    with grpc.secure_channel(follower.address, grpc.ssl_channel_credentials(*files)) as channel:
        yield leader, follower, channel, ((USER_ID_METADATA, "admin"), (ACCESS_KEY_METADATA, found[1]))
    follower.kill()
    follower.relay.close()
    leader.close()


def code(call: Any, request: Any, metadata: Metadata = ()) -> grpc.StatusCode:
    """Return the status of a call."""
    try:
        call(request, metadata=metadata, timeout=20)
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def test_a_takeover_keeps_security_and_limits_of_open_connections(
    secure: tuple[Replica, Controller, grpc.Channel, Metadata],
) -> None:
    leader, _, channel, login = secure
    users, administrators = virmgrpc.stub(channel, "UserService"), admin.stub(channel, "AdminService")
    # The limit of health checks covers both roles of the controller: the oldest stream ends for a further one.
    streams = []
    for _ in range(LIMITS[Group.HEALTH].calls):
        streams.append(HealthStream(channel))
        streams[-1].wait(NOT_SERVING)
    partitions = virmgrpc.ListPartitionsRequest()
    assert code(users.ListPartitions, partitions) is grpc.StatusCode.UNAVAILABLE
    assert code(users.ListPartitions, partitions, login) is grpc.StatusCode.UNAVAILABLE
    leader.leadership.resign()
    for stream in streams:
        stream.wait(NOT_SERVING, SERVING)
    assert code(users.ListPartitions, partitions) is grpc.StatusCode.UNAUTHENTICATED
    assert code(users.ListPartitions, partitions, login) is grpc.StatusCode.OK
    assert code(administrators.ListUsers, admin.ListUsersRequest(), login) is grpc.StatusCode.OK
    # Without credentials, the call ends before its client has sent a request.
    unsent = channel.stream_unary("/virmgrpc.UserService/ListPartitions")
    silent = threading.Event()
    with pytest.raises(grpc.RpcError) as caught:
        unsent((b"" for _ in iter(silent.wait, True)), timeout=20)
    silent.set()
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    large = virmgrpc.CreatePartitionRequest(requirements=virmgrpc.PartitionRequirements(id="x" * MAX_REQUEST))
    assert code(users.CreatePartition, large, login) is grpc.StatusCode.RESOURCE_EXHAUSTED
    further = HealthStream(channel)
    further.wait(SERVING)
    until(lambda: streams[0].error, 20, "the oldest stream ends")
    assert all(stream.error is None for stream in streams[1:])
    for stream in (*streams, further):
        stream.close()
