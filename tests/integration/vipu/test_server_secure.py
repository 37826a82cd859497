# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of ``--secure``: certificates, users, access keys, isolation of tenants by allocation."""

from __future__ import annotations

import datetime
import errno
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
import structlog
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from structlog.testing import LogCapture

from openipu.shared.vipu.certificates import signing_request
from openipu.shared.vipu.client import ACCESS_KEY_METADATA, USER_ID_METADATA
from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.api import auth, methods
from openipu.vipu.api.addresses import ListenAddress
from openipu.vipu.domain.model import Put, Role
from openipu.vipu.server.initialise import initialise
from openipu.vipu.storage import writer
from openipu.vipu.tls import issue, load, user_certificates
from tests.integration.vipu_servers import Client, InProcess, InstantLife, partition, pod

Rejection = tuple[grpc.StatusCode, str]


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tls") / "vipu-certs"
    issue.create(directory, ["127.0.0.1", "localhost"])
    return directory


def channel(certs: Path, client: Path | None = None) -> grpc.ChannelCredentials:
    """Return channel credentials with the CA of the server and a client certificate."""
    files = [(client or certs) / "client" / name for name in ("client.key", "client.crt")]
    key, certificate = (file.read_bytes() for file in files)
    return grpc.ssl_channel_credentials((certs / "server" / load.CA).read_bytes(), key, certificate)


class User:
    """Client that sends a user id and a key with every call."""

    def __init__(self, client: Client, id: str = "", key: str = "") -> None:
        self.client = client
        given = ((USER_ID_METADATA, id), (ACCESS_KEY_METADATA, key))
        self.metadata = tuple((name, value) for name, value in given if value)

    def __call__(self, stub: str, method: str, request: object) -> object:
        return getattr(getattr(self.client, stub), method)(request, metadata=self.metadata, timeout=10)

    def rejected(self, stub: str, method: str, request: object) -> Rejection:
        with pytest.raises(grpc.RpcError) as caught:
            reply = self(stub, method, request)
            next(reply)  # type: ignore[call-overload]  # of a stream
        return caught.value.code(), caught.value.details()

    def listed(self, allocation: str = "") -> list[str]:
        reply = self("user", "ListPartitions", virmgrpc.ListPartitionsRequest(allocation_id=allocation))
        return sorted(partition.id for partition in reply.partitions)

    def create(self, id: str, allocation: str) -> None:
        self("user", "CreatePartition", partition(id, 1, allocation))


@pytest.fixture
def secure(vipu_server: Callable[..., InProcess], certs: Path, tmp_path: Path) -> Callable[..., InProcess]:
    """Return a factory of secure controllers with administrator ``root`` and its key in ``root_key``."""

    def make(**settings: object) -> InProcess:
        database = tmp_path / "vipu-server.db"
        initialise(database)
        server = vipu_server(
            life=InstantLife,
            channel=channel(certs),
            credentials=load.server_credentials(certs),
            shared_certificates=True,
            **settings,
        )
        root, server.root_key = auth.new_user("root", Role.ADMIN, (), shared_certificate=True)  # type: ignore[attr-defined]
        server.server.controller.submit(lambda state: ([Put(root)], None)).result(10)
        return server

    return make


@pytest.fixture
def tenants(secure: Callable[..., InProcess]) -> Iterator[tuple[User, User, User]]:
    """Yield an administrator, alice with allocation a1, and bob with allocation a2; each has a partition."""
    server = secure()
    root = User(server, "root", server.root_key)  # type: ignore[attr-defined]
    request = admin.ApplyRequest(
        agents=[admin.AgentSpec(id=f"ag{n}", host=f"127.0.9.{n}") for n in (1, 2, 3)],
        clusters=[admin.ClusterSpec(id="cl0", agent_ids=["ag1", "ag2", "ag3"])],
        allocations=[
            admin.AllocationSpec(id="a1", cluster_id="cl0", size=1),
            admin.AllocationSpec(id="a2", cluster_id="cl0", size=1),
        ],
        users=[admin.UserSpec(id="alice", allocation_ids=["a1"])],
    )
    keys = root("admin", "Apply", request).access_keys
    bob = root("admin", "CreateUser", admin.CreateUserRequest(spec=admin.UserSpec(id="bob", allocation_ids=["a2"])))
    users = root, User(server, "alice", keys["alice"]), User(server, "bob", bob.access_key)
    users[1].create("pa", "a1")
    users[2].create("pb", "a2")
    yield users


