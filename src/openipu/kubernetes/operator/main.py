# SPDX-License-Identifier: GPL-3.0-or-later
"""Program ``ipu-operator``."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import click
import structlog

from openipu.kubernetes import options
from openipu.kubernetes.cluster.client import ApiError, open_client
from openipu.kubernetes.cluster.events import EventRecorder
from openipu.kubernetes.cluster.lease import Election, LeaseTimes
from openipu.kubernetes.domain import ssh_ports as port_range
from openipu.kubernetes.domain.pods import PodOptions
from openipu.kubernetes.operator import metrics, probes
from openipu.kubernetes.operator.children import CHECK_SECONDS
from openipu.kubernetes.operator.controller import COMPONENT, JobController
from openipu.kubernetes.operator.meters import Meters
from openipu.kubernetes.operator.metrics_certificate import MetricsCertificate
from openipu.kubernetes.operator.pod_controller import PodController
from openipu.kubernetes.operator.proxy_client import ProxyClient
from openipu.kubernetes.operator.replica import Replica
from openipu.kubernetes.serving.servers import http, https, serve
from openipu.kubernetes.webhooks import registration
from openipu.kubernetes.webhooks.server import WebhookOptions, WebhookServer
from openipu.process import log, memory
from openipu.process.arguments import Command
from openipu.process.failures import program_error

_log = structlog.get_logger("openipu.kubernetes.operator")

_MAX_SCRAPES = 100  # connections to the metrics


@click.command(cls=Command, context_settings={"show_default": True, "auto_envvar_prefix": "IPU_OPERATOR"})
@click.version_option(package_name="openipu", prog_name="ipu-operator", message="%(prog)s %(version)s")
@options.KUBECONFIG
@click.option("--namespace", required=True, help="Namespace of the lease.")
@click.option("--watch-namespaces", default="", help="Namespaces with jobs, separated by commas. The default is all.")
@click.option("--lease", default="ipu-operator", help="Name of the lease with which replicas elect their leader.")
@click.option(
    "--lease-seconds", default=15, type=click.IntRange(min=1), help="Seconds until another replica may take over."
)
@click.option("--identity", default="", help="Name of this replica in the lease. The default is the host name.")
@click.option("--proxy", default="http://ipu-operator-vipu-proxy", help="URL of the V-IPU proxy, also for launchers.")
@click.option(
    "--proxy-token",
    type=click.Path(dir_okay=False, path_type=Path),
    default="/run/ipu-operator/token",
    help="File with the service account token for the proxy.",
)
@click.option("--launcher-image", required=True, help="Image of the init container of launchers.")
@click.option("--launcher-pull-policy", default="IfNotPresent", help="Pull policy of this image.")
@click.option("--pull-secrets", default="", help="Secrets for images, separated by commas.")
@click.option("--host-network/--no-host-network", default=True, help="Whether pods of jobs use the network of hosts.")
@click.option(
    "--request-ipus/--no-request-ipus", default=False, help="Whether workers request IPUs as an extended resource."
)
@click.option(
    "--ssh-ports",
    default=str(port_range.DEFAULT_RANGE),
    help="Ports of the SSH servers of workers in the network of hosts.",
)
@click.option("--host", default="127.0.0.1", help="Address of the probes.")
@click.option("--health-port", default=8081, type=click.IntRange(0, 65535), help="Port of /healthz and /readyz.")
@click.option("--metrics-host", default="127.0.0.1", help="Address of the metrics.")
@click.option(
    "--metrics-port", default=8443, type=click.IntRange(0, 65535), help="Port of https://HOST:PORT/metrics. 0: off."
)
@click.option(
    "--metrics-certificates",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder with tls.crt and tls.key of the metrics. The default is a self-signed certificate.",
)
@click.option(
    "--watch-seconds", default=5.0, type=click.FloatRange(min=0.1), help="Seconds between readings of partitions."
)
@click.option(
    "--retry-seconds", default=5.0, type=click.FloatRange(min=0.1), help="Seconds between attempts to get IPUs."
)
@click.option(
    "--check-seconds",
    default=CHECK_SECONDS,
    type=click.FloatRange(min=0.1),
    help="Seconds between checks of the ConfigMaps and rights of a job.",
)
@click.option(
    "--back-off-scale", default=1.0, type=click.FloatRange(min=0), help="Factor of the pauses before restarts."
)
@click.option("--webhook-host", default="127.0.0.1", help="Address of the webhooks.")
@click.option("--webhook-port", default=9443, type=click.IntRange(0, 65535), help="Port of the webhooks, 0 for none.")
@click.option(
    "--webhook-secret",
    default="ipu-operator-admission",
    help="Secret with the certificate of the webhooks. The operator creates and renews it.",
)
@click.option(
    "--webhook-certificates",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder with tls.crt and tls.key of cert-manager. Omit to use the Secret of the operator.",
)
@click.option(
    "--webhook-configuration",
    default="ipu-operator",
    help="Name of the webhook configurations to which the operator writes its CA.",
)
@click.option("--webhook-service", default="ipu-operator-webhook-svc", help="Service of the webhooks.")
@click.option(
    "--webhook-namespaces",
    default="",
    help="Namespaces with webhooks, separated by commas. The default is those of --watch-namespaces.",
)
@click.option(
    "--webhook-seconds",
    default=30.0,
    type=click.FloatRange(min=0.1),
    help="Seconds between checks of the certificate, and until a new one is used.",
)
@options.LOG_FORMAT
@options.LOG_LEVEL
def main(**values: object) -> None:
    """Run IPUJobs."""
    log.configure(values["log_format"], values["log_level"])  # type: ignore[arg-type]
    try:
        asyncio.run(_serve(**values))  # type: ignore[arg-type]
    except (ApiError, ValueError, OSError) as error:
        raise program_error(error) from None


async def _serve(
    kubeconfig: str,
    namespace: str,
    watch_namespaces: str,
    lease: str,
    lease_seconds: int,
    identity: str,
    proxy: str,
    proxy_token: Path,
    launcher_image: str,
    launcher_pull_policy: str,
    pull_secrets: str,
    host_network: bool,
    request_ipus: bool,
    ssh_ports: str,
    host: str,
    health_port: int,
    metrics_host: str,
    metrics_port: int,
    metrics_certificates: Path | None,
    watch_seconds: float,
    retry_seconds: float,
    check_seconds: float,
    back_off_scale: float,
    webhook_host: str,
    webhook_port: int,
    webhook_secret: str,
    webhook_certificates: Path | None,
    webhook_configuration: str,
    webhook_service: str,
    webhook_namespaces: str,
    webhook_seconds: float,
    log_format: str,
    **_: object,
) -> None:
    pods = PodOptions(
        launcher_image,
        proxy,
        launcher_pull_policy=launcher_pull_policy,
        pull_secrets=_names(pull_secrets),
        host_network=host_network,
        ipu_resource=request_ipus,
        ssh_ports=port_range.parse(ssh_ports),
        log_format=log_format,
    )
    identity = identity or f"{socket.gethostname()}_{os.urandom(4).hex()}"
    meters = Meters()
    certificate = MetricsCertificate(metrics_certificates, socket.gethostname()) if metrics_port else None
    async with await open_client(kubeconfig, meters.count_api_request) as client:
        partitions = ProxyClient(proxy, proxy_token, meters.count_proxy_failure)
        replica = Replica(Election(client, namespace, lease, identity, LeaseTimes.of(lease_seconds)))

        async def lead() -> None:
            # New caches each time: what a former leader remembers may be outdated.
            leading = client.guarded(replica.election.check)
            proxied = partitions.guarded(replica.election.check)
            spaces = _names(watch_namespaces) or ("",)
            jobs = replica.controller = JobController(
                leading,
                proxied,
                pods,
                namespaces=spaces,
                back_off_scale=back_off_scale,
                watch_seconds=watch_seconds,
                retry_seconds=retry_seconds,
                check_seconds=check_seconds,
                meters=meters,
            )
            others = replica.pods = PodController(
                leading,
                proxied,
                jobs.jobs,
                EventRecorder(leading, COMPONENT),
                namespaces=spaces,
                excluded={namespace, registration.SYSTEM_NAMESPACE},
                watch_seconds=watch_seconds,
                retry_seconds=retry_seconds,
            )
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(jobs.run())
                    tasks.create_task(others.run())
            finally:
                replica.controller = replica.pods = None

        webhooks = WebhookServer(
            client,
            WebhookOptions(
                host=webhook_host,
                port=webhook_port,
                namespace=namespace,
                secret=webhook_secret,
                configuration=webhook_configuration,
                service=webhook_service,
                certificates=webhook_certificates,
                namespaces=frozenset(_names(webhook_namespaces) or _names(watch_namespaces)),
                seconds=webhook_seconds,
            ),
            pods,
        )
        ready = {"replica": replica.unready, **({"webhooks": webhooks.unready} if webhook_port else {})}
        health = probes.create({"replica": replica.stuck}, ready)
        servers = [http(health, host, health_port)]
        background = [replica.election.run(lead)]
        if certificate is not None:
            scrapes = metrics.create(metrics.registry(meters, replica), metrics.Access(client))
            servers.append(https(scrapes, metrics_host, metrics_port, certificate.context, _MAX_SCRAPES))
            background.append(certificate.run())
        if webhook_port:
            servers.append(webhooks.config)
            background.append(webhooks.run())
        memory.reduce_collections()
        _log.info("operator starts", identity=identity, namespaces=watch_namespaces or "all")
        try:
            await serve(servers, background)
        finally:
            await partitions.close()


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (each.strip() for each in text.split(","))))


if __name__ == "__main__":
    main(prog_name="ipu-operator")
