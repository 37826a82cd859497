# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the client: the message of each gRPC error, with real servers on loopback."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from openipu.shared.vipu.client import Client, Connection, VipuError
from openipu.shared.vipu.contract import admin, virmgrpc
from tests.integration.cli.client_support import aborting, failure, get_version


@pytest.fixture
def listen() -> Iterator[Callable[[bytes | None], int]]:
    """Yield a function that starts a server without gRPC and returns its port.

    The server sends a greeting and closes, or with None never responds.
    """
    with contextlib.ExitStack() as stack:

        def start(greeting: bytes | None) -> int:
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

            def accept() -> None:
                with contextlib.suppress(OSError):  # the listener is closed
                    while True:
                        peer, _ = listener.accept()
                        with peer:
                            peer.sendall(greeting or b"")

            if greeting is not None:
                thread = threading.Thread(target=accept)
                thread.start()
                stack.callback(thread.join)
                stack.callback(listener.shutdown, socket.SHUT_RDWR)
            return int(listener.getsockname()[1])

        yield start


def test_a_response(serve: Callable[..., int]) -> None:
    assert get_version(serve()) == "1.18.0"


def test_connection_refused() -> None:
    with socket.socket() as reserved:  # bound and not listening, so that the port stays reserved
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        error = failure(port, "list partitions")
    assert error.code == "UNAVAILABLE"
    assert error.message == (
        f"Cannot list partitions: the V-IPU controller at 127.0.0.1:{port} does not respond (connection refused). "
        "Check host and port, and that vipu-server runs there."
    )


def test_an_unknown_host() -> None:
    error = failure(8090, host="nowhere.invalid")
    assert str(error) == (
        "Cannot reach the V-IPU controller at nowhere.invalid:8090: "
        "it was not found: the host name cannot be resolved. Check the host."
    )


@pytest.mark.parametrize("port", [0, -1, 65536, 99999])
def test_invalid_ports_are_rejected(port: int) -> None:
    error = failure(port)
    assert (error.code, error.message) == (
        "INVALID_ARGUMENT",
        f"Cannot call the controller: the port must be 1 to 65535, not {port}.",
    )


@pytest.mark.parametrize(("host", "address"), [("::1", "[::1]:8090"), ("[::1]", "[::1]:8090"), ("h", "h:8090")])
def test_addresses(host: str, address: str) -> None:
    assert Connection(host=host).address == address


@pytest.mark.parametrize("greeting", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n"])
def test_a_server_without_grpc(listen: Callable[[bytes | None], int], greeting: bytes) -> None:
    assert "does not use gRPC" in str(failure(listen(greeting)))


def test_timeout(listen: Callable[[bytes | None], int]) -> None:
    error = failure(listen(None), timeout=0.2)
    assert error.code == "DEADLINE_EXCEEDED" and "it did not respond within the timeout" in error.message


def test_a_missing_service(serve: Callable[..., int]) -> None:
    port = serve()
    with Client(Connection("127.0.0.1", port)) as client, pytest.raises(VipuError) as caught:
        client.call(client.admin.ListAgents, admin.ListAgentsRequest(), "list agents")
    assert caught.value.code == "UNIMPLEMENTED"
    assert str(caught.value).startswith(
        f"Cannot list agents: the V-IPU controller at 127.0.0.1:{port} offers only the public user API. Use the admin"
    )


@pytest.mark.parametrize(
    ("code", "details", "action", "message"),
    [
        ("NOT_FOUND", "partition 'p' does not exist.", "reset 'p'", "Cannot reset 'p': partition 'p' does not exist."),
        ("RESOURCE_EXHAUSTED", "Cannot create 'p': no room.", "create 'p'", "Cannot create 'p': no room."),
        ("PERMISSION_DENIED", "Only administrators may do this", "x", "Cannot x: Only administrators may do this."),
        ("UNAUTHENTICATED", "The access key is wrong.", "", "The access key is wrong."),
        ("UNAVAILABLE", "The controller is stopping.", "x", "Cannot x: The controller is stopping."),
        ("INTERNAL", "Internal error; see the log.", "x", "Cannot x: Internal error; see the log."),
        ("FAILED_PRECONDITION", "", "create 'p'", "Cannot create 'p': FAILED_PRECONDITION."),
    ],
)
def test_messages_of_the_controller_are_kept(
    serve: Callable[..., int], code: str, details: str, action: str, message: str
) -> None:
    error = failure(serve(aborting(grpc.StatusCode[code], details)), action)
    assert (error.code, error.message, error.details) == (code, message, details)


def test_a_controller_that_stops_during_a_call(serve: Callable[..., int]) -> None:
    def respond(*_: Any) -> Any:
        raise RuntimeError("oops")

    assert failure(serve(respond), "list partitions").code == "UNKNOWN"


def test_replies_of_many_megabytes(serve: Callable[..., int]) -> None:
    def respond(*_: Any) -> Any:
        return virmgrpc.VersionReply(version="x" * (20 << 20))

    assert len(get_version(serve(respond), timeout=30)) == 20 << 20


def test_a_closed_client_opens_again(serve: Callable[..., int]) -> None:
    client = Client(Connection("127.0.0.1", serve()))
    for _ in range(2):
        assert client.call(client.version.GetVersion, virmgrpc.VersionRequest()).version == "1.18.0"
        client.close()
    client.close()


@pytest.mark.parametrize("library", ["grpc", "google.protobuf"])
def test_the_error_names_a_missing_library(library: str) -> None:
    package = "grpcio" if library == "grpc" else "protobuf"
    code = f"""
import sys
sys.modules[{library!r}] = None
from openipu.shared.vipu.client import Client, Connection, VipuError
try:
    with Client(Connection()) as client:
        client.version
except VipuError as error:
    print(error.code, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("MISSING_LIBRARY ")
    assert f"{package} is missing in the Python of this task. Run 'pip install {package}'" in done.stdout
