# SPDX-License-Identifier: GPL-3.0-or-later
"""The webhook server of a replica. All replicas serve, also those that do not lead."""

from __future__ import annotations

import asyncio
import ipaddress
from dataclasses import dataclass
from pathlib import Path

import structlog

from openipu.kubernetes.cluster.client import ApiError, Client
from openipu.kubernetes.domain.pods import PodOptions
from openipu.kubernetes.serving.servers import https
from openipu.kubernetes.tls.mounted import MountedCertificate
from openipu.kubernetes.tls.serving_certificate import ServingCertificate
from openipu.kubernetes.webhooks import app, registration
from openipu.kubernetes.webhooks.jobs import JobWebhooks
from openipu.kubernetes.webhooks.pods import PodWebhook
from openipu.kubernetes.webhooks.rotation import Names, Rotation

_log = structlog.get_logger("openipu.kubernetes.webhooks")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    """Settings of the webhook server. ``certificates``: folder of mounted files, None for the Secret of the operator.

    ``namespaces``: those with webhooks, empty for all. ``seconds``: between checks of the certificate.
    """

    host: str
    port: int
    namespace: str
    secret: str
    configuration: str
    service: str
    certificates: Path | None = None
    namespaces: frozenset[str] = frozenset()
    seconds: float = 30.0


class WebhookServer:
    """HTTPS server of the webhooks: ``config`` for the server, ``run`` for its certificate."""

    def __init__(self, client: Client, options: WebhookOptions, pods: PodOptions) -> None:
        serving = ServingCertificate()
        self._client = client
        self._seconds = options.seconds
        self._excluded = excluded = frozenset({registration.SYSTEM_NAMESPACE, options.namespace})
        served = app.create(
            JobWebhooks(client, pods, options.namespaces), PodWebhook(pods, options.namespaces, excluded)
        )
        self.config = https(served, options.host, options.port, serving.context)
        self._source: Rotation | MountedCertificate
        if options.certificates is not None:
            self._source = MountedCertificate(options.certificates, serving, options.seconds)
        else:
            names = Names(
                options.namespace, options.secret, options.configuration, _hosts(options), _address(options.host)
            )
            self._source = Rotation(client, names, serving, options.seconds)

    def unready(self) -> str:
        """Return why the API server cannot call the webhooks, empty if it can."""
        return "" if self._source.ready else "The webhooks have no certificate that the API server knows."

    async def run(self) -> None:
        """Keep the certificate valid until cancelled."""
        await asyncio.gather(self._label_namespaces(), self._source.run())

    async def _label_namespaces(self) -> None:
        while True:
            try:
                return await registration.label_namespaces(self._client, self._excluded)
            except ApiError as error:
                _log.warning("namespaces not labelled", error=str(error))
                await asyncio.sleep(self._seconds)


def _hosts(options: WebhookOptions) -> list[str]:
    """Return the names of the Service."""
    service = f"{options.service}.{options.namespace}"
    return [f"{service}.svc", f"{service}.svc.cluster.local", service]


def _address(host: str) -> str:
    """Return the address of the server if it is a certain one."""
    try:
        return "" if ipaddress.ip_address(host).is_unspecified else host
    except ValueError:
        return host
