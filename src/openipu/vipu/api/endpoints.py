# SPDX-License-Identifier: GPL-3.0-or-later
"""The gRPC endpoints of the controller: services, limits and threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc

from openipu.process import memory
from openipu.process.limits import connection_limit, raise_file_limit
from openipu.shared.vipu.addresses import is_wildcard
from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.api.admin import AdminService
from openipu.vipu.api.admission import Admission, Group, Immediate
from openipu.vipu.api.auth import Authenticator
from openipu.vipu.api.convert import Message
from openipu.vipu.api.exchange import Exchanges
from openipu.vipu.api.guard import RequestGuard
from openipu.vipu.api.health import HEALTH, REFLECTION, Health, reflection_handler
from openipu.vipu.api.methods import MAX_REQUEST
from openipu.vipu.api.public import UserService, VersionService
from openipu.vipu.api.tenant import TenantService
from openipu.vipu.api.watch import Watches
from openipu.vipu.lifecycle.interface import Lifecycle
from openipu.vipu.metrics.catalog import CONTROLLER
from openipu.vipu.metrics.meters import Calls
from openipu.vipu.storage.writer import RecordWriter
from openipu.vipu.tls.load import ServerCredentials

# Bytes of a message. The largest batch of AdminService is one of 50,000 items; 64 racks take a tenth of it. An endpoint
# without AdminService has only ordinary requests.
MAX_ADMIN_MESSAGE = 4 << 20
MAX_USER_MESSAGE = MAX_REQUEST
_MAX_REPLY = 64 << 20
_HANDSHAKE_SECONDS = 10  # TLS handshake and HTTP/2 settings
_MAINTENANCE_SECONDS = 1.0  # between searches for late clients
_TRIM_SECONDS = 30.0  # between returns of free memory

_OPTIONS = (
    ("grpc.max_send_message_length", _MAX_REPLY),
    ("grpc.max_metadata_size", 16 << 10),
    # Calls of one connection; more wait in the client. ``admission`` limits those of a user. A limit below those breaks
    # clients with many concurrent calls. gRPC also counts calls that ended a moment ago, and rejects further ones.
    ("grpc.max_concurrent_streams", 1024),
    # Probes of the bandwidth would enlarge the buffers of requests that no thread reads, from 64 kB to megabytes.
    ("grpc.http2.bdp_probe", 0),
    # Two controllers on one endpoint must be an error, not a random choice for each connection.
    ("grpc.so_reuseport", 0),
    ("grpc.max_connection_idle_ms", 3_600_000),
    # Detect clients that disappeared silently, and allow them the same check of the controller.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
)

_VERSION, _USER = "virmgrpc.VersionService", "virmgrpc.UserService"
_TENANT, _ADMIN = "openipu.vipu.admin.v1.TenantService", "openipu.vipu.admin.v1.AdminService"
PUBLIC = (_VERSION, _USER)


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Address to listen on. Port 0 selects a free port."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return the address in the form that gRPC expects."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """Addresses, services and security of the endpoints.

    The admin endpoint has all services. With ``admin`` the user endpoint has no AdminService, unless
    ``admin_on_both``. ``public_only`` serves Graphcore's API only, without the services of this project.
    ``confirm`` raises an error when records that were read may be outdated.
    """

    user: ListenAddress
    admin: ListenAddress | None = None
    admin_on_both: bool = False
    public_only: bool = False
    credentials: ServerCredentials | None = None
    authenticator: Authenticator | None = None
    version: str = ""
    max_retries: int = 3
    certs: Path | None = None
    shared_certificates: bool = False
    confirm: Callable[[], None] | None = None

    def served(self) -> list[tuple[ListenAddress, list[str]]]:
        """Return the addresses with their services: the user endpoint, then a separate admin endpoint."""
        everything = [*PUBLIC, _TENANT, _ADMIN]
        if self.public_only:
            return [(self.user, list(PUBLIC))]
        if self.admin is None:
            return [(self.user, everything)]
        return [(self.user, everything if self.admin_on_both else [*PUBLIC, _TENANT]), (self.admin, everything)]


class ListenError(Exception):
    """Raised when an endpoint cannot be bound."""

    error_code = "OPU615"


class Endpoints:
    """All gRPC servers of the controller."""

    def __init__(self, controller: RecordWriter, lifecycle: Lifecycle, options: EndpointOptions) -> None:
        """Create the services. ``bind`` opens the ports."""
        self._options = options
        self.meters = Calls(CONTROLLER, "vipu")
        self._servers: list[tuple[grpc.Server, Health]] = []
        self._admission = Admission()
        self._health_checks: list[Admission] = []  # by endpoint, so that those of users do not affect administrators
        self._exchanges = Exchanges()
        self._stopping = threading.Event()
        self._maintenance = threading.Thread(target=self._maintain, name="calls", daemon=True)
        self.watches = Watches(controller, options.confirm)
        user = UserService(controller, lifecycle, options.max_retries)
        self._admin = AdminService(
            controller,
            lifecycle,
            self.watches,
            options.max_retries,
            options.certs,
            secure=options.credentials is not None,
            shared_certificates=options.shared_certificates,
            shared=options.authenticator.shared if options.authenticator else None,
        )
        self._handlers = {
            _VERSION: virmgrpc.handler("VersionService", VersionService(options.version)),
            # Returns its reply already encoded.
            _USER: virmgrpc.handler("UserService", user, {"ListPartitions": bytes}),
            _TENANT: admin.handler("TenantService", TenantService(controller, lifecycle, self.watches)),
            _ADMIN: admin.handler("AdminService", self._admin),
        }

    def bind(self) -> list[ListenAddress]:
        """Bind the endpoints and return their addresses: user endpoint, then a separate admin endpoint.

        Raises ListenError when one cannot be bound, and then releases all of them.
        """
        servers = self._options.served()
        try:
            connections = connection_limit(raise_file_limit()) // len(servers)
            bound = [self._listen(address, services, connections) for address, services in servers]
        except ListenError:
            self.stop(0)
            raise
        if len(bound) > 1:
            self._admin.user_endpoint = _user_endpoint(*bound)
        return bound

    def start(self) -> None:
        """Start to serve calls."""
        self._maintenance.start()
        self.watches.start()
        for server, _ in self._servers:
            server.start()

    def mark_unhealthy(self) -> None:
        """Report NOT_SERVING from now on. Calls are still served."""
        for _, health in self._servers:
            health.stop()

    def stop(self, grace: float) -> None:
        """Reject new calls, wait ``grace`` seconds for running calls, then cancel the rest."""
        self.mark_unhealthy()
        self.watches.stop()
        for stopping in [server.stop(grace) for server, _ in self._servers]:
            stopping.wait()
        self._servers.clear()
        self._stopping.set()
        for admission in (self._admission, *self._health_checks):
            admission.shutdown()

    def _maintain(self) -> None:
        """Cancel late calls, and return the memory of ended ones, until the stop."""
        untrimmed = 0.0
        while not self._stopping.wait(_MAINTENANCE_SECONDS):
            self._exchanges.cancel_late()
            untrimmed += _MAINTENANCE_SECONDS
            if untrimmed >= _TRIM_SECONDS:
                untrimmed = 0.0
                memory.trim()

    def _listen(self, address: ListenAddress, services: Sequence[str], connections: int) -> ListenAddress:
        server = make_server(services, connections)
        health = Health([*services, HEALTH, REFLECTION])
        self._health_checks.append(Admission())
        guard = RequestGuard(
            self._options.authenticator,
            {
                HEALTH: health.handler(),
                REFLECTION: reflection_handler(services),
                **{service: self._handlers[service] for service in services},
            },
            unauthenticated=[_VERSION, HEALTH],
            admin_only=[_ADMIN],
            groups={HEALTH: Group.HEALTH, REFLECTION: Group.REFLECTION},
            admission=self._admission,
            own={Group.HEALTH: self._health_checks[-1]},
            exchanges=self._exchanges,
            meters=self.meters,
            confirm=self._options.confirm,
        )
        server.add_generic_rpc_handlers([guard])
        bound = open_port(server, address, self._options.credentials)
        self._servers.append((server, health))
        return bound


def make_server(services: Sequence[str], connections: int) -> grpc.Server:
    """Return a server with the limits of an endpoint with these services."""
    message = MAX_ADMIN_MESSAGE if _ADMIN in services else MAX_USER_MESSAGE
    options = (
        *_OPTIONS,
        ("grpc.max_receive_message_length", message),
        ("grpc.server_handshake_timeout_ms", _HANDSHAKE_SECONDS * 1000),
        ("grpc.max_allowed_incoming_connections", connections),
    )
    return grpc.server(Immediate(), options=options)  # every handler has a pool of its own


def open_port(server: grpc.Server, address: ListenAddress, credentials: ServerCredentials | None) -> ListenAddress:
    """Bind a server, and return the address. Raises ListenError."""
    try:
        if credentials is None:
            port = server.add_insecure_port(str(address))
        else:
            port = server.add_secure_port(str(address), credentials())
    except RuntimeError:
        port = 0
    if not port:
        raise ListenError(
            f"Cannot listen on {address}: another program has that port, or this machine has no such address."
        )
    return ListenAddress(address.host, port)


def _user_endpoint(users: ListenAddress, administrators: ListenAddress) -> Message:
    """Return the address of users for callers of the endpoint of administrators."""
    same = users.host == administrators.host or is_wildcard(users.host)
    return admin.UserEndpoint(host="" if same else users.host, port=users.port)
