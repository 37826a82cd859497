# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Client of a V-IPU controller: channel, credentials and error messages.

Modules, action plugins and command lines use it. The channel is opened at the first call and never at import,
because the workers of Ansible are forks. Call ``close``, or use the client as a context manager.
"""

from __future__ import annotations

import math
import time
import typing as t
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..reconcile import UserError
from .addresses import is_loopback
from .contract import admin, virmgrpc
from .failover import READS, Failover, FailoverStub, WatchSteps, split, stable_code, was_cancelled
from .ports import AGENT_PORT, CONTROLLER_PORT
from .quiet_grpc import HAS_GRPC
from .unreachable import unreachable
from .wire import HAS_PROTOBUF, Stub

if HAS_GRPC:
    import grpc

# The metadata keys of Graphcore's clients are not public. These are the openipu defaults; server and clients
# have options for other keys.
USER_ID_METADATA = "vipu-user-id"
ACCESS_KEY_METADATA = "vipu-access-key"
MAX_MESSAGE_BYTES = 64 << 20
# Graphcore's controller has no streams, and may reject such frequent pings.
_KEEPALIVE = (("grpc.keepalive_time_ms", 20_000), ("grpc.keepalive_timeout_ms", 10_000))
# Several controllers are ours. They accept a ping every five seconds.
_FAILOVER = (
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),  # also the longest time until sent data is acknowledged
    ("grpc.http2.max_pings_without_data", 0),  # unlimited: a change may take a minute
    ("grpc.min_reconnect_backoff_ms", 2_000),  # also the timeout of a connection attempt
)
# The reply to a removal comes after all machines released the IPUs. The controller allows a minute for that.
REMOVAL_SECONDS = 90.0


class VipuError(UserError):
    """Raised when a call fails; ``code`` is the name of the gRPC status code."""

    error_code = "OPU200"

    def __init__(self, message: str, code: str = "UNKNOWN", details: str = "", error_code: str = "") -> None:
        """``details`` is the unchanged message of the server or of the library; ``error_code`` is the server's."""
        super().__init__(message)
        self.code = code
        self.details = details
        self.error_code = error_code or self.error_code


@dataclass(frozen=True)
class Connection:
    """Address of a controller, and credentials. A CA, certificate or key enables TLS; ``timeout`` is in seconds.

    ``host`` may be a comma-separated list of controllers of one deployment, as ``host`` or ``host:port``: calls go to
    the one that leads.
    ``insecure_network`` allows an access key without TLS to addresses other than loopback.
    """

    host: str = "localhost"
    port: int = CONTROLLER_PORT
    user_id: str | None = None
    access_key: str | None = field(default=None, repr=False)
    ca_path: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    timeout: float = 30.0
    user_id_metadata: str = USER_ID_METADATA
    access_key_metadata: str = ACCESS_KEY_METADATA
    insecure_network: bool = False

    @property
    def address(self) -> str:
        """Address in the notation of messages and of gRPC."""
        return ",".join(self.addresses)

    @property
    def addresses(self) -> list[str]:
        """Addresses of all controllers. Raises VipuError."""
        try:
            hosts = split(self.host, self.port)
        except ValueError:
            raise VipuError(
                "Cannot call the controller: the port of '%s' must be a number." % self.host, "INVALID_ARGUMENT"
            ) from None
        bare = [(host, port, ":" in host and not host.startswith("[")) for host, port in hosts]
        return [("[%s]:%d" if is_bare else "%s:%d") % (host, port) for host, port, is_bare in bare]

    def first(self) -> Connection:
        """Return the connection to the first controller, for programs that call only one. Raises VipuError."""
        host, _colon, port = self.addresses[0].rpartition(":")
        return replace(self, host=host.strip("[]"), port=int(port)) if "," in self.host else self

    @property
    def secure(self) -> bool:
        """Return whether the channel uses TLS."""
        return bool(self.ca_path or self.client_cert or self.client_key)

    def check_exposure(self) -> None:
        """Raise VipuError when the access key would be readable on the network."""
        local = all(is_loopback(host) for host, _port in split(self.host, self.port))
        if self.access_key and not (self.secure or self.insecure_network or local):
            raise VipuError(
                "Cannot send the access key to %s: the connection has no TLS, so others on the network could read the "
                "key. Set ca_path, client_cert and client_key, or insecure_network to allow it." % self.address,
                "INVALID_ARGUMENT",
            )

    def of_users(self, endpoint: t.Any) -> Connection:
        """Return the connection for users. ``endpoint``: a UserEndpoint; without a port, it is the same one."""
        if not endpoint.port:
            return self
        hosts = ",".join(host for host, _port in split(self.host, self.port))
        return replace(self, host=endpoint.host or hosts, port=endpoint.port)


