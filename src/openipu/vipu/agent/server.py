# SPDX-License-Identifier: GPL-3.0-or-later
"""``virm-agent``: the agent of one IPU-Machine."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
from pathlib import Path
from typing import Any

import click
import grpc
import structlog

from openipu.vipu import tls
from openipu.vipu.agent import hardware as kinds
from openipu.vipu.agent.contract import agent
from openipu.vipu.agent.guard import Guard
from openipu.vipu.agent.hardware import Hardware
from openipu.vipu.agent.metrics import MachineMetrics
from openipu.vipu.agent.presence import INTERVAL, Announcer
from openipu.vipu.agent.service import AgentService
from openipu.vipu.metrics import exporter
from openipu.vipu.metrics.options import metrics_options, wanted
from openipu.vipu.model import DEFAULT_AGENT_PORT, DISCOVERY_GROUP, DISCOVERY_PORT

# Two agents on one end-point must be an error, not a lottery; requests are small; a controller may
# ask an idle connection every few seconds whether it is alive.
_OPTIONS = (
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", 1 << 20),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
)
_STOP_SECONDS = 1.0

_log: structlog.stdlib.BoundLogger = structlog.get_logger("virm-agent")


class AgentServer:
    """One agent on one end-point."""

    def __init__(
        self,
        hardware: Hardware,
        host: str,
        port: int,
        credentials: grpc.ServerCredentials | None = None,
        metrics: exporter.Listen | None = None,
    ) -> None:
        """Port 0 takes a free one; ``port`` and ``metrics`` tell which, once it was started."""
        self.host = host
        self.port = port
        self._hardware = hardware
        self.metrics = metrics
        self._credentials = credentials
        self._server: grpc.aio.Server | None = None
        self._exporter: exporter.Exporter | None = None

    @property
    def running(self) -> bool:
        """Whether it listens."""
        return self._server is not None

    async def start(self) -> None:
        """Listen; raises OSError with a sentence when the end-point cannot be had."""
        server = grpc.aio.server(options=_OPTIONS)
        service = AgentService(self._hardware)
        guard = Guard(agent.handler("AgentService", service))
        server.add_generic_rpc_handlers([guard])
        address = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
        try:
            if self._credentials is None:
                bound = server.add_insecure_port(address)
            else:
                bound = server.add_secure_port(address, self._credentials)
        except RuntimeError:
            bound = 0
        if not bound:
            raise OSError(
                f"Cannot listen on {address}: another program has that port, or this machine has no such address."
            )
        if self.metrics is not None:
            try:
                self._tell_metrics(service, guard, self.metrics)
            except OSError:
                await server.stop(None)
                raise
        self.port = bound
        await server.start()
        self._server = server

    def _tell_metrics(self, service: AgentService, guard: Guard, listen: exporter.Listen) -> None:
        loop = asyncio.get_running_loop()
        machine = MachineMetrics(self._hardware, loop, lambda: service.watchers)
        self._exporter = exporter.Exporter(listen, [machine, service.meters, guard.meters])
        self.metrics = self._exporter.bind()
        service.exporter = self.metrics.url
        self._exporter.start_in(loop)

    async def stop(self, grace: float | None = None) -> None:
        """Close all connections, after ``grace`` seconds for the calls under way (None: at once)."""
        if self._exporter is not None:
            self._exporter.stop()
        server, self._server = self._server, None
        if server is not None:
            await server.stop(grace)


def _check_exposure(host: str, secure: bool, insecure_network: bool) -> None:
    """Whoever reaches an agent without TLS may take its IPUs from others."""
    if secure or insecure_network or host == "localhost":
        return
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise click.ClickException(
            f"Without TLS an agent listens on loopback addresses only, and {host} is none: give --tls-certificate, "
            "--tls-key and --tls-ca, or --insecure-network on a network that only the controller reaches."
        )


def _values(options: tuple[str, ...]) -> dict[str, str]:
    values = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not (name and equals):
            raise click.ClickException(f"A hardware option is NAME=VALUE, not {option!r}.")
        values[name] = value
    return values


@click.command(context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "VIRM_AGENT"})
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=DEFAULT_AGENT_PORT, show_default=True, type=click.IntRange(0, 65535), help="Its port.")
@click.option("--tls-certificate", type=click.Path(path_type=Path), help="Certificate of this agent, PEM.")
@click.option("--tls-key", type=click.Path(path_type=Path), help="Its private key, PEM.")
@click.option("--tls-ca", type=click.Path(path_type=Path), help="Authority of the controller's certificate, PEM.")
@click.option("--insecure-network", is_flag=True, help="Listen without TLS on addresses that are not loopback ones.")
@click.option("--hardware", "kind", default="twin", show_default=True, help="Kind of hardware this agent drives.")
@click.option("-o", "--option", "options", multiple=True, metavar="NAME=VALUE", help="Option of the hardware.")
@click.option("--announce-interface", "interfaces", multiple=True, help="Multicast presence on this interface.")
@click.option("--announce-interval", default=INTERVAL, show_default=True, type=click.FloatRange(0.1, 3600))
@click.option("--announce-group", default=DISCOVERY_GROUP, show_default=True, help="Multicast group.")
@click.option("--announce-port", default=DISCOVERY_PORT, show_default=True, type=click.IntRange(1, 65535))
@metrics_options
def main(
    host: str,
    port: int,
    tls_certificate: Path | None,
    tls_key: Path | None,
    tls_ca: Path | None,
    insecure_network: bool,
    kind: str,
    options: tuple[str, ...],
    interfaces: tuple[str, ...],
    announce_interval: float,
    announce_group: str,
    announce_port: int,
    **metrics: Any,
) -> None:
    """Run the agent of one IPU-Machine until it is told to stop (SIGTERM, SIGINT)."""
    files = (tls_certificate, tls_key, tls_ca)
    if any(files) and not all(files):
        raise click.ClickException("--tls-certificate, --tls-key and --tls-ca belong together: give all three.")
    _check_exposure(host, all(files), insecure_network)

    async def run() -> None:
        hardware = kinds.load(kind)(kinds.Options(host, port, _values(options)))
        credentials = None
        if tls_certificate and tls_key and tls_ca:
            credentials = tls.mutual(tls_ca, tls_certificate, tls_key)
        server = AgentServer(hardware, host, port, credentials, wanted(**metrics))
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
                _log.info("telling metrics", url=server.metrics.url)
            await stop_signal()
        finally:
            await announcer.stop()
            await server.stop(_STOP_SECONDS)

    try:
        asyncio.run(run())
    except (OSError, LookupError, ValueError, tls.TlsError) as error:
        raise click.ClickException(str(error)) from None


async def stop_signal() -> None:
    """Return at the first SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    with contextlib.suppress(asyncio.CancelledError):
        await stop.wait()


if __name__ == "__main__":
    main()