def test_users_see_their_own_allocations(tenants: tuple[User, User, User]) -> None:
    root, alice, bob = tenants
    assert root.listed() == ["pa", "pb"]
    assert (alice.listed(), alice.listed("a1"), alice.listed("a2")) == (["pa"], ["pa"], [])
    assert bob.listed() == ["pb"]
    allocations = alice("tenant", "ListAllocations", admin.ListAllocationsRequest()).allocations
    assert [each.spec.id for each in allocations] == ["a1"]
    attributes = bob("user", "ListIPUAttributes", virmgrpc.ListIPUAttributesRequest()).entries
    assert [entry.agent for entry in attributes] == ["ag2"]


def test_objects_of_other_tenants_are_hidden(tenants: tuple[User, User, User]) -> None:
    root, alice, _ = tenants
    id = {"partition_id": "pb"}
    for stub, method, request in (
        ("user", "GetPartitionStatus", virmgrpc.GetPartitionStatusRequest(**id)),
        ("user", "GetPartitionIpuofConfig", virmgrpc.GetPartitionIpuofConfigRequest(**id)),
        ("user", "RemovePartition", virmgrpc.RemovePartitionRequest(**id)),
        ("user", "RemovePartition", virmgrpc.RemovePartitionRequest(**id, force=True)),
        ("user", "CreatePartition", partition("pc", 1, "a2")),
        ("tenant", "SetPartitionOptions", admin.SetPartitionOptionsRequest(**id, relocatable=True)),
        ("user", "ListIPUAttributes", virmgrpc.ListIPUAttributesRequest(agents=["ag1", "ag2"])),
        ("tenant", "GetAllocation", admin.GetAllocationRequest(id="a2")),
        ("tenant", "CountFits", admin.CountFitsRequest(allocation_id="a2", sizes=[1])),
    ):
        code, message = alice.rejected(stub, method, request)
        assert code is grpc.StatusCode.NOT_FOUND, method
        assert "does not exist, or you may not use it" in message, message
    assert root.listed() == ["pa", "pb"]
    options_reply = alice(
        "tenant", "ListPartitionOptions", admin.ListPartitionOptionsRequest(partition_ids=["pb", "pa"])
    )
    assert [options.partition_id for options in options_reply.partitions] == ["pa"]


def test_the_admin_api_is_for_administrators(tenants: tuple[User, User, User]) -> None:
    root, alice, _ = tenants
    for method in admin.service("AdminService").methods:
        request = getattr(admin, method.input_type.name)()
        assert alice.rejected("admin", method.name, request) == (
            grpc.StatusCode.PERMISSION_DENIED,
            f"Cannot call {method.name}: only administrators may do this. Use the key of an administrator.",
        )
    assert len(root("admin", "ListAgents", admin.ListAgentsRequest()).agents) == 3


def test_removed_rights_end_at_once(tenants: tuple[User, User, User]) -> None:
    root, alice, bob = tenants
    root("admin", "Apply", admin.ApplyRequest(users=[admin.UserSpec(id="alice", allocation_ids=["a2"])]))
    assert alice.listed() == ["pb"]
    root("admin", "RemoveUser", admin.RemoveRequest(id="bob"))
    assert bob.rejected("user", "ListPartitions", virmgrpc.ListPartitionsRequest())[0] is (
        grpc.StatusCode.UNAUTHENTICATED
    )


def test_credentials_are_needed_and_must_be_right(tenants: tuple[User, User, User]) -> None:
    server = tenants[0].client
    wrong = "Cannot log in: the user id or its access key is wrong. Ask an administrator for a new one."
    for user, message in (
        (User(server), "Cannot log in: this controller is secure. Give a user id and its access key."),
        (User(server, "alice", "AAAAAAAAAAA"), wrong),
        (User(server, "unknown", "AAAAAAAAAAA"), wrong),
        (User(server, "alice"), wrong),
        (User(server, "", "AAAAAAAAAAA"), wrong),
    ):
        for call in (
            ("user", "CreatePartition", partition("x", 1, "a1")),
            ("admin", "ListUsers", admin.ListUsersRequest()),
            ("tenant", "ListAllocations", admin.ListAllocationsRequest()),
        ):
            assert user.rejected(*call) == (grpc.StatusCode.UNAUTHENTICATED, message)
    # Clients with a certificate may read the version without credentials.
    assert User(server)("version", "GetVersion", virmgrpc.VersionRequest()).version


