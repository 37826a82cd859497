# SPDX-License-Identifier: GPL-3.0-or-later
"""The client of a controller: what each failure of gRPC becomes, against real servers on loopback."""

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
from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import (
    Client,
    Connection,
    VipuError,
    settled,
    wait_partition,
)
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin, virmgrpc

from openipu.vipu import tls

PATIENCE = 5.0  # seconds for a call that is to be answered


class Servicer:
    """Every method of the public services, answered by one function of method name, request and context."""

    def __init__(self, answer: Callable[[str, Any, Any], Any]) -> None:
        self._answer = answer

    def __getattr__(self, method: str) -> Any:
        return lambda request, context: self._answer(method, request, context)


def version(method: str, request: Any, context: Any) -> Any:
    return virmgrpc.VersionReply(version="1.18.0")


@pytest.fixture
def serve() -> Iterator[Callable[..., int]]:
    """Start a server that has the public services only; its port."""
    with contextlib.ExitStack() as stack:

        def start(answer: Any = version, credentials: Any = None) -> int:
            pool = futures.ThreadPoolExecutor(2)
            server = grpc.server(pool, options=[("grpc.max_send_message_length", -1)])
            servicer = Servicer(answer)
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
    """Listen as something else than gRPC does: greet and close, or (with None) be silent; the port."""
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
    """Certificates in folders: good, other (of another authority), name (of another server), old (expired)."""
    folder = tmp_path_factory.mktemp("certs")
    tls.create(folder / "good", ["127.0.0.1"])
    tls.create(folder / "other", ["127.0.0.1"])
    tls.create(folder / "name", ["127.9.9.9"])
    tls.create(folder / "old", ["127.0.0.1"], datetime.timedelta(days=-1))
    (folder / "text").write_text("no certificate\n")
    return folder


def credentials(folder: Path, client: bool = True) -> Any:
    """Those of a server; with ``client`` it wants a certificate."""
    server = folder / "server"
    pair = ((server / "server.key").read_bytes(), (server / "server.crt").read_bytes())
    return grpc.ssl_server_credentials([pair], (server / tls.CA).read_bytes() if client else None, client)


def ours(folder: Path, **replaced: Path) -> dict[str, str]:
    """The options of a client with the certificates of a folder."""
    client = folder / "client"
    paths = {"ca_path": client / tls.CA, "client_cert": client / "client.crt", "client_key": client / "client.key"}
    return {name: str(path) for name, path in {**paths, **replaced}.items()}


def ask(port: int, action: str = "", **options: Any) -> str:
    """The version of the controller at a port of 127.0.0.1."""
    with Client(Connection(**{"host": "127.0.0.1", "port": port, "timeout": PATIENCE, **options})) as client:
        return str(client.call(client.version.GetVersion, virmgrpc.VersionRequest(), action).version)


def failure(port: int, action: str = "", **options: Any) -> VipuError:
    """What asking for the version raises; always one sentence."""
    with pytest.raises(VipuError) as caught:
        ask(port, action, **options)
    error = caught.value
    assert str(error) == error.sentence and error.sentence.endswith(".") and "\n" not in error.sentence
    return error


def test_an_answer(serve: Callable[..., int], certs: Path) -> None:
    assert ask(serve()) == "1.18.0"
    assert ask(serve(credentials=credentials(certs / "good")), **ours(certs / "good")) == "1.18.0"


def test_nobody_listens() -> None:
    with socket.socket() as reserved:  # bound and not listening: nobody else takes the port
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        error = failure(port)
    assert error.code == "UNAVAILABLE"
    assert error.sentence == (
        f"The V-IPU controller at 127.0.0.1:{port} does not answer (connection refused): "
        "check that vipu-server runs there and that host and port are right."
    )


def test_no_such_host() -> None:
    assert "at nowhere.invalid:8090 was not found: no such host name" in str(failure(8090, host="nowhere.invalid"))


@pytest.mark.parametrize("port", [0, -1, 65536, 99999])
def test_what_is_no_port_is_never_tried(port: int) -> None:
    error = failure(port)
    assert (error.code, error.sentence) == (
        "INVALID_ARGUMENT",
        f"There is no port {port}: give one from 1 to 65535.",
    )


@pytest.mark.parametrize(("host", "address"), [("::1", "[::1]:8090"), ("[::1]", "[::1]:8090"), ("h", "h:8090")])
def test_addresses(host: str, address: str) -> None:
    assert Connection(host=host).address == address