class Client:
    """Calls to one controller."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._channels: dict[str, t.Any] = {}  # by address
        self._stubs: dict[tuple[str, str], Stub] = {}  # by address and service
        self._controllers: Failover | None = None

    def __enter__(self) -> Client:
        """Return the client."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the channels."""
        self.close()

    def close(self) -> None:
        """Close the channels, if there are any."""
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()
        self._stubs.clear()

    @property
    def host(self) -> str:
        """Host of the controller to call now: after a successful call, the leader."""
        return self._failover.address.rpartition(":")[0]

    @property
    def version(self) -> Stub:
        """Stub of virmgrpc.VersionService."""
        return self._stub(virmgrpc, "VersionService")

    @property
    def user(self) -> Stub:
        """Stub of virmgrpc.UserService."""
        return self._stub(virmgrpc, "UserService")

    @property
    def admin(self) -> Stub:
        """Stub of openipu.vipu.admin.v1.AdminService."""
        return self._stub(admin, "AdminService")

    @property
    def tenant(self) -> Stub:
        """Stub of openipu.vipu.admin.v1.TenantService."""
        return self._stub(admin, "TenantService")

    def call(self, method: t.Callable[..., t.Any], request: t.Any, action: str = "", timeout: float = 0) -> t.Any:
        """Make a call and return its reply. Raises VipuError.

        ``action`` completes "Cannot …" in error messages ("create partition 'p1'"). Messages of the server that
        already start so stay unchanged. ``timeout`` is in seconds; 0 means the timeout of the connection.
        """
        seconds = timeout or self.connection.timeout
        deadline = time.monotonic() + seconds
        while True:
            try:
                reply = method(request, timeout=seconds, metadata=self._metadata())
            except (grpc.RpcError, ValueError) as error:
                name = getattr(method, "__name__", "")
                if isinstance(error, grpc.RpcError) and self._failover.fail(error, name, deadline):
                    seconds = max(deadline - time.monotonic(), 0.1)
                    continue
                raise self._failure(error, request, action) from None
            self._failover.succeed()
            return reply

    def watch(
        self, service: str, request: t.Any, action: str = "", started: t.Callable[[t.Any], None] | None = None
    ) -> t.Iterator[t.Any]:
        """Yield the replies of method Watch of ``TenantService`` or ``AdminService``. Raises VipuError.

        The stream has a channel of its own, which detects that the controller disappeared. ``started`` receives each
        call, which any thread may cancel. With several controllers, replies are complete steps, and the stream
        continues after the last one at another controller. It ends when none serves within the timeout.
        """
        steps, deadline = WatchSteps(request, hold=len(self.connection.addresses) > 1), math.inf
        while True:
            with self._open(self._failover.address, _KEEPALIVE) as channel:
                try:
                    call = admin.stub(channel, service).Watch(steps.request(), metadata=self._metadata())
                    if started is not None:
                        started(call)
                    for reply in call:
                        deadline = math.inf
                        self._failover.succeed()
                        yield from steps.add(reply)
                except (grpc.RpcError, ValueError) as error:
                    deadline = min(deadline, time.monotonic() + self.connection.timeout)
                    if not (isinstance(error, grpc.RpcError) and self._failover.fail(error, "Watch", deadline)):
                        raise self._failure(error, request, action) from None
                else:
                    return

    def _failure(self, error: Exception, request: t.Any, action: str) -> VipuError:
        if isinstance(error, grpc.RpcError):
            public = request.DESCRIPTOR.file.package == virmgrpc.service("UserService").file.package
            reads = request.DESCRIPTOR.name.startswith(READS)
            return self._error(error, action, public, reads)
        # Raised by the library, for example for invalid metadata.
        return VipuError("Cannot %s: %s." % (action or _CALL, error), "INVALID_ARGUMENT")

    def _stub(self, package: t.Any, service: str) -> Stub:
        if len(self.connection.addresses) > 1:
            return t.cast(Stub, FailoverStub(lambda: self._present_stub(package, service)))
        return self._present_stub(package, service)

    @property
    def _failover(self) -> Failover:
        if self._controllers is None:
            self._controllers = Failover(self.connection.addresses)
        return self._controllers

    def _present_stub(self, package: t.Any, service: str) -> Stub:
        address = self._failover.address
        stub = self._stubs.get((address, service))
        if stub is None:
            if address not in self._channels:
                self._channels[address] = self._open(address)
            stub = self._stubs[address, service] = package.stub(self._channels[address], service)
        return stub

    def _open(self, address: str, more: tuple[tuple[str, int], ...] = ()) -> t.Any:
        missing = [name for name, found in (("grpcio", HAS_GRPC), ("protobuf", HAS_PROTOBUF)) if not found]
        if missing:
            raise VipuError(
                "Cannot call the controller: %s is missing in the Python of this task. Run 'pip install %s', or use "
                "transport cli." % (" and ".join(missing), " ".join(missing)),
                "MISSING_LIBRARY",
            )
        connection = self.connection
        _check_text(connection)
        for _host, port in split(connection.host, connection.port):
            if not 0 < port < 65536:  # the library would truncate it to 16 bits
                raise VipuError(
                    "Cannot call the controller: the port must be 1 to 65535, not %d." % port, "INVALID_ARGUMENT"
                )
        connection.check_exposure()
        options = [
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
            ("grpc.enable_http_proxy", 0),  # controllers are on management networks, not behind web proxies
            ("grpc.max_reconnect_backoff_ms", 2_000),  # not two minutes: clients outlive outages of a controller
            *(_FAILOVER if len(connection.addresses) > 1 else more),
        ]
        if not connection.secure:
            return grpc.insecure_channel(address, options=options)
        if bool(connection.client_cert) != bool(connection.client_key):
            raise VipuError(
                "Cannot call the controller: client_cert and client_key must be set together.", "INVALID_ARGUMENT"
            )
        credentials = grpc.ssl_channel_credentials(
            root_certificates=_read(connection.ca_path),
            private_key=_read(connection.client_key),
            certificate_chain=_read(connection.client_cert),
        )
        return grpc.secure_channel(address, credentials, options=options)

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        connection = self.connection
        pairs = (
            (connection.user_id_metadata, connection.user_id),
            (connection.access_key_metadata, connection.access_key),
        )
        return tuple((key, value) for key, value in pairs if value)

    def _error(self, error: t.Any, action: str, public: bool, reads: bool) -> VipuError:
        code, details = error.code(), error.details() or ""
        name = code.name
        stopping = details.endswith(".") and "last error" not in details  # the controller itself reports that it stops
        if code is grpc.StatusCode.UNAVAILABLE and not stopping:
            message = self._failed(action, unreachable(details, secure=self.connection.secure))
        elif code is grpc.StatusCode.DEADLINE_EXCEEDED:
            message = self._failed(
                action,
                "did not respond within the timeout; the operation may still be running. Check that vipu-server "
                "listens there, or increase the timeout.",
            )
        elif was_cancelled(error):
            effect = "Try again." if reads else "A change may have been made: read the object again."
            message = self._failed(action, "cancelled the call, for example because it stops. " + effect)
        elif code is grpc.StatusCode.UNIMPLEMENTED and public:
            message = (
                "Cannot %s: the server at %s is not a V-IPU controller. Check host and port: controllers listen on "
                "%d, agents on %d." % (action or _CALL, self.connection.address, CONTROLLER_PORT, AGENT_PORT)
            )
        elif code is grpc.StatusCode.UNIMPLEMENTED:
            message = self._failed(
                action,
                "offers only the public user API. Use the admin endpoint, or with Graphcore's controller the command "
                "line (transport: cli).",
            )
        elif code is grpc.StatusCode.INTERNAL and details == "Invalid metadata":  # raised by the local library
            name = "INVALID_ARGUMENT"
            message = (
                "Cannot call the controller: the user id, the access key or a metadata key contains invalid "
                "characters, such as a line break. Check api_user_id, api_access_key, metadata_user_id_key and "
                "metadata_access_key_key."
            )
        elif code is grpc.StatusCode.UNKNOWN and not details:
            message = self._failed(action, "returned an error without a cause. Check its log.")
        elif details.startswith("Cannot ") or not action:
            message = details or self._failed(action, "returned %s. Check its log." % name)
        else:
            message = "Cannot %s: %s" % (action, details or name)
        error_code = stable_code(error)
        return VipuError(message if message.endswith(".") else message + ".", name, details, error_code)

    def _failed(self, action: str, reason: str) -> str:
        """Return a message; ``reason`` is a clause about the controller, and the remedy."""
        address = self._failover.untrusted or self.connection.address
        if not action:
            return "Cannot reach the V-IPU controller at %s: it %s" % (address, reason)
        return "Cannot %s: the V-IPU controller at %s %s" % (action, address, reason)


