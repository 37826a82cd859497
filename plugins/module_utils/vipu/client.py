# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one client of a V-IPU controller: channel, credentials, and errors as sentences.

Used by modules, action plugins and command lines alike. A channel is made at the first call and never
at import, because Ansible's workers are forks; ``close`` it, or use the client as a context manager.
"""

from __future__ import annotations

import time
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ..reconcile import SentenceError
from .contract import admin, virmgrpc
from .wire import HAS_GRPC, HAS_PROTOBUF, Stub

if HAS_GRPC:
    import grpc

DEFAULT_PORT = 8090
# How Graphcore's clients name themselves on the wire is not public; these are ours, and the server
# and every client take others by option.
USER_ID_METADATA = "vipu-user-id"
ACCESS_KEY_METADATA = "vipu-access-key"
MAX_MESSAGE_BYTES = 64 << 20
# A removal is answered when the machines have let go, for which a controller gives them up to a minute.
REMOVAL_SECONDS = 90.0


class VipuError(SentenceError):
    """What went wrong, in one sentence; ``code`` is the name of the gRPC status code."""

    def __init__(self, sentence: str, code: str = "UNKNOWN", details: str = "") -> None:
        """``details`` is what the server or the library said, word by word."""
        super().__init__(sentence)
        self.code = code
        self.details = details


@dataclass(frozen=True)
class Connection:
    """Where a controller is and who asks. Any CA, certificate or key given means TLS; ``timeout`` is in seconds."""

    host: str = "localhost"
    port: int = DEFAULT_PORT
    user_id: str | None = None
    access_key: str | None = field(default=None, repr=False)
    ca_path: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    timeout: float = 30.0
    user_id_metadata: str = USER_ID_METADATA
    access_key_metadata: str = ACCESS_KEY_METADATA

    @property
    def address(self) -> str:
        """The address as sentences and gRPC write it."""
        bare = ":" in self.host and not self.host.startswith("[")
        return ("[%s]:%d" if bare else "%s:%d") % (self.host, self.port)

    @property
    def secure(self) -> bool:
        """Whether the channel is encrypted."""
        return bool(self.ca_path or self.client_cert or self.client_key)


class Client:
    """Calls to one controller."""

    def __init__(self, connection: Connection) -> None:
        """Nothing is opened yet."""
        self.connection = connection
        self._channel: t.Any = None
        self._stubs: dict[str, Stub] = {}

    def __enter__(self) -> Client:
        """The client itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the channel."""
        self.close()

    def close(self) -> None:
        """Close the channel, if there is one."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
            self._stubs.clear()

    @property
    def version(self) -> Stub:
        """virmgrpc.VersionService."""
        return self._stub(virmgrpc, "VersionService")

    @property
    def user(self) -> Stub:
        """virmgrpc.UserService."""
        return self._stub(virmgrpc, "UserService")

    @property
    def admin(self) -> Stub:
        """Our AdminService."""
        return self._stub(admin, "AdminService")

    @property
    def tenant(self) -> Stub:
        """Our TenantService."""
        return self._stub(admin, "TenantService")

    def call(self, method: t.Callable[..., t.Any], request: t.Any, action: str = "", timeout: float = 0) -> t.Any:
        """Make a call and give its reply; raises VipuError.

        ``action`` says what was tried ("create partition 'p1'"); sentences of the server that name it
        already stand alone. ``timeout`` in seconds, 0 for the connection's.
        """
        try:
            return method(request, timeout=timeout or self.connection.timeout, metadata=self._metadata())
        except grpc.RpcError as error:
            public = request.DESCRIPTOR.file.package == virmgrpc.service("UserService").file.package
            raise self._error(error, action, public) from None
        except ValueError as error:  # the library refuses, for example, metadata that cannot be sent
            raise VipuError("Cannot %s: %s." % (action or "call the controller", error), "INVALID_ARGUMENT") from None

    def _stub(self, package: t.Any, service: str) -> Stub:
        if service not in self._stubs:
            if self._channel is None:
                self._channel = self._open()
            self._stubs[service] = package.stub(self._channel, service)
        return self._stubs[service]

    def _open(self) -> t.Any:
        missing = [name for name, there in (("grpcio", HAS_GRPC), ("protobuf", HAS_PROTOBUF)) if not there]
        if missing:
            raise VipuError(
                "The Python of this task lacks %s: install it with 'pip install %s', or use transport cli."
                % (" and ".join(missing), " ".join(missing)),
                "MISSING_LIBRARY",
            )
        connection = self.connection
        if not 0 < connection.port < 65536:  # the library would take what is left of it in sixteen bits
            raise VipuError("There is no port %d: give one from 1 to 65535." % connection.port, "INVALID_ARGUMENT")
        options = [
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
            ("grpc.enable_http_proxy", 0),  # controllers stand on management networks, not behind web proxies
        ]
        if not connection.secure:
            return grpc.insecure_channel(connection.address, options=options)
        if bool(connection.client_cert) != bool(connection.client_key):
            raise VipuError("A client certificate and its key go together: give both or neither.", "INVALID_ARGUMENT")
        credentials = grpc.ssl_channel_credentials(
            root_certificates=_read(connection.ca_path),
            private_key=_read(connection.client_key),
            certificate_chain=_read(connection.client_cert),
        )
        return grpc.secure_channel(connection.address, credentials, options=options)

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        connection = self.connection
        pairs = (
            (connection.user_id_metadata, connection.user_id),
            (connection.access_key_metadata, connection.access_key),
        )
        return tuple((key, value) for key, value in pairs if value)

    def _error(self, error: t.Any, action: str, public: bool) -> VipuError:
        code, details = error.code(), error.details() or ""
        name = code.name
        where = "The V-IPU controller at %s" % self.connection.address
        stopping = details.endswith(".") and "last error" not in details  # then the controller itself says so
        if code is grpc.StatusCode.UNAVAILABLE and not stopping:
            sentence = "%s %s" % (where, self._unreachable(details))
        elif code is grpc.StatusCode.DEADLINE_EXCEEDED:
            sentence = (
                "%s did not answer within the timeout, and may still be at work: check that vipu-server, and "
                "not something else, listens there, or allow more time." % where
            )
        elif code is grpc.StatusCode.UNIMPLEMENTED and public:
            sentence = (
                "What answers at %s is not a V-IPU controller: check host and port; a controller listens on 8090, an "
                "agent on 8080." % self.connection.address
            )
        elif code is grpc.StatusCode.UNIMPLEMENTED:
            sentence = (
                "%s offers only the public user API, which cannot %s: use the admin end-point, or with "
                "Graphcore's controller the command line (transport: cli)." % (where, action or "do this")
            )
        elif code is grpc.StatusCode.INTERNAL and details == "Invalid metadata":  # said on this side of the wire
            name = "INVALID_ARGUMENT"
            sentence = (
                "The user id or the access key holds characters that no key has, a line end perhaps, or the name of "
                "its metadata key does: check api_user_id, api_access_key, and the options for metadata keys."
            )
        elif code is grpc.StatusCode.UNKNOWN and not details:
            sentence = "%s failed without saying why: see its log." % where
        elif details.startswith("Cannot ") or not action:
            sentence = details or "%s answered %s." % (where, name)
        else:
            sentence = "Cannot %s: %s" % (action, details or name)
        return VipuError(sentence if sentence.endswith(".") else sentence + ".", name, details)

    def _unreachable(self, details: str) -> str:
        """Why no connection came about, and the remedy, from what gRPC says of it."""
        for sign, sentence in _HANDSHAKES:
            if sign in details:
                return sentence
        if "Socket closed" in details or "Connection reset" in details:
            if self.connection.secure:
                return (
                    "closed the connection during the handshake: it wants a client certificate that its CA has "
                    "signed and that has not expired; check client_cert and client_key."
                )
            return "closed the connection: if it is a secure one (TLS), give its CA and a client certificate."
        if "resolving" in details or "lookup failed" in details:
            return "was not found: no such host name; check the host."
        reason = "connection refused" if "Connection refused" in details else _tail(details)
        return "does not answer (%s): check that vipu-server runs there and that host and port are right." % reason


