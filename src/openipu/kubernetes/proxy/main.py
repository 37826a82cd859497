# SPDX-License-Identifier: GPL-3.0-or-later
"""Program ``gc-proxy``."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Protocol

import click
import structlog

from openipu.kubernetes import options
from openipu.kubernetes.cluster.client import CONFIG_MAPS, NAMESPACES, ApiError, Client, open_client
from openipu.kubernetes.domain import scheduling
from openipu.kubernetes.domain.visibility import Policy
from openipu.kubernetes.proxy import app, extender
from openipu.kubernetes.proxy.accounts import Accounts
from openipu.kubernetes.proxy.advertisement import Advertisement, Withdrawal
from openipu.kubernetes.proxy.nodes import Nodes
from openipu.kubernetes.proxy.pool import Pool
from openipu.kubernetes.proxy.request_limits import RequestLimits
from openipu.kubernetes.proxy.reservations import Reservations
from openipu.kubernetes.proxy.survey import Survey
from openipu.kubernetes.proxy.sweep import Sweep
from openipu.kubernetes.proxy.tracker import Tracker, TrackerError
from openipu.kubernetes.serving.servers import http, serve
from openipu.process import log, memory
from openipu.process.arguments import Command
from openipu.process.failures import program_error

_log = structlog.get_logger("openipu.kubernetes.proxy")

_MIB = 1024 * 1024


@click.command(cls=Command, context_settings={"show_default": True, "auto_envvar_prefix": "GC_PROXY"})
@click.version_option(package_name="openipu", prog_name="gc-proxy", message="%(prog)s %(version)s")
@options.KUBECONFIG
@click.option("--namespace", required=True, help="Namespace of the tracker.")
@click.option("--operator-account", default="ipu-operator", help="Service account of the operator in this namespace.")
@click.option(
    "--controllers",
    type=click.Path(dir_okay=False, path_type=Path),
    default="/etc/controllers-config/controllers.yaml",
    help="File with the V-IPU controllers.",
)
@click.option(
    "--controllers-config-map",
    default="",
    help="ConfigMap of this file. Its changes are used within 10 s, those of the mounted file within 100 s.",
)
@click.option(
    "--credentials",
    type=click.Path(file_okay=False, path_type=Path),
    default="/etc/vipu-credentials",
    help="Folder with the credentials for the V-IPU controllers.",
)
@click.option("--cluster", default="", help="V-IPU cluster of new partitions. The default is any.")
@click.option("--tracker", default="ipu-partitions-tracker", help="ConfigMap with the records of partitions.")
@click.option("--host", default="127.0.0.1", help="Address of the REST API.")
@click.option("--port", default=8080, type=click.IntRange(0, 65535), help="Port of the REST API.")
@click.option(
    "--idle-timeout", default=60, type=click.IntRange(min=1), help="Seconds until idle connections are closed."
)
@click.option(
    "--read-timeout", default=30, type=click.IntRange(min=1), help="Seconds until a request must have arrived."
)
@click.option(
    "--write-timeout", default=300, type=click.IntRange(min=1), help="Seconds until a request must be answered."
)
@click.option(
    "--survey-seconds", default=10.0, type=click.FloatRange(min=0.1), help="Seconds between reads of the controllers."
)
@click.option(
    "--sweep-seconds",
    default=60.0,
    type=click.FloatRange(min=0.1),
    help="Seconds between searches for orphaned partitions.",
)
@click.option(
    "--advertise/--no-advertise", default=False, help="Whether nodes get the extended resource graphcore.ai/ipu."
)
@click.option("--advertise-on-control-plane", is_flag=True, help="Advertise on nodes of the control plane, too.")
@click.option(
    "--advertise-keep-seconds",
    default=600.0,
    type=click.FloatRange(min=0),
    help="Seconds for which the IPUs of a V-IPU controller that does not respond remain advertised.",
)
@click.option(
    "--scheduler-extender/--no-scheduler-extender",
    default=False,
    help=f"Whether kube-scheduler can filter nodes with {extender.PATH}.",
)
@click.option(
    "--extender-max-mib",
    default=extender.MAX_MIB,
    type=click.IntRange(1, 256),
    help=f"Largest request to {extender.PATH} in MiB. An extender without nodeCacheCapable needs more.",
)
@options.LOG_FORMAT
@options.LOG_LEVEL
def main(**values: object) -> None:
    """Reserve partitions at V-IPU controllers for the IPU operator."""
    log.configure(values["log_format"], values["log_level"])  # type: ignore[arg-type]
    try:
        asyncio.run(_serve(**values))  # type: ignore[arg-type]
    except (ApiError, TrackerError, ValueError, OSError) as error:
        raise program_error(error) from None


async def _serve(
    kubeconfig: str,
    namespace: str,
    operator_account: str,
    controllers: Path,
    controllers_config_map: str,
    credentials: Path,
    cluster: str,
    tracker: str,
    host: str,
    port: int,
    idle_timeout: int,
    read_timeout: int,
    write_timeout: int,
    survey_seconds: float,
    sweep_seconds: float,
    advertise: bool,
    advertise_on_control_plane: bool,
    advertise_keep_seconds: float,
    scheduler_extender: bool,
    extender_max_mib: int,
    **_: object,
) -> None:
    async with await open_client(kubeconfig) as client:

        async def fetch() -> str:
            found = await client.get(CONFIG_MAPS, namespace, controllers_config_map)
            return str(found.get("data", {}).get(controllers.name, ""))

        pool = Pool(controllers, credentials, cluster, fetch if controllers_config_map else None)
        records = Tracker(client, namespace, tracker)
        await records.load()
        reservations = Reservations(pool, records, await _cluster_id(client))
        sizes = scheduling.SIZES if scheduler_extender else ()
        survey = Survey(pool, records, survey_seconds, advertise_keep_seconds, sizes)
        sweep = Sweep(client, records, reservations, sweep_seconds)
        served = app.create(reservations, records, survey, Accounts(client), (namespace, operator_account))
        large = {extender.PATH: extender_max_mib * _MIB} if scheduler_extender else {}
        limited = RequestLimits(served, read_timeout, write_timeout, large)
        config = http(limited, host, port, read_seconds=read_timeout, idle_seconds=idle_timeout)
        nodes = Nodes(client)
        runners: list[Runner] = [pool, reservations, survey, sweep]
        if advertise or scheduler_extender:
            runners.append(nodes)
        if advertise:
            policy = Policy(namespace, control_plane=advertise_on_control_plane)
            advertiser = Advertisement(client, nodes.all, survey.usable, policy)
            for source in (nodes, survey):
                source.listen(advertiser.changed)
            runners.append(advertiser)
        else:
            runners.append(Withdrawal(client, namespace))
        if scheduler_extender:
            extender.add_route(served, survey.rooms, nodes.labels)
        memory.reduce_collections()
        _log.info("proxy starts", controllers=[each.controller.address for each in pool], host=host, port=port)
        try:
            await serve([config], [each.run() for each in runners])
        finally:
            pool.close()


class Runner(Protocol):
    """A background task."""

    async def run(self) -> None:
        """Run until cancelled."""


async def _cluster_id(client: Client) -> str:
    """Return the UID of namespace kube-system, which identifies a Kubernetes cluster by convention."""
    return str((await client.get(NAMESPACES, "", "kube-system"))["metadata"]["uid"])


if __name__ == "__main__":
    main(prog_name="gc-proxy")
