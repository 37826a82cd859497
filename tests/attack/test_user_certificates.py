# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of other users, revoked ones, and ones for other purposes."""

from __future__ import annotations

import datetime
import queue
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from openipu.shared.vipu.certificates import signing_request
from openipu.shared.vipu.client import ACCESS_KEY_METADATA, USER_ID_METADATA
from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.api import auth, calls, watch
from openipu.vipu.domain.model import Put, Role
from openipu.vipu.tls import issue, load, renew
from tests.integration.vipu_servers import Client, InProcess, InstantLife
from tests.integration.watching import Watcher
from tests.waiting import until

OK, REJECTED = grpc.StatusCode.OK, grpc.StatusCode.UNAUTHENTICATED
AUTHORITY = renew.authority


def anyone(*_: Any, **__: Any) -> bool:
    return True


class Users:
    """Secure controller with users, whose keys and certificates are in one folder."""

    def __init__(self, folder: Path) -> None:
        self.certs = folder / "certs"
        self.folder = folder
        issue.create(self.certs, ["127.0.0.1"])
        self.pairs = {"client": (self.certs / "client" / "client.key", self.certs / "client" / "client.crt")}
        self.keys: dict[str, str] = {}
        self.server = InProcess(
            folder / "vipu.db",
            InstantLife,
            self.channel("client"),
            credentials=load.server_credentials(self.certs),
            certs=self.certs,
        )
        self.add("root", Role.ADMIN)

    def add(self, id: str, role: Role = Role.USER, *, shared: bool = True) -> None:
        user, self.keys[id] = auth.new_user(id, role, (), shared_certificate=shared)
        self.server.server.controller.submit(lambda state: ([Put(user)], None)).result(10)

    def metadata(self, user: str) -> Any:
        return (USER_ID_METADATA, user), (ACCESS_KEY_METADATA, self.keys[user])

    def channel(self, name: str) -> grpc.ChannelCredentials:
        key, certificate = (file.read_bytes() for file in self.pairs[name])
        return grpc.ssl_channel_credentials((self.certs / "server" / load.CA).read_bytes(), key, certificate)

    def issue(self, user: str, name: str = "") -> admin.Certificate:
        """Issue a certificate as the administrator does. ``name``: of its files, omit to use that of the user."""
        key, file = (self.folder / f"{name or user}.{suffix}" for suffix in ("key", "crt"))
        request = admin.AddCertificateRequest(user_id=user, signing_request=signing_request(key, user))
        reply = self.server.admin.AddCertificate(request, metadata=self.metadata("root"), timeout=10)
        file.write_bytes(reply.certificate)
        self.pairs[name or user] = key, file
        return reply.description

    def revoke(self, user: str, key: str) -> None:
        request = admin.RevokeCertificateRequest(user_id=user, key=key)
        self.server.admin.RevokeCertificate(request, metadata=self.metadata("root"), timeout=10)

    def call(self, user: str, certificate: str) -> grpc.StatusCode:
        client = Client(self.server.address, self.channel(certificate))
        try:
            return self.call_again(client, user)
        finally:
            client.close()

    def call_again(self, client: Client, user: str) -> grpc.StatusCode:
        try:
            client.user.ListPartitions(virmgrpc.ListPartitionsRequest(), metadata=self.metadata(user), timeout=10)
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code
        return OK


@pytest.fixture
def users(tmp_path: Path) -> Iterator[Users]:
    made = Users(tmp_path)
    yield made
    made.server.stop()


@pytest.mark.defence("openipu.vipu.domain.certificates.may_use", anyone)
def test_certificates_are_bound_to_users(users: Users) -> None:
    for id in ("alice", "bob", "carol"):
        users.add(id)
    for id in ("alice", "bob"):
        users.issue(id)
    cases = [("alice", "alice"), ("alice", "bob"), ("alice", "client"), ("carol", "bob"), ("carol", "client")]
    assert [users.call(*case) for case in cases] == [OK, REJECTED, REJECTED, REJECTED, OK]


def unused(*_: Any) -> list[str]:
    return []


@pytest.mark.defence("openipu.vipu.domain.certificates.losing", unused)
@pytest.mark.parametrize("name", ["client", "controller"])
def test_a_shared_certificate_cannot_become_that_of_one_user(users: Users, name: str) -> None:
    """Its other users could not log in any more. One of them may be the only administrator."""
    users.pairs[name] = users.certs / name / f"{name}.key", users.certs / name / f"{name}.crt"
    for id in ("alice", "bob"):
        users.add(id)
    assert [users.call(user, name) for user in ("alice", "bob")] == [OK, OK]
    request = admin.AddCertificateRequest(user_id="alice", certificate=users.pairs[name][1].read_bytes())
    with pytest.raises(grpc.RpcError, match="it is shared with 'bob'"):
        users.server.admin.AddCertificate(request, metadata=users.metadata("root"), timeout=10)
    assert users.call("bob", name) is OK
    for id in ("bob", "root"):
        users.issue(id)
    client = Client(users.server.address, users.channel("root"))
    try:
        client.admin.AddCertificate(request, metadata=users.metadata("root"), timeout=10)
    finally:
        client.close()
    assert [users.call("alice", name), users.call("bob", "bob")] == [OK, OK]


