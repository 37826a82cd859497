# SPDX-License-Identifier: GPL-3.0-or-later
"""``virm-agent``: the agent of one IPU-Machine."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

import openipu.shared.vipu.quiet_grpc  # noqa: F401  before all modules that import gRPC
from openipu.process import log
from openipu.process.arguments import Command
from openipu.process.failures import ProgramError, program_error
from openipu.process.plain_structlog import structlog
from openipu.process.signals import stop_signal
from openipu.shared.vipu.addresses import is_loopback
from openipu.shared.vipu.ports import AGENT_PORT, DISCOVERY_PORT
from openipu.vipu.agent import hardware as kinds
from openipu.vipu.agent.ownership import Ownership, OwnershipError
from openipu.vipu.agent.presence import INTERVAL, Announcer
from openipu.vipu.agent.server import CONTROLLERS, AgentServer
from openipu.vipu.agent_api.multicast import DISCOVERY_GROUP
from openipu.vipu.metrics.options import metrics_address, metrics_options
from openipu.vipu.tls.load import TlsError, mutual

_STOP_SECONDS = 1.0

_log: structlog.stdlib.BoundLogger = structlog.get_logger("virm-agent")


def _check_exposure(host: str, secure: bool, insecure_network: bool) -> None:
    """Reject addresses other than loopback without TLS, which protects IPUs from other clients."""
    if not (secure or insecure_network or is_loopback(host)):
        raise ProgramError(
            f"Cannot listen on {host}: without TLS only loopback addresses are allowed. Use --tls-certificate, "
            "--tls-key and --tls-ca, or --insecure-network if only the controller can reach that network."
        )


def _values(options: tuple[str, ...]) -> dict[str, str]:
    values = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not (name and equals):
            raise ProgramError(f"Cannot read the hardware option {option!r}: use the form NAME=VALUE.")
        values[name] = value
    return values


@click.command(
    cls=Command, context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "VIRM_AGENT"}
)
@click.version_option(package_name="openipu", prog_name="virm-agent", message="%(prog)s %(version)s")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=AGENT_PORT, show_default=True, type=click.IntRange(0, 65535), help="Port to listen on.")
@click.option("--tls-certificate", type=click.Path(path_type=Path), help="Certificate of this agent, PEM.")
@click.option("--tls-key", type=click.Path(path_type=Path), help="Private key of --tls-certificate, PEM.")
@click.option("--tls-ca", type=click.Path(path_type=Path), help="CA certificate of the controller, PEM.")
@click.option(
    "--tls-controller",
    "controllers",
    multiple=True,
    default=CONTROLLERS,
    show_default=True,
    help="Name in the certificate of a controller: common name, DNS name or address. Certificates without such a "
    "name are rejected. May be repeated.",
)
@click.option("--insecure-network", is_flag=True, help="Allow addresses other than loopback without TLS.")
@click.option("--hardware", "kind", default="twin", show_default=True, help="Kind of hardware of this machine.")
@click.option(
    "-o", "--option", "options", multiple=True, metavar="NAME=VALUE", help="Option of the hardware. May be repeated."
)
@click.option(
    "--state-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory that stores the owner of this agent. Omit to keep the owner until the process ends.",
)
@click.option(
    "--announce-interface", "interfaces", multiple=True, help="Interface for presence messages. May be repeated."
)
@click.option(
    "--announce-interval",
    default=INTERVAL,
    show_default=True,
    type=click.FloatRange(0.1, 3600),
    help="Seconds between presence messages.",
)
@click.option(
    "--announce-group", default=DISCOVERY_GROUP, show_default=True, help="Multicast group for presence messages."
)
@click.option(
    "--announce-port",
    default=DISCOVERY_PORT,
    show_default=True,
    type=click.IntRange(1, 65535),
    help="UDP port for presence messages.",
)
@metrics_options
def main(
    host: str,
    port: int,
    tls_certificate: Path | None,
    tls_key: Path | None,
    tls_ca: Path | None,
    controllers: tuple[str, ...],
    insecure_network: bool,
    kind: str,
    options: tuple[str, ...],
    state_dir: Path | None,
    interfaces: tuple[str, ...],
    announce_interval: float,
    announce_group: str,
    announce_port: int,
    **metrics: Any,
) -> None:
    """Run the agent of one IPU-Machine until SIGTERM or SIGINT."""
    log.configure("text", "info")
    files = (tls_certificate, tls_key, tls_ca)
    if any(files) and not all(files):
        raise ProgramError(
            "Cannot start the agent: --tls-certificate, --tls-key and --tls-ca belong together. Set all three or none."
        )
    _check_exposure(host, all(files), insecure_network)

    async def run() -> None:
        hardware = kinds.load(kind)(kinds.Options(host, port, _values(options)))
        credentials = None
        if tls_certificate and tls_key and tls_ca:
            credentials = mutual(tls_ca, tls_certificate, tls_key)
        server = AgentServer(
            hardware, host, port, credentials, metrics_address(**metrics), controllers, Ownership(state_dir)
        )
        await server.start()
        announcer = Announcer(
            host,
            lambda: server.port,
            lambda: hardware.boot_id,
            interfaces,
            group=announce_group,
            group_port=announce_port,
            interval=announce_interval,
        )
        try:
            announcer.start()
            _log.info("listening", host=host, port=server.port, tls=credentials is not None, hardware=kind)
            if server.metrics is not None:
                _log.info("serving metrics", url=server.metrics.url)
            await stop_signal()
        finally:
            await announcer.stop()
            await server.stop(_STOP_SECONDS)

    try:
        asyncio.run(run())
    except (OSError, LookupError, ValueError, TlsError, OwnershipError) as error:
        raise program_error(error) from None


if __name__ == "__main__":
    main()
