# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections to etcd with mutual TLS, and with a user that may have access to one prefix only."""

from __future__ import annotations

import datetime
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from aetcd import rpc

from openipu.shared.vipu.client import Client, Connection
from openipu.shared.vipu.contract import admin
from openipu.vipu.storage.etcd import content
from openipu.vipu.storage.etcd.client import EtcdClient, EtcdError
from openipu.vipu.storage.etcd.keys import Location, Tls, end_of
from openipu.vipu.storage.interface import StoreError
from openipu.vipu.tls import issue
from tests.ha.controllers import Controllers
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


def credentials(location: Location, folder: Path) -> list[str]:
    """Return the options of a program with the certificate, the user and its password."""
    assert location.tls is not None
    password = folder / "password"
    password.write_text(f"{location.password}\n")
    return [
        *("--store-tls-ca", str(location.tls.ca)),
        *("--store-tls-certificate", str(location.tls.certificate)),
        *("--store-tls-key", str(location.tls.key)),
        *("--store-user", location.user, "--store-password-file", str(password)),
    ]


def test_certificates_and_a_user_are_accepted(secure: Location, tmp_path: Path) -> None:
    options = ["--store", f"etcd://{secure.endpoints[0]}/program", *credentials(secure, tmp_path)]
    created = run("--init", *options)
    assert created.returncode == 0, created.stderr
    assert "secret" not in created.stdout + created.stderr
    assert run("check", *options).stdout.startswith("Sound: etcd://localhost")


@pytest.fixture
def restricted(secure: Location) -> Location:
    """The node with user vipu, whose role has access to prefix /restricted/ only."""
    prefix = b"/restricted/"
    access = rpc.Permission(permType=rpc.Permission.READWRITE, key=prefix, range_end=end_of(prefix))
    administrator = EtcdClient(secure)
    try:
        for method, request in {
            "UserAdd": rpc.AuthUserAddRequest(name="vipu", password="of vipu"),
            "RoleAdd": rpc.AuthRoleAddRequest(name="vipu"),
            "RoleGrantPermission": rpc.AuthRoleGrantPermissionRequest(name="vipu", perm=access),
            "UserGrantRole": rpc.AuthUserGrantRoleRequest(user="vipu", role="vipu"),
        }.items():
            administrator.call("Auth", method, request, 30.0)
    finally:
        administrator.close()
    return replace(secure, prefix=prefix.decode(), user="vipu", password="of vipu")


def test_controllers_of_a_user_with_access_to_the_prefix_only(restricted: Location, tmp_path: Path) -> None:
    """One of them takes over and writes."""
    store, options = f"etcd://{restricted.endpoints[0]}{restricted.prefix}", credentials(restricted, tmp_path)
    created = run("--init", "--store", store, *options)
    assert created.returncode == 0, created.stderr
    with closing(Controllers(tmp_path, store, 2, options=options, initialise=False)) as controllers:
        leader = controllers.wait_leader()
        write_agent(leader.address, "a1")
        leader.kill()
        (other,) = (each for each in controllers.all if each is not leader)
        until(other.leads, 60, controllers.logs)
        assert write_agent(other.address, "a2") == ["a1", "a2"]
    assert [record.id for record in content.read(restricted).records] == ["a1", "a2"]
    with pytest.raises(StoreError, match="permission denied"):
        content.read(replace(restricted, prefix="/other/"))


def write_agent(address: str, id: str) -> list[str]:
    """Add an agent, and return the ids of all agents of the controller."""
    with Client(Connection(address)) as client:
        agents = [admin.AgentSpec(id=id, host=f"{id}.invalid")]
        assert client.call(client.admin.Apply, admin.ApplyRequest(agents=agents)).applied
        reply = client.call(client.admin.ListAgents, admin.ListAgentsRequest())
    return sorted(agent.spec.id for agent in reply.agents)


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