@pytest.mark.parametrize(
    ("server", "client", "words"),
    [
        ("good", {}, "closed the connection: if it is a secure one (TLS), give its CA and a client certificate."),
        ("good", {"ca_path": "good"}, "it wants a client certificate that its CA has signed"),
        ("good", {"ca_path": "good", "pair": "other"}, "it wants a client certificate that its CA has signed"),
        ("good", {"ca_path": "good", "pair": "old"}, "and that has not expired; check client_cert and client_key."),
        ("good", {"ca_path": "other", "pair": "good"}, "shows a certificate that the given CA has not signed"),
        ("good", {"pair": "good"}, "shows a certificate that the given CA has not signed"),
        ("old", {"ca_path": "old", "pair": "old"}, "shows a certificate that has expired: renew it on the server."),
        ("name", {"ca_path": "name", "pair": "name"}, "shows a certificate for another name"),
        (None, {"ca_path": "good", "pair": "good"}, "does not speak TLS: leave out the CA and the certificate"),
        ("good", {"ca_path": "text", "pair": "good"}, "was not asked: the CA, the certificate or the key is not PEM"),
        ("good", {"ca_path": "good", "client_cert": "text", "client_key": "good"}, "was not asked: the CA, the cert"),
        ("good", {"ca_path": "good", "client_cert": "good", "client_key": "other"}, "key belongs to another cert"),
    ],
)
def test_tls_that_does_not_fit(
    serve: Callable[..., int], certs: Path, server: str | None, client: dict[str, str], words: str
) -> None:
    options = {}
    for option, name in client.items():
        for each in ("client_cert", "client_key") if option == "pair" else (option,):
            options[each] = str(certs / "text") if name == "text" else ours(certs / name)[each]
    # One that has expired is not asked for certificates of clients: its own are as old.
    port = serve(credentials=credentials(certs / server, client=server == "good") if server else None)
    error = failure(port, **options)
    assert error.code == "UNAVAILABLE"
    assert error.sentence.startswith(f"The V-IPU controller at 127.0.0.1:{port} ")
    assert words in error.sentence


@pytest.mark.parametrize("given", ["client_cert", "client_key"])
def test_certificate_and_key_go_together(certs: Path, given: str) -> None:
    # Above all, one of them alone does not mean that the access key goes out in the clear.
    error = failure(8090, **{given: ours(certs / "good")[given]})
    assert "go together: give both or neither" in str(error)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    error = failure(8090, ca_path=str(tmp_path / "ca.crt"))
    assert (error.code, str(error)) == (
        "INVALID_ARGUMENT",
        f"Cannot read {tmp_path / 'ca.crt'}: no such file or directory.",
    )