@pytest.mark.defence("openipu.vipu.domain.certificates.may_use", anyone)
def test_revoked_certificates(users: Users) -> None:
    """A revoked certificate is rejected from the next call on, also renewed, and for users without certificates."""
    for id in ("alice", "carol"):
        users.add(id)
    stolen = users.issue("alice")
    users.issue("alice", "spare")
    users.revoke("alice", stolen.key)
    with pytest.raises(grpc.RpcError, match="its key was revoked"):
        users.issue("alice")
    cases = [("alice", "alice"), ("alice", "spare"), ("carol", "alice"), ("alice", "client")]
    assert [users.call(*case) for case in cases] == [REJECTED, OK, REJECTED, REJECTED]


@pytest.mark.defence("openipu.vipu.api.calls.RIGHTS_SECONDS", 1e9)
@pytest.mark.parametrize("removal", [True, False], ids=["of the certificate", "of the role"])
def test_rights_that_end_before_a_request_arrives(
    users: Users, monkeypatch: pytest.MonkeyPatch, defence: bool, removal: bool
) -> None:
    """A client may begin calls, and send their requests later."""
    if defence:
        monkeypatch.setattr(calls, "RIGHTS_SECONDS", 0.0)
    users.add("alice", Role.ADMIN)
    certificate = users.issue("alice")
    ended = threading.Event()

    def late() -> Iterator[bytes]:
        ended.wait(10)
        yield b""

    client = Client(users.server.address, users.channel("alice"))
    begin = client.channel.stream_unary("/openipu.vipu.admin.v1.AdminService/ListUsers", None, None)
    call = begin.future(late(), metadata=users.metadata("alice"), timeout=20)
    try:
        until(lambda: users.server.server._endpoints.exchanges._deadlines)  # it waits for the request
        if removal:
            users.revoke("alice", certificate.key)
        else:
            demoted = admin.ApplyRequest(users=[admin.UserSpec(id="alice", role=admin.ROLE_USER)])
            assert users.server.admin.Apply(demoted, metadata=users.metadata("root"), timeout=10).applied
        ended.set()
        assert call.code() is (REJECTED if removal else grpc.StatusCode.PERMISSION_DENIED)
    finally:
        ended.set()
        client.close()


class Reflection:
    """Stream of reflection on which a client sends one request after the other."""

    def __init__(self, client: Client, metadata: Any) -> None:
        self._requests: queue.SimpleQueue[reflection_pb2.ServerReflectionRequest | None] = queue.SimpleQueue()
        stub = reflection_pb2_grpc.ServerReflectionStub(client.channel)
        self._replies = stub.ServerReflectionInfo(iter(self._requests.get, None), metadata=metadata, timeout=30)

    def request(self) -> grpc.StatusCode:
        """Return the status of the stream after one more request, OK while it replies."""
        self._requests.put(reflection_pb2.ServerReflectionRequest(list_services=""))
        try:
            return OK if next(self._replies).list_services_response.service else grpc.StatusCode.INTERNAL
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code

    def stop(self) -> None:
        self._requests.put(None)
        self._replies.cancel()


@pytest.mark.defence("openipu.vipu.api.calls.RIGHTS_SECONDS", 1e9)
@pytest.mark.parametrize("end", ["revocation", "removal", "new key"])
def test_reflection_of_a_rejected_user(users: Users, monkeypatch: pytest.MonkeyPatch, defence: bool, end: str) -> None:
    """A client may keep a stream open, and send further requests."""
    if defence:
        monkeypatch.setattr(calls, "RIGHTS_SECONDS", 0.0)
    users.add("alice")
    certificate = users.issue("alice")
    client = Client(users.server.address, users.channel("alice"))
    found = Reflection(client, users.metadata("alice"))
    try:
        assert [found.request(), found.request()] == [OK, OK]
        if end == "revocation":
            users.revoke("alice", certificate.key)
        else:
            users.server.admin.RemoveUser(admin.RemoveRequest(id="alice"), metadata=users.metadata("root"), timeout=10)
        if end == "new key":
            users.add("alice")
        assert found.request() is REJECTED
    finally:
        found.stop()
        client.close()


def never(*_: Any) -> bool:
    return False


@pytest.mark.long
@pytest.mark.defence("openipu.vipu.tls.user_certificates.has_expired", never)
def test_certificates_that_expire_during_a_connection(users: Users, monkeypatch: pytest.MonkeyPatch) -> None:
    users.add("alice")
    monkeypatch.setattr(issue, "VALIDITY", datetime.timedelta(seconds=3))
    users.issue("alice")
    client = Client(users.server.address, users.channel("alice"))
    try:
        assert users.call_again(client, "alice") is OK
        until(lambda: users.call_again(client, "alice") is REJECTED, 10)
    finally:
        client.close()