def test_a_separate_admin_endpoint_is_secure(secure: Callable[..., InProcess], certs: Path) -> None:
    server = secure(admin=ListenAddress("127.0.0.1", 0))
    credentials = server.root_key  # type: ignore[attr-defined]
    request = admin.ListUsersRequest()
    assert User(server, "root", credentials).rejected("admin", "ListUsers", request)[0] is grpc.StatusCode.UNIMPLEMENTED
    endpoint = Client(str(server.endpoints[1]), channel(certs))
    assert [user.id for user in User(endpoint, "root", credentials)("admin", "ListUsers", request).users] == ["root"]
    endpoint.close()


def test_keys_are_neither_stored_nor_logged(
    tenants: tuple[User, User, User], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    keys = [user.metadata[1][1] for user in tenants]
    tenants[1].rejected("user", "CreatePartition", partition("pa", 1, "a1"))
    stored = b"".join(file.read_bytes() for file in tmp_path.glob("vipu-server.db*"))
    captured = capfd.readouterr()
    for key in keys:
        assert key.encode() not in stored
        assert key not in captured.out + captured.err


def test_the_log_names_rejected_callers_and_writers(
    tenants: tuple[User, User, User], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, alice, _ = tenants
    key = "AAAAAAAAAAA"
    capture = LogCapture()
    logger_class = structlog.make_filtering_bound_logger(logging.DEBUG)
    for module in (methods, writer):  # these loggers drop lower levels in tests
        monkeypatch.setattr(
            module, "_log", structlog.wrap_logger(None, processors=[capture], wrapper_class=logger_class)
        )
    User(root.client, "mallory" + "y" * 100, key).rejected("user", "CreatePartition", partition("x", 1, "a1"))
    alice.rejected("admin", "ListUsers", admin.ListUsersRequest())
    alice("user", "RemovePartition", virmgrpc.RemovePartitionRequest(partition_id="pa"))
    alice.create("pa", "a1")
    alice.listed()
    alice.rejected("user", "CreatePartition", partition("pa", 1, "a1"))
    root("admin", "Apply", admin.ApplyRequest(users=[admin.UserSpec(id="carol")], validate_only=True))
    root("admin", "CreateUser", admin.CreateUserRequest(spec=admin.UserSpec(id="carol")))
    logs = capture.entries
    entries = [entry for entry in logs if entry["event"] in ("request rejected", "request completed")]
    assert all(entry["peer"].startswith("ipv4:127.0.0.1:") for entry in entries)
    assert [
        (entry["log_level"], entry["user"], entry["method"].rpartition("/")[2], entry.get("object"))
        for entry in entries
    ] == [
        ("warning", "mallory" + "y" * 56, "CreatePartition", None),
        ("warning", "alice", "ListUsers", None),
        ("info", "alice", "RemovePartition", "pa"),
        ("info", "alice", "CreatePartition", "pa"),
        ("info", "root", "CreateUser", "carol"),
    ]
    for secret in (key, root.metadata[1][1], alice.metadata[1][1]):
        assert secret not in repr(logs)
    assert {entry["event"] for entry in logs if entry["log_level"] == "info"} == {"request completed"}, (
        "one line for a write"
    )


@pytest.mark.parametrize("id", ["", "missing", "x" * 70])
def test_no_certificate_is_issued_for_missing_users(
    secure: Callable[..., InProcess], certs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, id: str
) -> None:
    """A certificate cannot have the name of the longest one, and that of the empty one belongs to another client."""
    server = secure(certs=certs)
    root = User(server, "root", server.root_key)  # type: ignore[attr-defined]
    issued: list[object] = []
    monkeypatch.setattr(user_certificates, "sign", lambda *given: issued.append(given))
    request = admin.AddCertificateRequest(user_id=id, signing_request=signing_request(tmp_path / "key", "x"))
    code, message = root.rejected("admin", "AddCertificate", request)
    assert (code, message.partition(": ")[2]) == (
        grpc.StatusCode.NOT_FOUND,
        f"user {id[:63]!r}{'…' * (len(id) > 63)} does not exist. Check the id.",
    )
    assert not issued


def test_default_user(secure: Callable[..., InProcess]) -> None:
    server = secure(default_user_id="root")
    pod(server, 2)
    assert User(server).listed() == []
    assert User(server, "root", "wrong").rejected("user", "ListPartitions", virmgrpc.ListPartitionsRequest())[0] is (
        grpc.StatusCode.UNAUTHENTICATED
    )


def test_other_metadata_keys(secure: Callable[..., InProcess]) -> None:
    server = secure(user_id_metadata="x-user", access_key_metadata="x-key")
    root = User(server)
    root.metadata = (("x-user", "root"), ("x-key", server.root_key))  # type: ignore[attr-defined]
    assert root.listed() == []


def outdated(certs: Path, directory: Path) -> Path:
    """Create an expired client certificate of the right authority."""
    authority = x509.load_pem_x509_certificate((certs / "ca" / "ca.crt").read_bytes())
    signer = serialization.load_pem_private_key((certs / "ca" / "ca.key").read_bytes(), None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "late")])
    certificate = (
        x509.CertificateBuilder(authority.subject, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=3))
        .not_valid_after(now - datetime.timedelta(days=1))
        .sign(signer, hashes.SHA256())
    )
    (directory / "client").mkdir(parents=True)
    (directory / "client" / "client.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (directory / "client" / "client.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return directory


def test_only_valid_client_certificates_are_accepted(
    secure: Callable[..., InProcess], certs: Path, tmp_path: Path
) -> None:
    server = secure(default_user_id="root")
    issue.create(tmp_path / "other", ["127.0.0.1"])
    authority = (certs / "server" / load.CA).read_bytes()
    for credentials in (
        None,
        grpc.ssl_channel_credentials(authority),
        channel(certs, tmp_path / "other"),
        channel(certs, outdated(certs, tmp_path / "late")),
    ):
        other_client = Client(server.address, credentials)
        assert User(other_client).rejected("version", "GetVersion", virmgrpc.VersionRequest())[0] is (
            grpc.StatusCode.UNAVAILABLE
        )
        other_client.close()
    assert User(server)("version", "GetVersion", virmgrpc.VersionRequest()).version


def test_certificates_that_cannot_be_used_are_rejected(certs: Path, tmp_path: Path) -> None:
    with pytest.raises(load.TlsError, match=r"No such file or directory\. Create one with 'vipu-server --tls-init'\.$"):
        load.server_credentials(tmp_path / "nothing")
    issue.create(tmp_path / "old", ["localhost"], datetime.timedelta(days=-1))
    with pytest.raises(
        load.TlsError, match=r"Cannot use certificate .*: it is valid only from .* to .*\. Create one with"
    ):
        load.server_credentials(tmp_path / "old")
    mixed = tmp_path / "mixed"
    issue.create(mixed, ["localhost"])
    (mixed / "server" / "server.key").write_bytes((certs / "server" / "server.key").read_bytes())
    with pytest.raises(load.TlsError, match="does not match certificate"):
        load.server_credentials(mixed)
    (mixed / "server" / "server.crt").write_text("nonsense")
    with pytest.raises(load.TlsError, match="they are not PEM certificates"):
        load.server_credentials(mixed)
    with pytest.raises(
        load.TlsError, match=r"Cannot create certificates in .*mixed': it already exists\. Remove it first"
    ):
        issue.create(mixed, ["localhost"])
    with pytest.raises(load.TlsError, match="neither an IP address nor a DNS name"):
        issue.create(tmp_path / "odd", ["bücher.example"])
    assert not (tmp_path / "odd").exists()


def test_a_failed_creation_leaves_no_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, written = issue._write, []

    def full(directory: Path, *rest: object) -> None:
        if directory.name == "client":
            raise OSError(errno.ENOSPC, "No space left on device")
        write(directory, *rest)  # type: ignore[arg-type]
        written.append(directory.name)

    with monkeypatch.context() as patch:
        patch.setattr(issue, "_write", full)
        with pytest.raises(load.TlsError, match=r"Cannot write certificates to '.*/certs': No space left on device\.$"):
            issue.create(tmp_path / "certs", ["localhost"])
    assert written == ["ca", "users", "server"]
    assert list(tmp_path.iterdir()) == []
    issue.create(tmp_path / "certs", ["localhost"])
    assert [path.name for path in tmp_path.iterdir()] == ["certs"]


def test_only_the_owner_can_read_keys(certs: Path) -> None:
    for key in certs.glob("*/*.key"):
        assert key.stat().st_mode & 0o777 == 0o600
        assert key.parent.stat().st_mode & 0o777 == 0o700
    assert len(list(certs.glob("*/*.key"))) == 5
