# SPDX-License-Identifier: GPL-3.0-or-later
"""Slow, misled and unauthenticated clients of the metrics endpoint."""

from __future__ import annotations

import operator
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from openipu.vipu.metrics import connections, exporter
from openipu.vipu.metrics.access import Token
from openipu.vipu.metrics.address import MetricsAddress
from openipu.vipu.metrics.exporter import Exporter
from tests.integration.scraping import get

HOST = "127.84.0.2"
MANY = 100


@pytest.fixture
def start() -> Iterator[Callable[..., Exporter]]:
    with ExitStack() as stack:

        def begin(token: Token | None = None) -> Exporter:
            endpoint = Exporter(MetricsAddress(HOST, 0, token=token), [])
            endpoint.bind()
            endpoint.start()
            stack.callback(endpoint.stop)
            return endpoint

        yield begin


@pytest.mark.long
@pytest.mark.defence("openipu.vipu.metrics.connections._MAX_IDLE", 1 << 30)
def test_slow_clients(start: Callable[..., Exporter], monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that never finish their requests neither keep others out nor occupy more and more threads."""
    monkeypatch.setattr(connections, "_MAX_IDLE_SECONDS", 600)  # on a busy machine, time must not close them
    monkeypatch.setattr(exporter._Handler, "timeout", 600)
    listen = start().listen
    with ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection((listen.host, listen.port), 5)) for _ in range(MANY)]
        for each in slow:
            each.sendall(b"GET /metrics HTTP/1.1\r\nX-Slow: ")
        assert get(listen.url)[0] == 200
        slow[0].settimeout(2)
        try:
            end = slow[0].recv(1)
        except ConnectionError:
            end = b""
        except TimeoutError:
            end = b"still open"
        assert end == b"", "the oldest connection is closed"


@pytest.mark.defence("openipu.vipu.metrics.exporter._Server.request_queue_size", 5)
def test_bursts_of_connections() -> None:
    """Connections wait for a busy process. The kernel would drop further ones, which are repeated after a second."""
    endpoint = Exporter(MetricsAddress(HOST, 0), [])
    listen = endpoint.bind()
    with ExitStack() as stack:
        stack.callback(endpoint.stop)
        made = []
        with suppress(TimeoutError):
            for _ in range(MANY):
                made.append(stack.enter_context(socket.create_connection((listen.host, listen.port), 0.9)))
        assert len(made) == MANY


@pytest.mark.defence("openipu.vipu.metrics.connections._MAX_IDLE_SECONDS", 1e9)
def test_a_request_that_never_ends(start: Callable[..., Exporter], monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that keeps sending is not inactive. Its connection is closed nevertheless."""
    monkeypatch.setattr(connections, "_MAX_IDLE_SECONDS", connections._MAX_IDLE_SECONDS / 100)
    listen = start().listen
    with socket.create_connection((listen.host, listen.port), 0.2) as slow:
        ended = False
        for _ in range(8):
            try:
                slow.sendall(b"GET /")
                ended = ended or slow.recv(1) == b""
            except TimeoutError:
                continue
            except OSError:
                ended = True
        assert ended


@pytest.mark.defence("openipu.vipu.metrics.exporter.is_known_host", operator.ne)
def test_dns_rebinding(start: Callable[..., Exporter]) -> None:
    url = start().listen.url
    assert get(url, headers={"Host": "attacker.example:2112"})[0] == 421
    assert get(url, headers={"Host": "10.3.1.101:2112.attacker.example"})[0] == 421


@pytest.mark.defence("openipu.vipu.metrics.access._equal", operator.ne)
def test_a_wrong_token(start: Callable[..., Exporter], tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a" * 32)
    file.chmod(0o600)
    url = start(Token(file)).listen.url
    for header in ("", "Bearer", "Bearer " + "b" * 32, "Basic " + "a" * 32, "Bearer " + "a" * 31):
        assert get(url, headers={"Authorization": header})[0] == 401
