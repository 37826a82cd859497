# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the client with TLS: the message for each wrong certificate, key, CA and file."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from openipu.vipu.tls import issue, load
from tests.integration.cli.client_support import failure, get_version


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


def test_a_response(serve: Callable[..., int], certs: Path) -> None:
    assert get_version(serve(credentials=credentials(certs / "good")), **ours(certs / "good")) == "1.18.0"


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
