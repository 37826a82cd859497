# SPDX-License-Identifier: GPL-3.0-or-later
"""The network of the fault tests separates one target, and passes on what waited when it is joined again."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.ha.target_network import TargetNetwork

SHORT = 0.3  # seconds without data; a busy machine can only make it longer


@pytest.fixture
def targets() -> Iterator[list[socket.socket]]:
    """Two listening sockets."""
    made = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    yield made
    for each in made:
        each.close()


@pytest.fixture
def network(targets: list[socket.socket]) -> Iterator[TargetNetwork]:
    made = TargetNetwork([f"127.0.0.1:{each.getsockname()[1]}" for each in targets])
    yield made
    made.close()


@pytest.fixture
def connections(
    targets: list[socket.socket], network: TargetNetwork
) -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    """Both ends of a connection to each target."""
    made = []
    for target, port in zip(targets, network.ports, strict=True):
        client = socket.create_connection(("127.0.0.1", port), 20)
        target.settimeout(20)
        made.append((client, target.accept()[0]))
    yield made
    for pair in made:
        for each in pair:
            each.close()


def received(end: socket.socket, seconds: float = 20) -> bytes | None:
    """Return the next data, None without data in time."""
    end.settimeout(seconds)
    try:
        return end.recv(100)
    except TimeoutError:
        return None


@pytest.mark.parametrize("used", [True, False], ids=["used last", "by number"])
def test_only_one_target_is_separated(
    network: TargetNetwork, connections: list[tuple[socket.socket, socket.socket]], used: bool
) -> None:
    (client, target), (lonely_client, lonely) = connections
    for first, second in connections:
        first.sendall(b"1")
        assert received(second) == b"1"
    if used:
        network.separate_used()
    else:
        network.separate(1)
    for first, second in (lonely_client, lonely), (lonely, lonely_client):
        first.sendall(b"2")
        assert received(second, SHORT) is None
    for first, second in (client, target), (target, client):
        first.sendall(b"3")
        assert received(second) == b"3"
    network.join()
    assert received(lonely) == b"2"
    assert received(lonely_client) == b"2"
