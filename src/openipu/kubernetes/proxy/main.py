# SPDX-License-Identifier: GPL-3.0-or-later
"""Program ``gc-proxy``."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click
import structlog
import uvicorn

from openipu.kubernetes import options
from openipu.kubernetes.cluster.client import NAMESPACES, ApiError, Client, open_client
from openipu.kubernetes.proxy import app
from openipu.kubernetes.proxy.accounts import Accounts
from openipu.kubernetes.proxy.pool import Pool
from openipu.kubernetes.proxy.reservations import Reservations
from openipu.kubernetes.proxy.survey import Survey
from openipu.kubernetes.proxy.sweep import Sweep
from openipu.kubernetes.proxy.tracker import Tracker, TrackerError
from openipu.kubernetes.serving import serve
from openipu.process import log
from openipu.process.failures import program_error

_log = structlog.get_logger("openipu.kubernetes.proxy")


@click.command(context_settings={"show_default": True, "auto_envvar_prefix": "GC_PROXY"})
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
    "--survey-seconds", default=10.0, type=click.FloatRange(min=0.1), help="Seconds between rounds of reading states."
)
@click.option(
    "--sweep-seconds", default=60.0, type=click.FloatRange(min=0.1), help="Seconds between searches for orphans."
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
    credentials: Path,
    cluster: str,
    tracker: str,
    host: str,
    port: int,
    idle_timeout: int,
    survey_seconds: float,
    sweep_seconds: float,
    **_: object,
) -> None:
    pool = Pool(controllers, credentials, cluster)
    async with await open_client(kubeconfig) as client:
        records = Tracker(client, namespace, tracker)
        await records.load()
        reservations = Reservations(pool, records, await _cluster_id(client))
        survey = Survey(pool, records, survey_seconds)
        sweep = Sweep(client, records, reservations, sweep_seconds)
        served = app.create(reservations, records, survey, Accounts(client), (namespace, operator_account))
        config = uvicorn.Config(
            served, host, port, log_config=None, access_log=False, timeout_keep_alive=idle_timeout, lifespan="off"
        )
        _log.info("proxy starts", controllers=[each.controller.address for each in pool], host=host, port=port)
        try:
            await serve([config], [each.run() for each in (pool, reservations, survey, sweep)])
        finally:
            pool.close()


async def _cluster_id(client: Client) -> str:
    """Return the UID of namespace kube-system, which identifies a Kubernetes cluster by convention."""
    return str((await client.get(NAMESPACES, "", "kube-system"))["metadata"]["uid"])


if __name__ == "__main__":
    main(prog_name="gc-proxy")
