# SPDX-License-Identifier: GPL-3.0-or-later
"""The relay reaches a twin in a network namespace of its own from outside, over TCP and UDP."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from openipu.process.background import Endpoint
from openipu.twin.launch import relay
from tests.ports import free_port

HOST = "127.0.0.1"
# Answers each message over TCP and UDP with its upper case.
INSIDE = """
import asyncio, sys
from openipu.process import network_namespace
if not network_namespace.enter():
    sys.exit("no namespaces")
host, port = sys.argv[1], int(sys.argv[2])
async def answer(reader, writer):
    writer.write((await reader.read()).upper())
    writer.close()
class Answer(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport
    def datagram_received(self, data, address):
        self.transport.sendto(data.upper(), address)
async def main():
    await asyncio.start_server(answer, host, port)
    await asyncio.get_running_loop().create_datagram_endpoint(Answer, (host, port))
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
asyncio.run(main())
"""


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def inside(port: int) -> Iterator[int]:
    """Return the pid of a server in a namespace of its own."""
    command = [sys.executable, "-c", INSIDE, HOST, str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            pytest.skip("network namespaces are not available")
        yield process.pid


def ask_tcp(port: int) -> bytes:
    with socket.create_connection((HOST, port), timeout=20) as client:
        client.sendall(b"tcp")
        client.shutdown(socket.SHUT_WR)
        return client.recv(10)


def ask_udp(port: int) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(20)
        client.connect((HOST, port))
        client.send(b"udp")
        return client.recv(10)


def test_a_relay_connects_to_the_namespace(tmp_path: Path, port: int, inside: int) -> None:
    endpoints = [Endpoint(HOST, port), Endpoint(HOST, port, udp=True)]
    with pytest.raises(ConnectionRefusedError):
        ask_tcp(port)
    try:
        # The second relay replaces the first one.
        for _number in range(2):
            assert relay.Starter().start(tmp_path, inside, endpoints) == ""
            assert (ask_tcp(port), ask_udp(port)) == (b"TCP", b"UDP")
    finally:
        relay.service(tmp_path).stop()
    with pytest.raises(ConnectionRefusedError):
        ask_tcp(port)


def test_an_endpoint_in_use_is_reported(tmp_path: Path, port: int, inside: int) -> None:
    with socket.create_server((HOST, port)):
        error = relay.Starter().start(tmp_path, inside, [Endpoint(HOST, port)])
    assert f"Cannot use {HOST}:{port}" in error
    assert relay.service(tmp_path).running() is None


def test_a_cancelled_relay_ends(tmp_path: Path) -> None:
    starter = relay.Starter()
    starter.cancel()
    starter.cancel()
    assert relay.service(tmp_path).running() is None