# What the library says, and what it means to whoever runs a playbook. First match wins.
_HANDSHAKES = (
    (
        "security handshaker",
        "was not asked: the CA, the certificate or the key is not PEM, or the key belongs to another certificate; "
        "check ca_path, client_cert and client_key.",
    ),
    ("Failed parsing HTTP/2", "is something else: what listens there does not speak gRPC; check host and port."),
    ("WRONG_VERSION_NUMBER", "does not speak TLS: leave out the CA and the certificate, or check the port."),
    ("certificate has expired", "shows a certificate that has expired: renew it on the server."),
    ("certificate is not yet valid", "shows a certificate that is not valid yet: check the clocks of both hosts."),
    ("Hostname Verification", "shows a certificate for another name: use a name or address that it lists."),
    ("is not in peer certificate", "shows a certificate for another name: use a name or address that it lists."),
    ("CERTIFICATE_VERIFY_FAILED", "shows a certificate that the given CA has not signed: check ca_path."),
    ("Tls handshake failed", "refused the TLS handshake: check the CA, the certificate and the key."),
)


def _tail(details: str) -> str:
    """The part of gRPC's account that says why, without the addresses that it tried before."""
    return details.rpartition(": ")[2].strip().rstrip(".") or "no reason given"


def _read(path: str | None) -> bytes | None:
    if not path:
        return None
    try:
        return Path(path).expanduser().read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise VipuError("Cannot read %s: %s." % (path, reason.lower()), "INVALID_ARGUMENT") from None


def partition_status(client: Client, id: str) -> t.Any:
    """The PartitionStatus message of a partition."""
    request = virmgrpc.GetPartitionStatusRequest(partition_id=id)
    return client.call(client.user.GetPartitionStatus, request, "get the status of partition '%s'" % id).status


def settled(status: t.Any) -> bool:
    """Whether the controller is done with the partition, for better or worse."""
    if status.operation_state == virmgrpc.POS_FAILED:
        return True
    busy = status.operation_state in (virmgrpc.POS_CREATING, virmgrpc.POS_RESETTING, virmgrpc.POS_REMOVING)
    return not busy and status.ready_state != virmgrpc.PS_PENDING


def wait_partition(
    client: Client,
    id: str,
    timeout: float,
    until: t.Callable[[t.Any], bool] = settled,
    clock: t.Callable[[], float] = time.monotonic,
) -> tuple[bool, t.Any]:
    """Poll a partition until the condition holds or ``timeout`` seconds are over.

    Gives whether it holds, and the last PartitionStatus seen. The first polls follow close on each
    other, since an idle rack needs milliseconds; then the pause grows to a second.
    """
    deadline, pause = clock() + timeout, 0.005
    while True:
        status = partition_status(client, id)
        if until(status):
            return True, status
        left = deadline - clock()
        if left <= 0:
            return False, status
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, 1.0)
