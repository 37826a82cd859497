# SPDX-License-Identifier: GPL-3.0-or-later
"""The gRPC endpoints of the controller: addresses, limits and threads.

The handler of calls can be replaced while an endpoint serves, so connections and calls survive when a controller
begins to lead. Everything that limits clients belongs to the endpoint, and not to the handler.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from openipu.process import memory
from openipu.process.limits import connection_limit, raise_file_limit
from openipu.vipu.api.addresses import ListenAddress
from openipu.vipu.api.admission import Admission, Group, Immediate
from openipu.vipu.api.auth import Authenticator
from openipu.vipu.api.exchange import Exchanges
from openipu.vipu.api.guard import RequestGuard
from openipu.vipu.api.health import HEALTH, REFLECTION, Health
from openipu.vipu.api.methods import MAX_REQUEST
from openipu.vipu.metrics.catalog import CONTROLLER
from openipu.vipu.metrics.meters import Calls
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

VERSION, USER = "virmgrpc.VersionService", "virmgrpc.UserService"
TENANT, ADMIN = "openipu.vipu.admin.v1.TenantService", "openipu.vipu.admin.v1.AdminService"
PUBLIC = (VERSION, USER)


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
        everything = [*PUBLIC, TENANT, ADMIN]
        if self.public_only:
            return [(self.user, list(PUBLIC))]
        if self.admin is None:
            return [(self.user, everything)]
        return [(self.user, everything if self.admin_on_both else [*PUBLIC, TENANT]), (self.admin, everything)]


class ListenError(Exception):
    """Raised when an endpoint cannot be bound."""

    error_code = "OPU615"


class Endpoint(grpc.GenericRpcHandler):  # type: ignore[misc]
    """gRPC server on one address. Its ``handler`` handles all calls, and may be replaced at any time."""

    def __init__(self, address: ListenAddress, services: Sequence[str], connections: int) -> None:
        """Create the server, with the limits for these services and for ``connections``."""
        self.services = tuple(services)
        self.health = Health([*services, HEALTH, REFLECTION])
        self.health_checks = Admission()  # by endpoint, so that those of users do not affect administrators
        self.handler: grpc.GenericRpcHandler | None = None
        self.server = _make_server(services, connections)
        self.server.add_generic_rpc_handlers([self])
        self._address = address

    def bind(self, credentials: ServerCredentials | None) -> ListenAddress:
        """Bind the address and return it. Raises ListenError."""
        return _open_port(self.server, self._address, credentials)

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Return the handler of one call. This runs in the only thread of gRPC."""
        return self.handler and self.handler.service(handler_call_details)


class Endpoints:
    """All endpoints of the controller. ``services.Services`` or ``standby.reject_calls`` sets their handlers."""

    def __init__(self, options: EndpointOptions) -> None:
        """Use the addresses and the credentials of ``options``. ``bind`` opens the ports."""
        self._options = options
        self._endpoints: list[Endpoint] = []
        self.meters = Calls(CONTROLLER, "vipu")
        self.admission = Admission()
        self.exchanges = Exchanges()
        self._stopping = threading.Event()
        self._maintenance = threading.Thread(target=self._maintain, name="calls", daemon=True)

    def __iter__(self) -> Iterator[Endpoint]:
        """Return the bound endpoints: that of users, then a separate one of administrators."""
        return iter(self._endpoints)

    def bind(self) -> list[ListenAddress]:
        """Bind the endpoints and return their addresses: user endpoint, then a separate admin endpoint.

        Raises ListenError when one cannot be bound, and then releases all of them.
        """
        served = self._options.served()
        try:
            connections = connection_limit(raise_file_limit()) // len(served)
            self._endpoints = [Endpoint(address, services, connections) for address, services in served]
            return [endpoint.bind(self._options.credentials) for endpoint in self._endpoints]
        except ListenError:
            self.stop(0)
            raise

    def start(self) -> None:
        """Start to accept connections. All endpoints need a handler."""
        self._maintenance.start()
        for endpoint in self._endpoints:
            endpoint.server.start()

    def guard(
        self,
        endpoint: Endpoint,
        handlers: Mapping[str, grpc.GenericRpcHandler],
        *,
        authenticator: Authenticator | None = None,
        unauthenticated: Iterable[str] = (),
        admin_only: Iterable[str] = (),
        confirm: Callable[[], None] | None = None,
    ) -> RequestGuard:
        """Return a handler of health checks and of ``handlers``, for an endpoint. All of them share its limits."""
        return RequestGuard(
            authenticator,
            {HEALTH: endpoint.health.handler(), **handlers},
            unauthenticated=[HEALTH, *unauthenticated],
            admin_only=admin_only,
            groups={HEALTH: Group.HEALTH, REFLECTION: Group.REFLECTION},
            admission=self.admission,
            own={Group.HEALTH: endpoint.health_checks},
            exchanges=self.exchanges,
            meters=self.meters,
            confirm=confirm,
        )

    def mark_healthy(self) -> None:
        """Report SERVING from now on, unless ``mark_unhealthy`` was called."""
        for endpoint in self._endpoints:
            endpoint.health.start()

    def mark_unhealthy(self) -> None:
        """Report NOT_SERVING from now on. Calls are still served."""
        for endpoint in self._endpoints:
            endpoint.health.stop()

    def stop(self, grace: float) -> None:
        """Reject new calls, wait ``grace`` seconds for running calls, then cancel the rest."""
        self.mark_unhealthy()
        for stopping in [endpoint.server.stop(grace) for endpoint in self._endpoints]:
            stopping.wait()
        self._stopping.set()
        for admission in (self.admission, *(endpoint.health_checks for endpoint in self._endpoints)):
            admission.shutdown()
        self._endpoints.clear()

    def _maintain(self) -> None:
        """Cancel late calls, and return the memory of ended ones, until the stop."""
        untrimmed = 0.0
        while not self._stopping.wait(_MAINTENANCE_SECONDS):
            self.exchanges.cancel_late()
            untrimmed += _MAINTENANCE_SECONDS
            if untrimmed >= _TRIM_SECONDS:
                untrimmed = 0.0
                memory.trim()


def _make_server(services: Sequence[str], connections: int) -> grpc.Server:
    """Return a server with the limits of an endpoint with these services."""
    message = MAX_ADMIN_MESSAGE if ADMIN in services else MAX_USER_MESSAGE
    options = (
        *_OPTIONS,
        ("grpc.max_receive_message_length", message),
        ("grpc.server_handshake_timeout_ms", _HANDSHAKE_SECONDS * 1000),
        ("grpc.max_allowed_incoming_connections", connections),
    )
    return grpc.server(Immediate(), options=options)  # every handler has a pool of its own


def _open_port(server: grpc.Server, address: ListenAddress, credentials: ServerCredentials | None) -> ListenAddress:
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
            f"Cannot listen on {address}: another program has that port, or this machine has no such address. "
            "Choose another port or address."
        )
    return ListenAddress(address.host, port)
