# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the client: the message of each gRPC error, with real servers on loopback."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest

from openipu.shared.vipu.client import (
    Client,
    Connection,
    VipuError,
    settled,
    wait_partition,
)
from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.tls import issue, load

TIMEOUT = 5.0  # seconds for a call that gets a response


class Servicer:
    """Servicer that responds to every method with one function of method name, request and context."""

    def __init__(self, respond: Callable[[str, Any, Any], Any]) -> None:
        self._respond = respond

    def __getattr__(self, method: str) -> Any:
        return lambda request, context: self._respond(method, request, context)


def version(method: str, request: Any, context: Any) -> Any:
    return virmgrpc.VersionReply(version="1.18.0")


@pytest.fixture
def serve() -> Iterator[Callable[..., int]]:
    """Yield a function that starts a server of the public services and returns its port."""
    with contextlib.ExitStack() as stack:

        def start(respond: Any = version, credentials: Any = None) -> int:
            pool = futures.ThreadPoolExecutor(2)
            server = grpc.server(pool, options=[("grpc.max_send_message_length", -1)])
            servicer = Servicer(respond)
            server.add_generic_rpc_handlers(
                [virmgrpc.handler(service, servicer) for service in ("VersionService", "UserService")]
            )
            if credentials is None:
                port = server.add_insecure_port("127.0.0.1:0")
            else:
                port = server.add_secure_port("127.0.0.1:0", credentials)
            server.start()
            stack.callback(lambda: (server.stop(0).wait(), pool.shutdown()))
            return int(port)

        yield start


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


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return folders of certificates: good, other (another authority), name (another server), old (expired)."""
    folder = tmp_path_factory.mktemp("certs")
    issue.create(folder / "good", ["127.0.0.1"])
    issue.create(folder / "other", ["127.0.0.1"])
    issue.create(folder / "name", ["127.9.9.9"])
    issue.create(folder / "old", ["127.0.0.1"], datetime.timedelta(days=-1))
    (folder / "text").write_text("no certificate\n")
    return folder


def credentials(folder: Path, client: bool = True) -> Any:
    """Return the credentials of a server. ``client``: require client certificates."""
    server = folder / "server"
    pair = ((server / "server.key").read_bytes(), (server / "server.crt").read_bytes())
    return grpc.ssl_server_credentials([pair], (server / load.CA).read_bytes() if client else None, client)


def ours(folder: Path, **replaced: Path) -> dict[str, str]:
    """Return the client options for the certificates of a folder."""
    client = folder / "client"
    paths = {
        "ca_path": client / load.CA,
        "client_cert": client / "client.crt",
        "client_key": client / "client.key",
    }
    return {name: str(path) for name, path in {**paths, **replaced}.items()}


def get_version(port: int, action: str = "", **options: Any) -> str:
    """Return the version of the controller at a port of 127.0.0.1."""
    with Client(Connection(**{"host": "127.0.0.1", "port": port, "timeout": TIMEOUT, **options})) as client:
        return str(client.call(client.version.GetVersion, virmgrpc.VersionRequest(), action).version)


def failure(port: int, action: str = "", **options: Any) -> VipuError:
    """Return the error of a version request, after a check that it is one line."""
    with pytest.raises(VipuError) as caught:
        get_version(port, action, **options)
    error = caught.value
    assert str(error) == error.message and error.message.endswith(".") and "\n" not in error.message
    return error


def test_a_response(serve: Callable[..., int], certs: Path) -> None:
    assert get_version(serve()) == "1.18.0"
    assert get_version(serve(credentials=credentials(certs / "good")), **ours(certs / "good")) == "1.18.0"


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
        f"Cannot call the controller: port {port} is not between 1 and 65535.",
    )


@pytest.mark.parametrize(("host", "address"), [("::1", "[::1]:8090"), ("[::1]", "[::1]:8090"), ("h", "h:8090")])
def test_addresses(host: str, address: str) -> None:
    assert Connection(host=host).address == address


@pytest.mark.parametrize(
    ("server", "client", "words"),
    [
        ("good", {}, "closed the connection. If it uses TLS, set ca_path, client_cert and client_key."),
        ("good", {"ca_path": "good"}, "it requires a client certificate signed by its CA"),
        ("good", {"ca_path": "good", "pair": "other"}, "it requires a client certificate signed by its CA"),
        ("good", {"ca_path": "good", "pair": "old"}, "and not expired. Check client_cert and client_key."),
        ("good", {"ca_path": "other", "pair": "good"}, "has a certificate that is not signed by the given CA"),
        ("good", {"pair": "good"}, "has a certificate that is not signed by the given CA"),
        ("old", {"ca_path": "old", "pair": "old"}, "has an expired certificate. Renew it on the server."),
        ("name", {"ca_path": "name", "pair": "name"}, "has a certificate for another name"),
        (None, {"ca_path": "good", "pair": "good"}, "does not use TLS. Omit ca_path, client_cert and client_key"),
        ("good", {"ca_path": "text", "pair": "good"}, "was not called: the CA, the certificate or the key is not PEM"),
        ("good", {"ca_path": "good", "client_cert": "text", "client_key": "good"}, "was not called: the CA, the cert"),
        ("good", {"ca_path": "good", "client_cert": "good", "client_key": "other"}, "key belongs to another cert"),
    ],
)
def test_tls_mismatches(
    serve: Callable[..., int], certs: Path, server: str | None, client: dict[str, str], words: str
) -> None:
    options = {}
    for option, name in client.items():
        for each in ("client_cert", "client_key") if option == "pair" else (option,):
            options[each] = str(certs / "text") if name == "text" else ours(certs / name)[each]
    # The server with expired certificates does not require client certificates, because its own have expired.
    port = serve(credentials=credentials(certs / server, client=server == "good") if server else None)
    error = failure(port, **options)
    assert error.code == "UNAVAILABLE"
    assert error.message.startswith(f"Cannot reach the V-IPU controller at 127.0.0.1:{port}: it ")
    assert words in error.message


@pytest.mark.parametrize("given", ["client_cert", "client_key"])
def test_certificate_and_key_go_together(certs: Path, given: str) -> None:
    # With only one of them, the access key must not be sent without encryption.
    error = failure(8090, **{given: ours(certs / "good")[given]})
    assert "client_cert and client_key must be set together" in str(error)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    error = failure(8090, ca_path=str(tmp_path / "ca.crt"))
    assert (error.code, str(error)) == (
        "INVALID_ARGUMENT",
        f"Cannot read file '{tmp_path / 'ca.crt'}': no such file or directory.",
    )


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


def aborting(code: grpc.StatusCode, message: str) -> Any:
    return lambda method, request, context: context.abort(code, message)


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


def test_credentials_use_the_configured_metadata_keys(serve: Callable[..., int]) -> None:
    seen: list[dict[str, Any]] = []

    def respond(method: str, request: Any, context: Any) -> Any:
        seen.append(dict(context.invocation_metadata()))
        return version(method, request, context)

    port = serve(respond)
    get_version(port, user_id="alice", access_key="k3y")
    get_version(port, user_id="bob", access_key="other", user_id_metadata="x-user", access_key_metadata="x-key")
    get_version(port)
    assert (seen[0]["vipu-user-id"], seen[0]["vipu-access-key"]) == ("alice", "k3y")
    assert (seen[1]["x-user"], seen[1]["x-key"]) == ("bob", "other")
    assert not {"vipu-user-id", "vipu-access-key"} & (set(seen[1]) | set(seen[2]))


@pytest.mark.parametrize("key", ["s3cret\n", "s3cr\u00e9t", "s3cret\x00"])
def test_an_invalid_key_is_not_in_the_message(serve: Callable[..., int], key: str) -> None:
    error = failure(serve(), user_id="alice", access_key=key)
    assert error.code == "INVALID_ARGUMENT" and "Check api_user_id, api_access_key" in error.message
    assert "s3cr" not in error.message + error.details


@pytest.mark.parametrize("host", ["10.3.1.101", "pod.example", "0.0.0.0", "::", "127.0.0.1.example"])
def test_access_keys_need_encryption_off_loopback(host: str) -> None:
    error = failure(8090, host=host, user_id="alice", access_key="s3cret")
    assert error.code == "INVALID_ARGUMENT" and "s3cret" not in error.message
    assert error.message.startswith("Cannot send the access key to ")
    assert error.message.endswith("Set ca_path, client_cert and client_key, or insecure_network to allow it.")


@pytest.mark.parametrize("host", ["localhost", "127.9.9.9", "::1", "[::1]"])
def test_access_keys_on_loopback(host: str) -> None:
    Connection(host, access_key="s3cret").check_exposure()


def test_the_access_key_is_not_shown() -> None:
    assert "s3cret" not in repr(Connection(access_key="s3cret"))


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


class Life:
    """Partition that changes its state with each request, and stays in the last one."""

    def __init__(self, *states: tuple[int, int]) -> None:
        self.requests = 0
        self._states = itertools.chain(states, itertools.repeat(states[-1]))

    def __call__(self, method: str, request: Any, context: Any) -> Any:
        assert (method, request.partition_id) == ("GetPartitionStatus", "p")
        self.requests += 1
        ready, operation = next(self._states)
        status = virmgrpc.PartitionStatus(partition_id="p", ready_state=ready, operation_state=operation)
        return virmgrpc.GetPartitionStatusReply(status=status)


PENDING = (virmgrpc.PS_PENDING, virmgrpc.POS_CREATING)
ACCEPTED = (virmgrpc.PS_PENDING, virmgrpc.POS_IDLE)  # requested, but not started
ACTIVE = (virmgrpc.PS_ACTIVE, virmgrpc.POS_IDLE)
FAILED = (virmgrpc.PS_ERROR, virmgrpc.POS_FAILED)


@pytest.mark.parametrize("end", [ACTIVE, FAILED])
def test_waiting_ends_with_the_operation(serve: Callable[..., int], end: tuple[int, int]) -> None:
    life = Life(PENDING, ACCEPTED, PENDING, end)
    with Client(Connection("127.0.0.1", serve(life))) as client:
        done, status = wait_partition(client, "p", 30)
    assert done and (status.ready_state, status.operation_state) == end
    assert life.requests == 4


def test_waiting_ends_with_the_timeout(serve: Callable[..., int]) -> None:
    life = Life(PENDING)
    with Client(Connection("127.0.0.1", serve(life))) as client:
        done, status = wait_partition(client, "p", 0.05)
        assert (done, status.ready_state) == (False, virmgrpc.PS_PENDING)
        assert life.requests >= 2  # the last request is sent at the end of the time
        life.requests = 0
        assert not wait_partition(client, "p", 0)[0]
        assert life.requests == 1


def test_waiting_for_another_state(serve: Callable[..., int]) -> None:
    life = Life(ACTIVE, (virmgrpc.PS_PENDING, virmgrpc.POS_RESETTING))
    with Client(Connection("127.0.0.1", serve(life))) as client:
        done, status = wait_partition(client, "p", 30, until=lambda status: not settled(status))
    assert done and status.operation_state == virmgrpc.POS_RESETTING


def test_waiting_for_a_missing_partition(serve: Callable[..., int]) -> None:
    port = serve(aborting(grpc.StatusCode.NOT_FOUND, "partition 'p' does not exist."))
    with Client(Connection("127.0.0.1", port)) as client, pytest.raises(VipuError) as caught:
        wait_partition(client, "p", 30)
    assert caught.value.code == "NOT_FOUND"
