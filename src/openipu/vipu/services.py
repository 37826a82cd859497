# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's gRPC end-points: which services stand where, and within which bounds."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import grpc
from ansible_collections.openipu.pod.plugins.module_utils.vipu import wire
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin, virmgrpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from openipu.vipu.auth import Authenticator
from openipu.vipu.controller import Controller
from openipu.vipu.metrics.catalog import CONTROLLER
from openipu.vipu.metrics.meters import Calls
from openipu.vipu.ports import Lifecycle
from openipu.vipu.services_admin import AdminService, TenantService
from openipu.vipu.services_guard import Guard
from openipu.vipu.services_public import UserService, VersionService

MAX_MESSAGE = 16 << 20  # bytes
MAX_CALLS = 1024  # at once; more are RESOURCE_EXHAUSTED
# A call that changes something waits in its thread for the disk, together with others.
_THREADS = 128
_SLOW_THREADS = 128
_SIDE_THREADS = 4

_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    ("grpc.max_send_message_length", 4 * MAX_MESSAGE),
    ("grpc.max_metadata_size", 16 << 10),
    ("grpc.max_concurrent_streams", MAX_CALLS),
    # Two controllers on one end-point must be an error, not a lottery.
    ("grpc.so_reuseport", 0),
    # Notice clients that went away without a word, and let them ask the same of us.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
)

_VERSION, _USER = "virmgrpc.VersionService", "virmgrpc.UserService"
_TENANT, _ADMIN = "openipu.vipu.admin.v1.TenantService", "openipu.vipu.admin.v1.AdminService"
PUBLIC = (_VERSION, _USER)


@dataclass(frozen=True, slots=True)
class Listen:
    """Where to listen; port 0 takes a free one."""

    host: str
    port: int

    def __str__(self) -> str:
        """As gRPC wants it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """What is offered where, and to whom.

    With ``admin`` the user end-point has no AdminService, and the admin end-point has everything.
    ``public_only`` offers what Graphcore's API has, and nothing of ours.
    """

    user: Listen
    admin: Listen | None = None
    public_only: bool = False
    credentials: grpc.ServerCredentials | None = None
    authenticator: Authenticator | None = None
    version: str = ""
    max_retries: int = 3


class ListenError(Exception):
    """An end-point cannot be had; one sentence."""


class Endpoints:
    """All that clients can reach."""

    def __init__(self, controller: Controller, lifecycle: Lifecycle, options: EndpointOptions) -> None:
        """Nothing happens before ``bind``."""
        self._options = options
        self.meters = Calls(CONTROLLER, "vipu")
        self._servers: list[tuple[grpc.Server, health.HealthServicer]] = []
        self._slow = ThreadPoolExecutor(_SLOW_THREADS, "slow")
        self._side = ThreadPoolExecutor(_SIDE_THREADS, "side")
        user = UserService(controller, lifecycle, options.max_retries)
        self._handlers = {
            _VERSION: virmgrpc.handler("VersionService", VersionService(options.version)),
            # Its answer is encoded already.
            _USER: virmgrpc.handler("UserService", user, {"ListPartitions": bytes}),
            _TENANT: admin.handler("TenantService", TenantService(controller, lifecycle)),
            _ADMIN: admin.handler("AdminService", AdminService(controller, lifecycle, options.max_retries)),
        }

    def bind(self) -> list[Listen]:
        """Take the addresses: of the user end-point, and of the admin end-point when it is another.

        Raises ListenError, and then none is taken.
        """
        options = self._options
        wanted = [(options.user, list(self._handlers))]
        if options.public_only:
            wanted = [(options.user, list(PUBLIC))]
        elif options.admin is not None:
            wanted = [(options.user, [*PUBLIC, _TENANT]), (options.admin, list(self._handlers))]
        try:
            return [self._listen(where, services) for where, services in wanted]
        except ListenError:
            self.stop(0)
            raise

    def start(self) -> None:
        """Answer calls."""
        for server, _ in self._servers:
            server.start()

    def stop(self, grace: float) -> None:
        """Refuse new calls, wait ``grace`` seconds for those under way, and cut off the rest."""
        for _, side in self._servers:
            side.enter_graceful_shutdown()
        for stopping in [server.stop(grace) for server, _ in self._servers]:
            stopping.wait()
        self._servers.clear()
        for pool in (self._slow, self._side):
            pool.shutdown(wait=False, cancel_futures=True)

    def _listen(self, where: Listen, services: Sequence[str]) -> Listen:
        server = grpc.server(ThreadPoolExecutor(_THREADS, "call"), options=_OPTIONS, maximum_concurrent_rpcs=MAX_CALLS)
        guard = Guard(
            self._options.authenticator,
            {service: self._handlers[service] for service in services},
            without_user=[_VERSION],
            admin_only=[_ADMIN],
            slow=self._slow,
            meters=self.meters,
        )
        server.add_generic_rpc_handlers([guard])
        side = self._add_side_services(server, services)
        try:
            if self._options.credentials is None:
                port = server.add_insecure_port(str(where))
            else:
                port = server.add_secure_port(str(where), self._options.credentials)
        except RuntimeError:
            port = 0
        if not port:
            raise ListenError(
                f"Cannot listen on {where}: another program has that port, or this machine has no such address."
            )
        self._servers.append((server, side))
        return Listen(where.host, port)

    def _add_side_services(self, server: grpc.Server, services: Sequence[str]) -> health.HealthServicer:
        """Health and reflection; their streams last long, so they get threads of their own."""
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
