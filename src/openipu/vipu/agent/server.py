# SPDX-License-Identifier: GPL-3.0-or-later
"""The gRPC server of an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import grpc

from openipu.process.failures import EndpointError
from openipu.process.limits import connection_limit, raise_file_limit
from openipu.vipu.agent.guard import AgentGuard
from openipu.vipu.agent.hardware import Hardware
from openipu.vipu.agent.metrics import MachineMetrics
from openipu.vipu.agent.ownership import Ownership
from openipu.vipu.agent.service import AgentService
from openipu.vipu.agent_api.contract import agent
from openipu.vipu.metrics import exporter
from openipu.vipu.metrics.address import MetricsAddress
from openipu.vipu.tls.issue import common_name
from openipu.vipu.tls.load import CONTROLLER, ServerCredentials

# Two agents on one endpoint must be an error, not a random choice for each connection. Requests are small.
# Controllers may send keepalive pings on idle connections every few seconds.
_OPTIONS = (
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", 1 << 20),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    # Probes of the bandwidth would enlarge the buffers of requests that are not read yet.
    ("grpc.http2.bdp_probe", 0),
)
_HANDSHAKE_SECONDS = 10  # TLS handshake and HTTP/2 settings

# Names in the certificates of controllers.
CONTROLLERS = (common_name(CONTROLLER),)


class AgentServer:
    """gRPC server of one agent."""

    def __init__(
        self,
        hardware: Hardware,
        host: str,
        port: int,
        credentials: ServerCredentials | None = None,
        metrics: MetricsAddress | None = None,
        controllers: Iterable[str] = CONTROLLERS,
        ownership: Ownership | None = None,
    ) -> None:
        """Port 0 selects a free port. ``port`` and ``metrics`` hold the actual ports after the start.

        With ``credentials``, ``controllers`` are the accepted names in certificates of clients.
        Without ``ownership``, this object stores the owner across its restarts.
        """
        self.host = host
        self.port = port
        self._hardware = hardware
        self.metrics = metrics
        self._credentials = credentials
        self._controllers = frozenset(controllers)
        self._ownership = ownership or Ownership()
        self._server: grpc.aio.Server | None = None
        self._exporter: exporter.Exporter | None = None

    @property
    def running(self) -> bool:
        """Return whether the server listens."""
        return self._server is not None

    async def start(self) -> None:
        """Start to listen. Raises EndpointError with a message for users."""
        options = (
            *_OPTIONS,
            ("grpc.server_handshake_timeout_ms", _HANDSHAKE_SECONDS * 1000),
            ("grpc.max_allowed_incoming_connections", connection_limit(raise_file_limit())),
        )
        server = grpc.aio.server(options=options)
        service = AgentService(self._hardware, self._ownership)
        names = self._controllers if self._credentials is not None else None
        guard = AgentGuard(agent.handler("AgentService", service), self._ownership, names)
        server.add_generic_rpc_handlers([guard])
        address = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
        try:
            if self._credentials is None:
                bound = server.add_insecure_port(address)
            else:
                bound = server.add_secure_port(address, self._credentials())
        except RuntimeError:
            bound = 0
        if not bound:
            raise EndpointError(
                f"Cannot listen on {address}: another program has that port, or this machine has no such address. "
                "Choose another port or address."
            )
        if self.metrics is not None:
            try:
                self._serve_metrics(service, guard, self.metrics)
            except OSError:
                await server.stop(None)
                raise
        self.port = bound
        await server.start()
        self._server = server

    def _serve_metrics(self, service: AgentService, guard: AgentGuard, listen: MetricsAddress) -> None:
        loop = asyncio.get_running_loop()
        machine = MachineMetrics(self._hardware, loop, lambda: service.watchers)
        self._exporter = exporter.Exporter(listen, [machine, service.meters, guard.meters])
        self.metrics = self._exporter.bind()
        service.exporter = self.metrics.url
        self._exporter.start_in(loop)

    async def stop(self, grace: float | None = None) -> None:
        """Close all connections, after ``grace`` seconds for running calls (None: at once)."""
        if self._exporter is not None:
            self._exporter.stop()
        server, self._server = self._server, None
        if server is not None:
            await server.stop(grace)