@pytest.mark.long
@pytest.mark.defence("openipu.vipu.api.watch._RECHECK_SECONDS", 1e9)
def test_certificates_that_expire_during_a_busy_stream(
    users: Users, monkeypatch: pytest.MonkeyPatch, defence: bool
) -> None:
    if defence:
        monkeypatch.setattr(watch, "_RECHECK_SECONDS", 0.1)
    users.add("alice", Role.ADMIN)
    monkeypatch.setattr(issue, "VALIDITY", datetime.timedelta(seconds=5))
    users.issue("alice")
    client = Client(users.server.address, users.channel("alice"))
    found = Watcher(client.admin, users.metadata("alice"))
    try:
        until(lambda: found.revision)
        deadline = time.monotonic() + (60 if defence else 10)
        number = 0
        while found.code is None and time.monotonic() < deadline:
            number += 1
            spec = admin.AgentSpec(id=f"ag{number}", host="127.0.9.1", port=number)
            users.server.admin.CreateAgent(admin.CreateAgentRequest(spec=spec), metadata=users.metadata("root"))
            until(lambda: found.code or ("agent", f"ag{number}") in found.objects)  # noqa: B023
        assert found.code is REJECTED
        assert "has expired" in found.details
    finally:
        found.stop()
        client.close()


def forget(*_: Any) -> list[Put]:
    return []


@pytest.mark.defence("openipu.vipu.domain.rules.kept_revocations", forget)
def test_a_revoked_key_stays_revoked_after_the_removal_of_its_user(users: Users) -> None:
    """A user of the same name cannot get the key again, and it is no shared certificate."""
    for id in ("alice", "carol"):
        users.add(id)
    stolen = users.issue("alice")
    users.revoke("alice", stolen.key)
    users.server.admin.RemoveUser(admin.RemoveRequest(id="alice"), metadata=users.metadata("root"), timeout=10)
    users.add("alice")
    assert [users.call(user, "alice") for user in ("alice", "carol")] == [REJECTED, REJECTED]
    with pytest.raises(grpc.RpcError, match="its key was revoked"):
        users.issue("alice")


def nobody(*_: Any) -> bool:
    return False


@pytest.mark.defence("openipu.vipu.domain.certificates.needs_own", nobody)
def test_new_users_need_certificates_of_their_own(users: Users) -> None:
    request = admin.CreateUserRequest(spec=admin.UserSpec(id="carol"))
    users.keys["carol"] = users.server.admin.CreateUser(request, metadata=users.metadata("root")).access_key
    request = admin.ApplyRequest(users=[admin.UserSpec(id="dave")])
    users.keys["dave"] = users.server.admin.Apply(request, metadata=users.metadata("root")).access_keys["dave"]
    before = [users.call(user, "client") for user in ("root", "carol", "dave")]
    users.issue("carol")
    assert [*before, users.call("carol", "carol")] == [OK, REJECTED, REJECTED, OK]


def one_authority(certs: Path, folder: str = "ca") -> Any:
    """Use the authority of servers for users too."""
    return AUTHORITY(certs)


def accept(*_: Any) -> None:
    """Accept every key."""


@pytest.mark.defence("openipu.vipu.tls.user_certificates._check_strength", accept)
def test_weak_keys_get_no_certificate(users: Users) -> None:
    """Others could compute the private key of the user."""
    users.add("alice")
    key = rsa.generate_private_key(65537, 1024)
    made = x509.CertificateSigningRequestBuilder(x509.Name([])).sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
    request = admin.AddCertificateRequest(user_id="alice", signing_request=made)
    with pytest.raises(grpc.RpcError, match="its RSA key has 1024 bits, at least 2048 are required"):
        users.server.admin.AddCertificate(request, metadata=users.metadata("root"), timeout=10)


@pytest.mark.defence("openipu.vipu.tls.renew.authority", one_authority)
def test_the_key_of_the_running_controller_makes_no_servers(users: Users) -> None:
    """Clients do not trust the authority of users, whose key a compromised controller can read."""
    users.add("alice")
    users.issue("alice")
    trusted = x509.load_pem_x509_certificate((users.certs / "client" / load.CA).read_bytes())
    issued = x509.load_pem_x509_certificate(users.pairs["alice"][1].read_bytes())
    with pytest.raises((ValueError, InvalidSignature)):
        issued.verify_directly_issued_by(trusted)


@pytest.mark.defence("openipu.vipu.tls.user_certificates.CLIENT", load.SERVER)
def test_issued_certificates_are_for_clients_only(users: Users) -> None:
    users.add("alice")
    users.issue("alice")
    certificate = x509.load_pem_x509_certificate(users.pairs["alice"][1].read_bytes())
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert [each.value for each in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["alice"]
    with pytest.raises(x509.ExtensionNotFound):
        certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    with pytest.raises(grpc.RpcError, match="another user has a certificate with its key"):
        users.add("bob")
        users.issue("bob", "alice")
