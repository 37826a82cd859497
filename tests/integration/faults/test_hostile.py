# SPDX-License-Identifier: GPL-3.0-or-later
"""Hostile input of controller and agent returns a status code, without crash, hang or leak."""

from __future__ import annotations

import contextlib
import os
import random
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import grpc
import psutil
import pytest

from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.agent_api import identity
from openipu.vipu.agent_api.contract import agent
from tests.agent_owner import OWNER
from tests.integration.agents.agents_support import RackProcess
from tests.integration.faults import hostile
from tests.integration.vipu_servers import Client, Process

MEGABYTE = 1 << 20
USER = hostile.methods(
    virmgrpc.service("VersionService"), virmgrpc.service("UserService"), admin.service("TenantService")
)
ADMIN = [*USER, *hostile.methods(admin.service("AdminService"))]
AGENT = [
    replace(method, metadata=identity.metadata(OWNER))
    for method in hostile.methods(agent.service("AgentService"))
    if not method.path.endswith("/GiveUp")  # it has an empty request, and other methods need the owner
]

RAW = {
    "random bytes": random.Random(1).randbytes(10_000),
    "HTTP/1": b"GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
    "TLS": bytes.fromhex("16030100c8010000c40303") + bytes(200),
    "a preface and random bytes": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + random.Random(2).randbytes(10_000),
    "a preface and a frame without end": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff\xff\xff\x00\x00\x00\x00\x00\x01",
    "half a preface": b"PRI * HT",
    "nothing": b"",
}


@pytest.fixture
def controller(vipu_process: Callable[..., Process]) -> Process:
    """Start a controller with two endpoints."""
    return vipu_process("--admin-port", "0", "--partition-timeout", "2", "--log-level", "warning")


@pytest.fixture
def administrator(controller: Process) -> Iterator[Client]:
    client = Client(controller.ready.rpartition(" on ")[2].strip())
    yield client
    client.close()


def alive(channel: grpc.Channel) -> None:
    """Check that another client is served."""
    virmgrpc.stub(channel, "VersionService").GetVersion(virmgrpc.VersionRequest(), timeout=5)


def small_pod(client: Client) -> None:
    """Create an object ``a1`` of every kind, to which generated requests refer."""
    reply = client.admin.Apply(
        admin.ApplyRequest(
            agents=[admin.AgentSpec(id="a1", host="127.0.0.9", port=9)],
            clusters=[admin.ClusterSpec(id="a1", agent_ids=["a1"])],
            allocations=[admin.AllocationSpec(id="a1", cluster_id="a1", size=1)],
            users=[admin.UserSpec(id="a1")],
        )
    )
    assert reply.applied, reply.results


def no_traceback(server: Process) -> None:
    assert server.stop() == 0
    log = "".join(server.errors)
    assert "Traceback" not in log and "internal error" not in log, log[:3000]


def raw(address: str, data: bytes) -> None:
    """Send bytes to a port, and wait until the server closes or waits for more."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=1) as connection, contextlib.suppress(OSError):
        connection.sendall(data)
        connection.settimeout(0.3)
        while connection.recv(65536):
            pass


def test_raw_bytes(controller: Process, administrator: Client) -> None:
    for address in (controller.address, administrator.address):
        for data in RAW.values():
            raw(address, data)
    alive(controller.channel)
    alive(administrator.channel)
    no_traceback(controller)


def test_random_messages(controller: Process, administrator: Client) -> None:
    seed = int.from_bytes(os.urandom(4), "big")
    generator = random.Random(seed)
    small_pod(administrator)
    for channel, methods in ((controller.channel, USER), (administrator.channel, ADMIN)):
        for method in methods:
            for data in hostile.noise(method.request, generator, 15):
                method.check(channel, data, f"noise of seed {seed}: {data.hex()}")
    no_traceback(controller)


def test_hostile_values(controller: Process, administrator: Client) -> None:
    for method in ADMIN:
        small_pod(administrator)
        for what, message in hostile.variants(method.request):
            method.check(administrator.channel, message.SerializeToString(), what)
    no_traceback(controller)


def test_users_have_no_administration(controller: Process) -> None:
    for method in hostile.methods(admin.service("AdminService")):
        code, _ = method.call(controller.channel, b"")
        assert code is grpc.StatusCode.UNIMPLEMENTED


def test_oversized_messages(controller: Process, administrator: Client) -> None:
    process = psutil.Process(controller.process.pid)

    def storm() -> int:
        for channel, methods in ((controller.channel, USER), (administrator.channel, ADMIN)):
            for method in methods:
                for name, data in hostile.long_lists(method.request):
                    method.check(channel, data, f"a million {name}")
            code, _ = methods[0].call(channel, bytes(17 * MEGABYTE))
            assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
            with pytest.raises(grpc.RpcError) as caught:
                virmgrpc.stub(channel, "VersionService").GetVersion(
                    virmgrpc.VersionRequest(), metadata=[("vipu-user-id", "x" * 100_000)], timeout=5
                )
            assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            alive(channel)
        return int(process.memory_info().rss)

    # Allocators reach a stable size after some repetitions; a leak does not.
    sizes = [storm(), storm()]
    while sizes[-1] > sizes[-2] + 16 * MEGABYTE and len(sizes) < 8:
        sizes.append(storm())
    assert sizes[-1] <= sizes[-2] + 16 * MEGABYTE, sizes
    assert sizes[-1] < 600 * MEGABYTE, sizes
    no_traceback(controller)


def test_agents(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    seed = int.from_bytes(os.urandom(4), "big")
    generator = random.Random(seed)
    rack = RackProcess(tmp_path, 1)
    try:
        address = f"{rack.agents[0].host}:{rack.agents[0].port}"
        for data in RAW.values():
            raw(address, data)
        with grpc.insecure_channel(address) as channel:
            for method in AGENT:
                for data in hostile.noise(method.request, generator, 15):
                    method.check(channel, data, f"noise of seed {seed}: {data.hex()}")
                for what, message in hostile.variants(method.request):
                    method.check(channel, message.SerializeToString(), what)
                for name, data in hostile.long_lists(method.request):
                    method.check(channel, data, f"a million {name}")
            agent.stub(channel, "AgentService").GetInfo(agent.GetInfoRequest(), timeout=5)
    finally:
        rack.close()
    log = capfd.readouterr().err
    assert "Traceback" not in log, log[:3000]
