# SPDX-License-Identifier: GPL-3.0-or-later
"""Failover of a client after a failed TLS handshake: a dropped connection, and a certificate that is not trusted."""

from __future__ import annotations

import datetime
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import closing
from pathlib import Path

import grpc
import pytest

from openipu.shared.vipu.client import Client, Connection, VipuError
from openipu.shared.vipu.contract import admin
from openipu.vipu.tls import issue

SECONDS = 20.0
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset


def created(folder: Path, *names: str) -> Path:
    issue.create(folder, list(names), datetime.timedelta(days=2))
    return folder


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return created(tmp_path_factory.mktemp("tls") / "certs", "127.0.0.1")


class Controller(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Server that counts calls and returns empty replies."""

    def __init__(self, certs: Path, host: str = "127.0.0.1") -> None:
        self.calls = 0
        self._server = grpc.server(futures.ThreadPoolExecutor(2))
        self._server.add_generic_rpc_handlers([self])
        key, certificate, ca = ((certs / "server" / f).read_bytes() for f in ("server.key", "server.crt", "ca.crt"))
        credentials = grpc.ssl_server_credentials([(key, certificate)], ca, require_client_auth=True)
        self.address = f"{host}:{self._server.add_secure_port(f'{host}:0', credentials)}"
        self._server.start()

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        self.calls += 1
        return grpc.unary_unary_rpc_method_handler(lambda request, context: b"")

    def close(self) -> None:
        self._server.stop(None).wait()


@pytest.fixture
def controller(certs: Path) -> Iterator[Controller]:
    with closing(Controller(certs)) as made:
        yield made


def reset(connection: socket.socket) -> None:
    connection.recv(1 << 16)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


def answer_in_part(connection: socket.socket) -> None:
    connection.recv(1 << 16)
    connection.sendall(b"\x16\x03\x03\x00\x7a\x02")  # begin of a ServerHello


DROPS: dict[str, Callable[[socket.socket], object]] = {
    "at-once": lambda connection: None,
    "after-the-hello": lambda connection: connection.recv(1 << 16),
    "reset": reset,
    "in-the-answer": answer_in_part,
}


@pytest.fixture(params=DROPS)
def dropping(request: pytest.FixtureRequest) -> Iterator[str]:
    """Address of a server that drops each connection in the handshake."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(SECONDS)

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:  # closed
                    return
                with connection:
                    DROPS[request.param](connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


def connected(certs: Path, *addresses: str) -> Client:
    files = {"ca_path": "ca.crt", "client_cert": "client.crt", "client_key": "client.key"}
    paths = {name: str(certs / "client" / file) for name, file in files.items()}
    return Client(Connection(",".join(addresses), timeout=SECONDS, **paths))


def apply(client: Client) -> None:
    """Make a change, which is repeated only when it was surely not made."""
    client.call(client.admin.Apply, admin.ApplyRequest(), "apply objects")


def test_a_change_goes_to_the_next_controller_after_a_dropped_handshake(
    certs: Path, controller: Controller, dropping: str
) -> None:
    with connected(certs, dropping, controller.address) as client:
        apply(client)
    assert controller.calls == 1


@pytest.mark.parametrize("fault", ["authority", "name"])
def test_a_certificate_that_is_not_trusted_is_reported_and_not_skipped(
    certs: Path, controller: Controller, tmp_path: Path, fault: str
) -> None:
    """The next call goes to the other controller, so a client that tries again continues to work."""
    if fault == "authority":
        wrong, cause = Controller(created(tmp_path / "other", "127.0.0.1")), "that is not signed by the given CA"
    else:
        wrong, cause = Controller(certs, "127.0.0.2"), "for another name"
    with closing(wrong), connected(certs, wrong.address, controller.address) as client:
        with pytest.raises(VipuError) as raised:
            apply(client)
        message = f"Cannot apply objects: the V-IPU controller at {wrong.address} has a certificate {cause}."
        assert str(raised.value).startswith(message)
        assert controller.calls == 0
        apply(client)
    assert (wrong.calls, controller.calls) == (0, 1)
