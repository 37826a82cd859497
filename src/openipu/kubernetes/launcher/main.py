# SPDX-License-Identifier: GPL-3.0-or-later
"""Program ``gc-launcher``: the init container of launchers.

It copies kubectl for the launcher, waits until all workers are ready, and requests a reset of the partition from the
V-IPU proxy.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import aiohttp
import click
import structlog

from openipu.kubernetes import options
from openipu.kubernetes.cluster.client import PODS, ApiError, Client, open_client
from openipu.kubernetes.domain import progress, reserved
from openipu.kubernetes.launcher import pod_mode
from openipu.process import log
from openipu.process.failures import ProgramError, program_error

_log = structlog.get_logger("openipu.kubernetes.launcher")

_TERMINATION_LOG = Path("/dev/termination-log")  # kubelet shows it as the message of the container
_RETRY_SECONDS = 2.0
_FINAL = frozenset({"PartitionFailed", "Forbidden", "NotFound"})  # reasons of the proxy that no later call changes


@click.command(cls=pod_mode.Program, context_settings={"show_default": True, "auto_envvar_prefix": "IPUJOB"})
@options.KUBECONFIG
@click.option("--namespace", required=True, help="Namespace of the job.")
@click.option("--name", required=True, help="Name of the job.")
@click.option("--workers", required=True, help="Names of the workers, separated by blanks.")
@click.option("--partition", default="", help="Id of the partition, for the log.")
@click.option("--proxy", required=True, help="URL of the V-IPU proxy.")
@click.option(
    "--token",
    type=click.Path(dir_okay=False, path_type=Path),
    default=f"{reserved.TOKEN_PATH}/token",
    help="File with the service account token for the proxy.",
)
@click.option(
    "--tools",
    type=click.Path(file_okay=False, path_type=Path),
    default=reserved.TOOLS_PATH,
    help="Folder for kubectl, which the launcher mounts.",
)
@click.option(
    "--kubectl",
    type=click.Path(dir_okay=False, path_type=Path),
    default="/usr/local/bin/kubectl",
    help="Program kubectl.",
)
def main(**values: object) -> None:
    """Prepare a launcher."""
    log.configure("text", "info")
    try:
        asyncio.run(_prepare(**values))  # type: ignore[arg-type]
    except (ApiError, ProgramError, OSError) as error:
        if _TERMINATION_LOG.exists():
            _TERMINATION_LOG.write_text(str(error))
        raise program_error(error) from None


async def _prepare(
    kubeconfig: str,
    namespace: str,
    name: str,
    workers: str,
    partition: str,
    proxy: str,
    token: Path,
    tools: Path,
    kubectl: Path,
) -> None:
    tools.mkdir(parents=True, exist_ok=True)
    shutil.copy(kubectl, tools / "kubectl")
    async with await open_client(kubeconfig) as client:
        await _wait_for_workers(client, namespace, set(workers.split()))
    _log.info("all workers are ready", job=f"{namespace}/{name}")
    await _reset_partition(f"{proxy.rstrip('/')}/v1/self/partition", token)
    _log.info("partition is ready", partition=partition)


async def _wait_for_workers(client: Client, namespace: str, workers: set[str]) -> None:
    """Return when all workers are ready. The operator ends the launcher if a worker fails."""
    selector = f"{reserved.ROLE_LABEL}={reserved.WORKER_ROLE}"
    while True:
        try:
            found, revision = await client.list(PODS, namespace, selector)
            ready = {each["metadata"]["name"] for each in found if progress.is_ready(each)}
            waiting = workers - ready
            if not waiting:
                return
            _log.info("waiting for workers", workers=sorted(waiting))
            async for kind, pod in client.watch(PODS, namespace, revision, selector):
                if kind == "BOOKMARK":
                    continue
                change = waiting.discard if kind != "DELETED" and progress.is_ready(pod) else waiting.add
                if pod["metadata"]["name"] in workers:
                    change(pod["metadata"]["name"])
                if not waiting:
                    return
        except ApiError as error:
            _log.warning("cannot watch the workers", error=str(error))
            await asyncio.sleep(_RETRY_SECONDS)


async def _reset_partition(url: str, token: Path) -> None:
    """Request a reset of the partition from the proxy. Raises ProgramError for a final rejection."""
    while True:
        try:
            headers = {"Authorization": f"Bearer {token.read_text(encoding='utf-8').strip()}"}
            async with aiohttp.ClientSession() as session, session.put(url, headers=headers) as answer:
                if answer.ok:
                    return
                failure = await answer.json(content_type=None)
                reason, text = failure.get("reason", ""), failure.get("message", str(failure))
        except (aiohttp.ClientError, TimeoutError, ValueError, OSError) as error:
            reason, text = "", str(error) or type(error).__name__
        if reason in _FINAL:
            raise ProgramError(text, "OPU902")
        _log.warning("partition is not ready", error=text)
        await asyncio.sleep(_RETRY_SECONDS)


if __name__ == "__main__":
    main(prog_name="gc-launcher")
