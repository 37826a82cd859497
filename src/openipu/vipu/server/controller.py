# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole controller: its settings, and the parts that it connects."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path

import structlog

from openipu.process import memory
from openipu.shared.garbage import without_collections
from openipu.shared.vipu.client import ACCESS_KEY_METADATA, USER_ID_METADATA
from openipu.vipu.api.addresses import ListenAddress
from openipu.vipu.api.auth import Authenticator
from openipu.vipu.api.endpoints import EndpointOptions, Endpoints
from openipu.vipu.api.services import Services
from openipu.vipu.domain.model import Kind
from openipu.vipu.lifecycle import service
from openipu.vipu.lifecycle.interface import Lifecycle, LifecycleOptions
from openipu.vipu.metrics import exporter
from openipu.vipu.metrics.address import MetricsAddress
from openipu.vipu.server import certificates
from openipu.vipu.server.metrics import ControllerMetrics
from openipu.vipu.server.replica_metrics import ReplicaMetrics
from openipu.vipu.storage.interface import Records, RecordStore
from openipu.vipu.storage.store import Store
from openipu.vipu.storage.writer import RecordWriter
from openipu.vipu.tls import load

STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT})
STOP_SECONDS = 5.0  # for running calls when the server stops

_log = structlog.get_logger("vipu-server")


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a controller. It is secure when it has ``credentials``."""

    database: Path
    user: ListenAddress
    admin: ListenAddress | None = None
    admin_on_both: bool = False
    public_only: bool = False
    credentials: load.ServerCredentials | None = None
    certs: Path | None = None
    shared_certificates: bool = False
    default_user_id: str = ""
    user_id_metadata: str = USER_ID_METADATA
    access_key_metadata: str = ACCESS_KEY_METADATA
    lifecycle: LifecycleOptions = field(default_factory=LifecycleOptions)
    metrics: MetricsAddress | None = None

    def endpoints(self, confirm: Callable[[], None] | None = None) -> EndpointOptions:
        """Return the options of the endpoints, without an authenticator. ``confirm``: see there."""
        return EndpointOptions(
            user=self.user,
            admin=self.admin,
            admin_on_both=self.admin_on_both,
            public_only=self.public_only,
            credentials=self.credentials,
            version=metadata.version("openipu"),
            max_retries=self.lifecycle.max_auto_reset_retries,
            certs=self.certs,
            shared_certificates=self.shared_certificates,
            confirm=confirm,
        )


class Server:
    """A whole controller in this process."""

    def __init__(
        self,
        settings: Settings,
        make_lifecycle: Callable[[Records, LifecycleOptions], Lifecycle] = service.LifecycleService,
        store: RecordStore | None = None,
        confirm: Callable[[], None] | None = None,
        metrics: exporter.Exporter | None = None,
        endpoints: Endpoints | None = None,
    ) -> None:
        """Read the records. Raises StoreError.

        ``make_lifecycle``: factory of the partition life. ``store``: another one than the database. ``confirm``
        raises an error when records that were read may be outdated. ``metrics`` and ``endpoints``: those that accept
        connections already, on the addresses in ``settings``.
        """
        with without_collections():
            self.controller = RecordWriter(store or Store(settings.database))
        self.lifecycle = make_lifecycle(self.controller, settings.lifecycle)
        authenticator = None
        if settings.credentials is not None:
            authenticator = Authenticator(
                lambda: self.controller.state,
                default_user_id=settings.default_user_id,
                user_id_metadata=settings.user_id_metadata,
                access_key_metadata=settings.access_key_metadata,
            )
        options = replace(settings.endpoints(confirm), authenticator=authenticator)
        self._services = Services(self.controller, self.lifecycle, options)
        self._endpoints = endpoints or Endpoints(options)
        self._bound = None if endpoints is None else [address for address, _ in options.served()]
        self.controller.on_loss(self._endpoints.mark_unhealthy)
        self.exporter = metrics
        self._serves_metrics = metrics is not None
        if settings.metrics is not None and metrics is None:
            self.exporter = exporter.Exporter(settings.metrics, [ReplicaMetrics()])
        self._database = None if store else settings.database

    def start(self) -> list[ListenAddress]:
        """Start to serve. Return the address of the user endpoint, then that of a separate admin endpoint.

        Raises ListenError or OSError with a message. After any error, all parts are stopped.
        """
        try:
            self.controller.start()
            bound = self._bound or self._endpoints.bind()
            if self.exporter is not None and not self._serves_metrics:
                self.exporter.bind()
            self.lifecycle.start()
            self._services.start(self._endpoints, bound)
            if self._bound is None:
                self._endpoints.start()
            self._serve_metrics()
        except BaseException:
            self.stop(0)
            raise
        return bound

    def _serve_metrics(self) -> None:
        """Add the metrics of a controller that serves to the exporter, if there is one."""
        if self.exporter is None:
            return
        found = ControllerMetrics(self.controller, self.lifecycle, self._database)
        counted = [self._endpoints.meters, self._services.watches, self.controller.meters, *self.lifecycle.meters]
        self.exporter.add([found, *counted])
        if not self._serves_metrics:
            self.exporter.start()

    def stop(self, grace: float = STOP_SECONDS) -> None:
        """Reject new calls, wait up to ``grace`` seconds for running ones, and close the database."""
        self._endpoints.mark_unhealthy()
        self._services.stop()
        self._endpoints.stop(grace)
        if self.exporter is not None:
            self.exporter.stop()
        self.lifecycle.stop()
        self.controller.stop()


def addresses_text(bound: list[ListenAddress]) -> str:
    """Return the addresses for the line that scripts wait for."""
    return f"{bound[0]}, for administrators on {bound[1]}" if len(bound) > 1 else f"{bound[0]}"


def announce(server: Server, settings: Settings) -> None:
    """Log what the controller serves, after a successful start, so that an error of the start stays one line."""
    memory.reduce_collections()
    if settings.credentials is None:
        _log.warning("not secure: every client that reaches this controller has all rights; see --secure")
    else:
        certificates.warn_about_users(server.controller.state.users.values(), shared=settings.shared_certificates)
    _log.info(
        "database verified",
        deployment=server.controller.deployment.id,
        epoch=server.controller.deployment.epoch,
        records={f"{kind}s": len(server.controller.state.table(kind)) for kind in Kind},
    )
    if server.exporter is not None:
        _log.info("serving metrics", url=server.exporter.listen.url)