_CALL = "call the controller"  # action in messages of calls without one


def _check_text(connection: Connection) -> None:
    """Raise VipuError for surrogates, which Python makes of undecodable bytes."""
    for name, value in vars(connection).items():
        if isinstance(value, str) and value.encode("utf-8", "replace").decode() != value:
            message = "Cannot call the controller: the %s has characters that are no text. Remove them."
            raise VipuError(message % name.replace("_", " "), "INVALID_ARGUMENT")


def _read(path: str | None) -> bytes | None:
    if not path:
        return None
    try:
        return Path(path).expanduser().read_bytes()
    except (OSError, ValueError) as error:  # ValueError: the path has a NUL
        reason = getattr(error, "strerror", None) or str(error)
        raise VipuError("Cannot read file '%s': %s." % (path, reason.lower()), "INVALID_ARGUMENT") from None


def partition_status(client: Client, id: str) -> t.Any:
    """Return the PartitionStatus message of a partition."""
    request = virmgrpc.GetPartitionStatusRequest(partition_id=id)
    return client.call(client.user.GetPartitionStatus, request, "get the status of partition '%s'" % id).status


def settled(status: t.Any) -> bool:
    """Return whether the controller finished its operation on the partition, with or without success."""
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
    """Poll a partition until the condition holds or ``timeout`` seconds have passed.

    Returns whether it holds, and the last PartitionStatus. The interval starts at milliseconds, which an idle
    rack needs, and grows to one second.
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