@pytest.mark.parametrize("greeting", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n"])
def test_something_else_answers(listen: Callable[[bytes | None], int], greeting: bytes) -> None:
    assert "is something else: what listens there does not speak gRPC" in str(failure(listen(greeting)))


def test_nobody_answers(listen: Callable[[bytes | None], int]) -> None:
    error = failure(listen(None), timeout=0.2)
    assert error.code == "DEADLINE_EXCEEDED" and "did not answer within the timeout" in error.sentence


def test_a_service_that_is_not_there(serve: Callable[..., int]) -> None:
    port = serve()
    with Client(Connection("127.0.0.1", port)) as client, pytest.raises(VipuError) as caught:
        client.call(client.admin.ListAgents, admin.ListAgentsRequest(), "list agents")
    assert caught.value.code == "UNIMPLEMENTED"
    assert f"at 127.0.0.1:{port} offers only the public user API, which cannot list agents" in str(caught.value)


def aborting(code: grpc.StatusCode, sentence: str) -> Any:
    return lambda method, request, context: context.abort(code, sentence)


@pytest.mark.parametrize(
    ("code", "said", "action", "sentence"),
    [
        ("NOT_FOUND", "partition 'p' does not exist.", "reset 'p'", "Cannot reset 'p': partition 'p' does not exist."),
        ("RESOURCE_EXHAUSTED", "Cannot create 'p': no room.", "create 'p'", "Cannot create 'p': no room."),
        ("PERMISSION_DENIED", "Only an administrator may do that", "x", "Cannot x: Only an administrator may do that."),
        ("UNAUTHENTICATED", "The access key is wrong.", "", "The access key is wrong."),
        ("UNAVAILABLE", "The controller is stopping.", "x", "Cannot x: The controller is stopping."),
        ("INTERNAL", "Internal error; see the log.", "x", "Cannot x: Internal error; see the log."),
        ("FAILED_PRECONDITION", "", "create 'p'", "Cannot create 'p': FAILED_PRECONDITION."),
    ],
)
def test_what_the_controller_says_is_kept(
    serve: Callable[..., int], code: str, said: str, action: str, sentence: str
) -> None:
    error = failure(serve(aborting(grpc.StatusCode[code], said)), action)
    assert (error.code, error.sentence, error.details) == (code, sentence, said)


def test_a_controller_that_breaks_down_over_a_call(serve: Callable[..., int]) -> None:
    def answer(*_: Any) -> Any:
        raise RuntimeError("oops")

    assert failure(serve(answer), "list partitions").code == "UNKNOWN"


def test_credentials_go_under_the_keys_that_are_set(serve: Callable[..., int]) -> None:
    seen: list[dict[str, Any]] = []

    def answer(method: str, request: Any, context: Any) -> Any:
        seen.append(dict(context.invocation_metadata()))
        return version(method, request, context)

    port = serve(answer)
    ask(port, user_id="alice", access_key="k3y")
    ask(port, user_id="bob", access_key="other", user_id_metadata="x-user", access_key_metadata="x-key")
    ask(port)
    assert (seen[0]["vipu-user-id"], seen[0]["vipu-access-key"]) == ("alice", "k3y")
    assert (seen[1]["x-user"], seen[1]["x-key"]) == ("bob", "other")
    assert not {"vipu-user-id", "vipu-access-key"} & (set(seen[1]) | set(seen[2]))


@pytest.mark.parametrize("key", ["s3cret\n", "s3cr\u00e9t", "s3cret\x00"])
def test_a_key_that_cannot_be_sent_is_not_told(serve: Callable[..., int], key: str) -> None:
    error = failure(serve(), user_id="alice", access_key=key)
    assert error.code == "INVALID_ARGUMENT" and "check api_user_id, api_access_key" in error.sentence
    assert "s3cr" not in error.sentence + error.details


def test_the_access_key_is_not_shown() -> None:
    assert "s3cret" not in repr(Connection(access_key="s3cret"))


def test_replies_of_many_megabytes(serve: Callable[..., int]) -> None:
    def answer(*_: Any) -> Any:
        return virmgrpc.VersionReply(version="x" * (20 << 20))

    assert len(ask(serve(answer), timeout=30)) == 20 << 20


def test_a_closed_client_opens_again(serve: Callable[..., int]) -> None:
    client = Client(Connection("127.0.0.1", serve()))
    for _ in range(2):
        assert client.call(client.version.GetVersion, virmgrpc.VersionRequest()).version == "1.18.0"
        client.close()
    client.close()


@pytest.mark.parametrize("library", ["grpc", "google.protobuf"])
def test_without_the_libraries_it_says_what_to_install(library: str) -> None:
    package = "grpcio" if library == "grpc" else "protobuf"
    code = f"""
import sys
sys.modules[{library!r}] = None
from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import Client, Connection, VipuError
try:
    with Client(Connection()) as client:
        client.version
except VipuError as error:
    print(error.code, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("MISSING_LIBRARY ")
    assert f"lacks {package}: install it with 'pip install {package}'" in done.stdout


class Life:
    """A partition that goes through states, one with each look, and stays in the last."""

    def __init__(self, *states: tuple[int, int]) -> None:
        self.looks = 0
        self._states = itertools.chain(states, itertools.repeat(states[-1]))

    def __call__(self, method: str, request: Any, context: Any) -> Any:
        assert (method, request.partition_id) == ("GetPartitionStatus", "p")
        self.looks += 1
        ready, operation = next(self._states)
        status = virmgrpc.PartitionStatus(partition_id="p", ready_state=ready, operation_state=operation)
        return virmgrpc.GetPartitionStatusReply(status=status)


PENDING = (virmgrpc.PS_PENDING, virmgrpc.POS_CREATING)
ACCEPTED = (virmgrpc.PS_PENDING, virmgrpc.POS_IDLE)  # asked for, and not begun yet
ACTIVE = (virmgrpc.PS_ACTIVE, virmgrpc.POS_IDLE)
FAILED = (virmgrpc.PS_ERROR, virmgrpc.POS_FAILED)


@pytest.mark.parametrize("end", [ACTIVE, FAILED])
def test_waiting_ends_with_the_work(serve: Callable[..., int], end: tuple[int, int]) -> None:
    life = Life(PENDING, ACCEPTED, PENDING, end)
    with Client(Connection("127.0.0.1", serve(life))) as client:
        done, status = wait_partition(client, "p", 30)
    assert done and (status.ready_state, status.operation_state) == end
    assert life.looks == 4


def test_waiting_ends_with_the_time(serve: Callable[..., int]) -> None:
    life = Life(PENDING)
    with Client(Connection("127.0.0.1", serve(life))) as client:
        done, status = wait_partition(client, "p", 0.05)
        assert (done, status.ready_state) == (False, virmgrpc.PS_PENDING)
        assert life.looks >= 2  # the last look comes when the time is over
        life.looks = 0
        assert not wait_partition(client, "p", 0)[0]
        assert life.looks == 1


def test_waiting_for_something_else(serve: Callable[..., int]) -> None:
    life = Life(ACTIVE, (virmgrpc.PS_PENDING, virmgrpc.POS_RESETTING))
    with Client(Connection("127.0.0.1", serve(life))) as client:
        done, status = wait_partition(client, "p", 30, until=lambda status: not settled(status))
    assert done and status.operation_state == virmgrpc.POS_RESETTING


def test_waiting_for_what_is_not_there(serve: Callable[..., int]) -> None:
    port = serve(aborting(grpc.StatusCode.NOT_FOUND, "partition 'p' does not exist."))
    with Client(Connection("127.0.0.1", port)) as client, pytest.raises(VipuError) as caught:
        wait_partition(client, "p", 30)
    assert caught.value.code == "NOT_FOUND"
