# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections to etcd with mutual TLS and a user."""

from __future__ import annotations

import datetime
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from aetcd import rpc

from openipu.vipu.storage.etcd import content
from openipu.vipu.storage.etcd.client import EtcdClient, EtcdError
from openipu.vipu.storage.etcd.keys import Location, Tls
from openipu.vipu.storage.interface import StoreError
from openipu.vipu.tls import issue
from tests.integration.vipu_servers import run
from tests.ports import free_port
from tests.waiting import until


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Location]:
    """A node that requires certificates of clients, with user root and password 'secret'."""
    folder = tmp_path_factory.mktemp("secure") / "certs"
    issue.create(folder, ["localhost", "127.0.0.1"], datetime.timedelta(days=2))
    server, client, port = folder / "server", folder / "client", free_port()
    url, peer = f"https://localhost:{port}", f"http://127.0.0.1:{free_port()}"
    options = {
        "name": "n0",
        "data-dir": str(folder / "data"),
        "listen-client-urls": f"https://127.0.0.1:{port}",
        "advertise-client-urls": url,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"n0={peer}",
        "trusted-ca-file": str(server / "ca.crt"),
        "cert-file": str(server / "server.crt"),
        "key-file": str(server / "server.key"),
    }
    command = ["etcd", "--client-cert-auth", *(f"--{name}={value}" for name, value in options.items())]
    with (folder / "etcd.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    tls = Tls(client / "ca.crt", client / "client.crt", client / "client.key")
    location = Location((f"localhost:{port}",), tls=tls)
    try:
        until(lambda: responds(location), 60, (folder / "etcd.log").read_text)
        administrator = EtcdClient(location)
        administrator.call("Auth", "UserAdd", rpc.AuthUserAddRequest(name="root", password="secret"), 30.0)
        administrator.call("Auth", "RoleAdd", rpc.AuthRoleAddRequest(name="root"), 30.0)
        administrator.call("Auth", "UserGrantRole", rpc.AuthUserGrantRoleRequest(user="root", role="root"), 30.0)
        administrator.call("Auth", "AuthEnable", rpc.AuthEnableRequest(), 30.0)
        administrator.close()
        yield replace(location, user="root", password="secret")
    finally:
        process.kill()
        process.wait()


def responds(location: Location) -> bool:
    try:
        content.exists(location)
    except StoreError:
        return False
    return True


def test_certificates_and_a_user_are_accepted(secure: Location, tmp_path: Path) -> None:
    assert secure.tls is not None
    password = tmp_path / "password"
    password.write_text("secret\n")
    options = [
        *("--store", f"etcd://{secure.endpoints[0]}/program"),
        *("--store-tls-ca", str(secure.tls.ca)),
        *("--store-tls-certificate", str(secure.tls.certificate)),
        *("--store-tls-key", str(secure.tls.key)),
        *("--store-user", "root", "--store-password-file", str(password)),
    ]
    created = run("--init", *options)
    assert created.returncode == 0, created.stderr
    assert "secret" not in created.stdout + created.stderr
    assert run("check", *options).stdout.startswith("Sound: etcd://localhost")


def test_an_expired_token_is_renewed(secure: Location) -> None:
    client = EtcdClient(secure)
    try:
        client.call("KV", "Range", rpc.RangeRequest(key=b"x"))
        client._token = "invalid.1"
        client.call("KV", "Range", rpc.RangeRequest(key=b"x"))
        assert client._token != "invalid.1"
    finally:
        client.close()


@pytest.mark.parametrize("details", ["invalid auth token", "revision of auth store is old"])
def test_a_call_with_an_old_token_is_repeated(secure: Location, monkeypatch: pytest.MonkeyPatch, details: str) -> None:
    """etcd rejects calls like this when users change at the same time."""
    client, attempt, tokens = EtcdClient(secure), EtcdClient._attempt, list[str]()

    def reject_first(self: EtcdClient, *arguments: Any) -> Any:
        response = attempt(self, *arguments)
        tokens.append(self._token)
        if len(tokens) == 2:
            raise EtcdError(details, grpc.StatusCode.INVALID_ARGUMENT)
        return response

    monkeypatch.setattr(EtcdClient, "_attempt", reject_first)
    try:
        for _ in range(2):
            client.call("KV", "Range", rpc.RangeRequest(key=b"x"))
    finally:
        client.close()
    assert tokens[0] == tokens[1] != tokens[2] != ""


@pytest.mark.parametrize("change", [{"tls": None}, {"user": "", "password": ""}, {"password": "wrong"}])
def test_clients_without_credentials_are_rejected(secure: Location, change: dict[str, object]) -> None:
    with pytest.raises(StoreError) as error:
        content.read(replace(secure, **change))  # type: ignore[arg-type]
    assert "secret" not in str(error.value)
