# SPDX-License-Identifier: GPL-3.0-or-later
"""Program ``gc-launcher``: the init container of launchers.

It waits until all workers are ready, and requests a reset of the partition from the V-IPU proxy. It delivers what the
launcher needs to reach the workers: kubectl, or the files of ssh.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

import aiohttp
import click
import structlog

from openipu.kubernetes import options
from openipu.kubernetes.cluster.client import PODS, ApiError, Client, Object, open_client
from openipu.kubernetes.domain import names, progress, reserved
from openipu.kubernetes.domain.names import Name
from openipu.kubernetes.launcher import pod_mode, ssh_files
from openipu.process import log
from openipu.process.failures import ProgramError, program_error

_log = structlog.get_logger("openipu.kubernetes.launcher")

_TERMINATION_LOG = Path("/dev/termination-log")  # kubelet shows it as the message of the container
_RETRY_SECONDS = 2.0
_FINAL = frozenset({"PartitionFailed", "Forbidden", "NotFound"})  # reasons of the proxy that no later call changes


@click.command(cls=pod_mode.Program, context_settings={"show_default": True, "auto_envvar_prefix": "IPUJOB"})
@click.version_option(package_name="openipu", prog_name="gc-launcher", message="%(prog)s %(version)s")
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
    help="Folder for kubectl or the files of ssh, which the launcher mounts.",
)
@click.option(
    "--kubectl",
    type=click.Path(dir_okay=False, path_type=Path),
    default="/usr/local/bin/kubectl",
    help="Program kubectl.",
)
@click.option(
    "--ssh-keys",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder with the SSH keys of the job. Omit for jobs that use kubectl.",
)
@options.LOG_FORMAT
@options.LOG_LEVEL
def main(**values: object) -> None:
    """Prepare a launcher."""
    log.configure(values["log_format"], values["log_level"])  # type: ignore[arg-type]
    structlog.contextvars.bind_contextvars(job=f"{values['namespace']}/{values['name']}")
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
    ssh_keys: Path | None,
    **_: object,
) -> None:
    tools.mkdir(parents=True, exist_ok=True)
    if ssh_keys is None:
        shutil.copy(kubectl, tools / "kubectl")
    async with await open_client(kubeconfig) as client:
        pods = await _wait_for_workers(client, (namespace, name), workers.split(), addressed=ssh_keys is not None)
    _log.info("all workers are ready")
    if ssh_keys is not None:
        ssh_files.deliver(ssh_keys, tools, pods)
    await _reset_partition(f"{proxy.rstrip('/')}/v1/self/partition", token)
    _log.info("partition is ready", partition=partition)


async def _wait_for_workers(client: Client, job: Name, workers: Sequence[str], *, addressed: bool) -> list[Object]:
    """Return the workers when all are ready, and have an address if ``addressed``.

    The operator ends the launcher if a worker fails.
    """
    namespace = job[0]
    selector = f"{reserved.JOB_LABEL}={names.label(job[1])},{reserved.ROLE_LABEL}={reserved.WORKER_ROLE}"
    while True:
        try:
            found, revision = await client.list(PODS, namespace, selector)
            ready = {each["metadata"]["name"]: each for each in found if _is_usable(each, addressed)}
            if ready.keys() >= set(workers):
                return [ready[each] for each in workers]
            _log.info("waiting for workers", workers=[each for each in workers if each not in ready])
            async for kind, pod in client.watch(PODS, namespace, revision, selector):
                if kind == "BOOKMARK":
                    continue
                if kind != "DELETED" and _is_usable(pod, addressed):
                    ready[pod["metadata"]["name"]] = pod
                else:
                    ready.pop(pod["metadata"]["name"], None)
                if ready.keys() >= set(workers):
                    return [ready[each] for each in workers]
        except ApiError as error:
            _log.warning("cannot watch the workers", error=str(error))
            await asyncio.sleep(_RETRY_SECONDS)


def _is_usable(worker: Object, addressed: bool) -> bool:
    """Return whether a worker is ready. A worker of an earlier attempt is being deleted."""
    has_address = bool((worker.get("status") or {}).get("podIP"))
    return progress.is_ready(worker) and not worker["metadata"].get("deletionTimestamp") and has_address >= addressed


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
