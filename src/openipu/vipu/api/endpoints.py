# SPDX-License-Identifier: GPL-3.0-or-later
"""The gRPC endpoints of the controller: services, limits and threads."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from openipu.shared.vipu import wire
from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.api.admin import AdminService
from openipu.vipu.api.auth import Authenticator
from openipu.vipu.api.guard import RequestGuard
from openipu.vipu.api.public import UserService, VersionService
from openipu.vipu.api.tenant import TenantService
from openipu.vipu.api.watch import Watches
from openipu.vipu.lifecycle.interface import Lifecycle
from openipu.vipu.metrics.catalog import CONTROLLER
from openipu.vipu.metrics.meters import Calls
from openipu.vipu.storage.writer import RecordWriter
from openipu.vipu.tls.load import ServerCredentials

MAX_MESSAGE = 16 << 20  # bytes
MAX_CALLS = 1024  # concurrent; more return RESOURCE_EXHAUSTED
# A write blocks its thread until the disk flush, which it shares with other writes.
_THREADS = 128
_SLOW_THREADS = 128
_SIDE_THREADS = 4

_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    ("grpc.max_send_message_length", 4 * MAX_MESSAGE),
    ("grpc.max_metadata_size", 16 << 10),
    ("grpc.max_concurrent_streams", MAX_CALLS),
    # Two controllers on one endpoint must be an error, not a random choice for each connection.
    ("grpc.so_reuseport", 0),
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

    With ``admin`` the user endpoint has no AdminService, and the admin endpoint has all services.
    ``public_only`` serves Graphcore's API only, without the services of this project.
    """

    user: ListenAddress
    admin: ListenAddress | None = None
    public_only: bool = False
    credentials: ServerCredentials | None = None
    authenticator: Authenticator | None = None
    version: str = ""
    max_retries: int = 3
    certs: Path | None = None


class ListenError(Exception):
    """Raised when an endpoint cannot be bound."""

    error_code = "OPU615"


class Endpoints:
    """All gRPC servers of the controller."""

    def __init__(self, controller: RecordWriter, lifecycle: Lifecycle, options: EndpointOptions) -> None:
        """Create the services. ``bind`` opens the ports."""
        self._options = options
        self.meters = Calls(CONTROLLER, "vipu")
        self._servers: list[tuple[grpc.Server, health.HealthServicer]] = []
        self._slow = ThreadPoolExecutor(_SLOW_THREADS, "slow")
        self._side = ThreadPoolExecutor(_SIDE_THREADS, "side")
        self._streams = ThreadPoolExecutor(_SIDE_THREADS, "streams")
        self.watches = Watches(controller)
        user = UserService(controller, lifecycle, options.max_retries)
        self._handlers = {
            _VERSION: virmgrpc.handler("VersionService", VersionService(options.version)),
            # Returns its reply already encoded.
            _USER: virmgrpc.handler("UserService", user, {"ListPartitions": bytes}),
            _TENANT: admin.handler("TenantService", TenantService(controller, lifecycle, self.watches)),
            _ADMIN: admin.handler(
                "AdminService",
                AdminService(controller, lifecycle, self.watches, options.max_retries, options.certs),
            ),
        }

    def bind(self) -> list[ListenAddress]:
        """Bind the endpoints and return their addresses: user endpoint, then a separate admin endpoint.

        Raises ListenError when one cannot be bound, and then releases all of them.
        """
        options = self._options
        servers = [(options.user, list(self._handlers))]
        if options.public_only:
            servers = [(options.user, list(PUBLIC))]
        elif options.admin is not None:
            servers = [(options.user, [*PUBLIC, _TENANT]), (options.admin, list(self._handlers))]
        try:
            return [self._listen(address, services) for address, services in servers]
        except ListenError:
            self.stop(0)
            raise

    def start(self) -> None:
        """Start to serve calls."""
        self.watches.start()
        for server, _ in self._servers:
            server.start()

    def mark_unhealthy(self) -> None:
        """Report NOT_SERVING from now on. Calls are still served."""
        for _, side in self._servers:
            side.enter_graceful_shutdown()

    def stop(self, grace: float) -> None:
        """Reject new calls, wait ``grace`` seconds for running calls, then cancel the rest."""
        for _, side in self._servers:
            side.enter_graceful_shutdown()
        self.watches.stop()
        for stopping in [server.stop(grace) for server, _ in self._servers]:
            stopping.wait()
        self._servers.clear()
        for pool in (self._slow, self._side, self._streams):
            pool.shutdown(wait=False, cancel_futures=True)

    def _listen(self, address: ListenAddress, services: Sequence[str]) -> ListenAddress:
        server = grpc.server(ThreadPoolExecutor(_THREADS, "call"), options=_OPTIONS, maximum_concurrent_rpcs=MAX_CALLS)
        guard = RequestGuard(
            self._options.authenticator,
            {service: self._handlers[service] for service in services},
            unauthenticated=[_VERSION],
            admin_only=[_ADMIN],
            slow=self._slow,
            streams=self._streams,
            meters=self.meters,
        )
        server.add_generic_rpc_handlers([guard])
        side = self._add_side_services(server, services)
        try:
            if self._options.credentials is None:
                port = server.add_insecure_port(str(address))
            else:
                port = server.add_secure_port(str(address), self._options.credentials())
        except RuntimeError:
            port = 0
        if not port:
            raise ListenError(
                f"Cannot listen on {address}: another program has that port, or this machine has no such address."
            )
        self._servers.append((server, side))
        return ListenAddress(address.host, port)

    def _add_side_services(self, server: grpc.Server, services: Sequence[str]) -> health.HealthServicer:
        """Add health and reflection. Their streams last long, so they run in separate threads."""
        side = health.HealthServicer(experimental_non_blocking=True, experimental_thread_pool=self._side)
        health_pb2_grpc.add_HealthServicer_to_server(side, server)
        for name in ("", *services):
            side.set(name, health_pb2.HealthCheckResponse.SERVING)
        names = [*services, health.SERVICE_NAME, reflection.SERVICE_NAME]
        pool = self._side

        class Reflection(reflection.ReflectionServicer):  # type: ignore[misc]
            def ServerReflectionInfo(self, requests: Any, context: Any) -> Any:
                return super().ServerReflectionInfo(requests, context)

            ServerReflectionInfo.experimental_thread_pool = pool  # type: ignore[attr-defined]

        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(Reflection(names, wire.pool()), server)
        return side
