# SPDX-License-Identifier: GPL-3.0-or-later
"""``gc-launcher pod``: the init container of plain pods with IPUs.

It waits until the operator has reserved a partition for the pod, resets the partition, and writes its IPUoF
configuration for the other containers.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import click
import structlog

from openipu.kubernetes import options
from openipu.kubernetes.domain import pod_injection
from openipu.process import log
from openipu.process.arguments import Command
from openipu.process.failures import ProgramError, program_error
from openipu.shared.atomic_files import write_private

_log = structlog.get_logger("openipu.kubernetes.launcher.pod_mode")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 5.0  # seconds between requests
_TIMEOUT = aiohttp.ClientTimeout(total=240, sock_connect=5)  # a reset waits until the partition is ACTIVE
_FINAL = frozenset({"PartitionFailed", "Forbidden"})  # reasons of the proxy that no later call changes


class Program(Command):
    """Command for launchers. With ``pod`` as the first argument, it is the command for plain pods."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Return the context of the chosen command."""
        if args[:1] == ["pod"]:
            return prepare_pod.make_context(f"{info_name} pod", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the chosen command."""
        return super().invoke(ctx) if ctx.command is self else ctx.command.invoke(ctx)


@click.command(cls=Command, context_settings={"show_default": True, "auto_envvar_prefix": pod_injection.VARIABLES})
@click.option("--ipus", required=True, type=click.IntRange(min=1), help="Number of IPUs, for the log.")
@click.option("--proxy", required=True, help="URL of the V-IPU proxy.")
@click.option(
    "--token",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="File with the service account token for the proxy.",
)
@click.option(
    "--file",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="File for the IPUoF configuration, which the other containers mount.",
)
@options.LOG_FORMAT
@options.LOG_LEVEL
def prepare_pod(ipus: int, proxy: str, token: Path, file: Path, log_format: log.LogFormat, log_level: str) -> None:
    """Wait for the IPUs of a plain pod, and write their configuration."""
    log.configure(log_format, log_level)
    try:
        asyncio.run(_prepare(ipus, proxy.rstrip("/"), token, file))
    except (ProgramError, OSError) as error:
        raise program_error(error) from None


async def _prepare(ipus: int, proxy: str, token: Path, file: Path) -> None:
    _log.info("waiting for IPUs", ipus=ipus)
    async with aiohttp.ClientSession(timeout=_TIMEOUT) as session:
        partition = await _request(session, "PUT", f"{proxy}/v1/self/partition", token)
        config = await _request(session, "GET", f"{proxy}/v1/self/ipuof", token)
    write_private(file, config["config"], 0o644)
    _log.info("partition is ready", partition=partition["id"], file=str(file))


async def _request(session: aiohttp.ClientSession, method: str, url: str, token: Path) -> Any:
    """Repeat a request until it succeeds, and return the answer. Raises ProgramError for a final rejection."""
    pause, reported = _FIRST_PAUSE, ""
    while True:
        try:
            headers = {"Authorization": f"Bearer {token.read_text(encoding='utf-8').strip()}"}
            async with session.request(method, url, headers=headers) as answer:
                found = await answer.json(content_type=None)
                if answer.ok:
                    return found
                reason, text = found.get("reason", ""), found.get("message", str(found))
        except (aiohttp.ClientError, TimeoutError, ValueError, AttributeError, OSError) as error:
            reason, text = "", f"The V-IPU proxy does not respond: {error or type(error).__name__}."
        if reason in _FINAL:
            raise ProgramError(text, "OPU902")
        if text != reported:
            _log.info("the IPUs are not ready", reason=text)
            reported = text
        await asyncio.sleep(pause)
        pause = min(1.5 * pause, _LONGEST_PAUSE)
