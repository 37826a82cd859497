# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of redfish_info with BMCs that send unusual responses. tests/peers uses a real Redfish service."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.openipu.pod.plugins.module_utils.redfish import REDFISH_INFO
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

Query = Callable[..., dict[str, Any]]


def http(body: Any) -> bytes:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a PEM file with a key and a certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([]), datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    pem = serialization.Encoding.PEM
    text = builder.sign(key, hashes.SHA256()).public_bytes(pem)
    text += key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = tmp_path_factory.mktemp("bmc") / "bmc.pem"
    file.write_bytes(text)
    return file


@pytest.fixture
def query(certificate: Path) -> Iterator[Query]:
    """Yield a function that queries a BMC with these responses by path; a path ends before the query."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    responses: dict[str, bytes] = {}

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            with context.wrap_socket(self.request, server_side=True) as connection:
                line = connection.recv(10_000).split(b"\r\n")[0].decode()
                connection.sendall(responses[line.split()[1]])

    def run(root: bytes, fail_on_problem: bool | None = None, **more: bytes) -> dict[str, Any]:
        responses.update({"/redfish/v1/": root, **{f"/{path}": response for path, response in more.items()}})
        options = {"host": "127.0.0.1", "port": server.server_address[1], "validate_certs": False}
        if fail_on_problem is not None:
            options["fail_on_problem"] = fail_on_problem
        checked = ArgumentSpecValidator(REDFISH_INFO.argument_spec).validate(options)
        return REDFISH_INFO.perform(checked.validated_parameters, check_mode=False, diff=False)

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield run
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("response", "cause"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "the response is not HTTP (BadStatusLine)"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n", "the response is not HTTP (HTTPException)"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000 + b"\r\n\r\n", "the response is not HTTP (LineTooLong)"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{}", "the response is not HTTP (IncompleteRead)"),
        (http(b"[" * 100_000), "the response is not Redfish"),
        (http([]), "the response is not Redfish"),
    ],
)
def test_unusual_responses_are_errors_with_a_remedy(query: Query, response: bytes, cause: str) -> None:
    found = query(response)
    assert found["failed"]
    assert found["msg"].startswith("Cannot read /redfish/v1/ from the BMC at 127.0.0.1:")
    assert found["msg"].endswith(f": {cause}. Check host and port.")


def test_values_of_other_types_are_ignored(query: Query) -> None:
    item = {"Id": ["x"], "Name": "a\x1b[31m\n" + "b" * 1000, "PowerState": {}, "Status": [1]}
    found = query(
        http({"UpdateService": "x", "Systems": {"@odata.id": "/systems"}, "Managers": [1], "RedfishVersion": 1}),
        systems=http({"Members": [{"@odata.id": "/item"}]}),
        item=http(item),
    )
    assert not found.get("failed"), found
    (system,) = found["systems"]
    assert (system["id"], system["power"], system["health"], found["managers"]) == (None, None, None, [])
    assert system["name"] == "a?[31m?" + "b" * 193


def test_bad_health_fails_the_task_only_on_request(query: Query) -> None:
    responses = {
        "systems": http({"Members": [{"@odata.id": "/item"}]}),
        "item": http({"Id": "s", "PowerState": "Off", "Status": {"Health": "Critical"}}),
    }
    root = http({"Systems": {"@odata.id": "/systems"}})
    found = query(root, **responses)
    assert not found.get("failed")
    assert len(found["problems"]) == 2
    failed = query(root, fail_on_problem=True, **responses)
    assert failed["failed"]
    assert failed["problems"] == found["problems"]
