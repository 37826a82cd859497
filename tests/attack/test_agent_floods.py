# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients that occupy an agent, so that its controller cannot reach it."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from openipu.process import limits
from openipu.vipu.agent import guard, hardware, server
from openipu.vipu.agent.server import AgentServer
from openipu.vipu.agent_api.contract import agent
from openipu.vipu.tls import issue, load
from tests.attack import http2
from tests.event_loop import LoopThread

HOST = "127.0.0.1"
CONFIGURE, CABLES = (f"/openipu.vipu.agent.v1.AgentService/{name}" for name in ("Configure", "ReadCables"))

Start = Callable[..., str]
"""Start an agent with these credentials and return its address."""


@pytest.fixture
def start() -> Iterator[Start]:
    loop = LoopThread()
    servers: list[AgentServer] = []

    def make(credentials: load.ServerCredentials | None = None) -> str:
        machine = hardware.load("twin")(hardware.Options(HOST, 0, {}))
        servers.append(AgentServer(machine, HOST, 0, credentials))
        loop.run(servers[-1].start())
        return f"{HOST}:{servers[-1].port}"

    yield make
    for each in servers:
        loop.run(each.stop())
    loop.stop()


def code_without_request(channel: grpc.Channel, path: str) -> Any:
    """Return the status of a call whose client sends no request. The client gives up after a while."""
    ended = threading.Event()

    def silence() -> Iterator[bytes]:
        ended.wait()
        yield from ()

    try:
        channel.stream_unary(path)(silence(), timeout=3)
    except grpc.RpcError as error:
        return error.code(), str(error.details())
    finally:
        ended.set()
    return grpc.StatusCode.OK, ""


def unlimited(files: int) -> int:
    """Return no limit of connections."""
    return 1 << 30


@pytest.mark.defence("openipu.vipu.agent.server.connection_limit", unlimited)
def test_connections_without_a_handshake(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_MAX_CONNECTIONS", 40)
    monkeypatch.setattr(server, "_HANDSHAKE_SECONDS", 1)
    address = start()
    held = [http2.Connection(address, preface=False) for _ in range(60)]
    try:
        assert sum(connection.closed(0.01) for connection in held) >= 20
        assert all(connection.closed(5) for connection in held)
        with grpc.insecure_channel(address) as channel:
            stub = agent.stub(channel, "AgentService")
            assert stub.GetInfo(agent.GetInfoRequest(), timeout=5, wait_for_ready=True).num_ipus == 4
    finally:
        for connection in held:
            connection.close()


@pytest.mark.defence("openipu.vipu.agent.guard.is_controller", operator.is_not)
def test_clients_are_rejected_before_their_request(start: Start, tmp_path: Path) -> None:
    certs = tmp_path / "certs"
    issue.create(certs, [HOST])
    ca, key, certificate = ((certs / "client" / name).read_bytes() for name in (load.CA, "client.key", "client.crt"))
    files = [certs / "server" / name for name in (load.CA, "server.crt", "server.key")]
    address = start(load.mutual(*files))
    with grpc.secure_channel(address, grpc.ssl_channel_credentials(ca, key, certificate)) as channel:
        assert code_without_request(channel, CONFIGURE)[0] is grpc.StatusCode.PERMISSION_DENIED


@pytest.mark.defence("openipu.vipu.agent.guard.RECEIVE_SECONDS", 1e9)
def test_late_requests(start: Start, monkeypatch: pytest.MonkeyPatch, defence: bool) -> None:
    if defence:
        monkeypatch.setattr(guard, "RECEIVE_SECONDS", 0.3)
    with grpc.insecure_channel(start()) as channel:
        code, details = code_without_request(channel, CABLES)
    assert (code, "0.3 s" in details) == (grpc.StatusCode.DEADLINE_EXCEEDED, True)
