# SPDX-License-Identifier: GPL-3.0-or-later
"""``vipu-server``: the controller of a POD as a process."""

from __future__ import annotations

import datetime
import ipaddress
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import click
import grpc
import structlog
from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import (
    ACCESS_KEY_METADATA,
    DEFAULT_PORT,
    USER_ID_METADATA,
    Connection,
)

from openipu.vipu import lifecycle, log, options, ports, tls
from openipu.vipu.auth import Authenticator
from openipu.vipu.backup import BackupError
from openipu.vipu.controller import Controller
from openipu.vipu.health import NotServingError
from openipu.vipu.initialise import first_admin, initialise
from openipu.vipu.maintenance import COMMANDS
from openipu.vipu.metrics import exporter
from openipu.vipu.metrics.options import metrics_options, wanted
from openipu.vipu.model import DISCOVERY_GROUP, DISCOVERY_PORT
from openipu.vipu.monitoring import ControllerMetrics
from openipu.vipu.notify import notify
from openipu.vipu.ports import AgentTls, LifecycleOptions, Records
from openipu.vipu.services import EndpointOptions, Endpoints, Listen, ListenError
from openipu.vipu.store import Store, StoreError

STOP_SECONDS = 5.0  # for the calls under way when the server is told to stop

_log = structlog.get_logger("vipu-server")


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that a controller has to be told. It is secure when it has ``credentials``."""

    database: Path
    user: Listen
    admin: Listen | None = None
    public_only: bool = False
    credentials: grpc.ServerCredentials | None = None
    default_user_id: str = ""
    user_id_metadata: str = USER_ID_METADATA
    access_key_metadata: str = ACCESS_KEY_METADATA
    lifecycle: LifecycleOptions = field(default_factory=LifecycleOptions)
    metrics: exporter.Listen | None = None


class Server:
    """A whole controller in this process."""

    def __init__(
        self,
        settings: Settings,
        make_lifecycle: Callable[[Records, LifecycleOptions], ports.Lifecycle] = lifecycle.Lifecycle,
    ) -> None:
        """Read the database; raises StoreError. ``make_lifecycle`` replaces the partition life."""
        self.controller = Controller(Store(settings.database))
        self.lifecycle = make_lifecycle(self.controller, settings.lifecycle)
        authenticator = None
        if settings.credentials is not None:
            authenticator = Authenticator(
                lambda: self.controller.state,
                default_user_id=settings.default_user_id,
                user_id_metadata=settings.user_id_metadata,
                access_key_metadata=settings.access_key_metadata,
            )
        self._endpoints = Endpoints(
            self.controller,
            self.lifecycle,
            EndpointOptions(
                user=settings.user,
                admin=settings.admin,
                public_only=settings.public_only,
                credentials=settings.credentials,
                authenticator=authenticator,
                version=metadata.version("openipu"),
                max_retries=settings.lifecycle.max_auto_reset_retries,
            ),
        )
        self.exporter: exporter.Exporter | None = None
        if settings.metrics is not None:
            found = ControllerMetrics(self.controller, self.lifecycle, settings.database)
            counted = [self._endpoints.meters, self.controller.meters, *self.lifecycle.meters]
            self.exporter = exporter.Exporter(settings.metrics, [found, *counted])

    def start(self) -> list[Listen]:
        """Begin; where the user end-point is, and the admin end-point when that is another.

        Raises ListenError and OSError, each with a sentence; nothing is left running then.
        """
        self.controller.start()
        try:
            bound = self._endpoints.bind()
            if self.exporter is not None:
                self.exporter.bind()
            self.lifecycle.start()
        except (ListenError, OSError):
            self.stop(0)
            raise
        self._endpoints.start()
        if self.exporter is not None:
            self.exporter.start()
        return bound

    def stop(self, grace: float = STOP_SECONDS) -> None:
        """Refuse new calls, wait up to ``grace`` seconds for those under way, and close the database."""
        self._endpoints.stop(grace)
        if self.exporter is not None:
            self.exporter.stop()
        self.lifecycle.stop()
        self.controller.stop()


_DEFAULTS = LifecycleOptions()


class _Commandline(click.Group):
    """Turns what a user can cure into one sentence and exit status 1."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except (StoreError, BackupError, NotServingError, ListenError, tls.TlsError, OSError) as error:
            raise click.ClickException(str(error)) from None


@click.group(
    cls=_Commandline,
    invoke_without_command=True,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "auto_envvar_prefix": "VIPU_SERVER",
        "max_content_width": 100,
    },
)
@options.HOST
@options.PORT
@click.option("--admin-host", help="Listen for administrators here, and offer users no admin service.")
@click.option("--admin-port", type=click.IntRange(0, 65535), help="Port for administrators; alone: on --host.")
@click.option("--no-admin", is_flag=True, help="Offer the public user API only, and nothing of this implementation.")
@options.DATABASE
@click.option("--init", is_flag=True, help="Create the database (with --secure an administrator too), and end.")
@options.SECURE
@click.option(
    "--tls-init",
    is_flag=False,
    flag_value="vipu-certs",
    metavar="[DIR]",
    type=click.Path(file_okay=False, path_type=Path),
    help="Create certificates for --secure in DIR (vipu-certs), and end.",
)
@options.NAMES
@options.DAYS
@options.CERTS
@click.option("--insecure-network", is_flag=True, help="Listen without --secure on addresses that are not loopback.")
@click.option("--default-user-id", default="", help="Whose calls those are that come without a user id (--secure).")
@click.option("--metadata-user-id-key", default=USER_ID_METADATA, show_default=True, help="Metadata key of user ids.")
@click.option(
    "--metadata-access-key-key", default=ACCESS_KEY_METADATA, show_default=True, help="Metadata key of access keys."
)
@click.option(
    "-a",
    "--autodiscovery-listen-interfaces",
    "interfaces",
    default="",
    metavar="IF[,IF]",
    help="Listen on these network interfaces for agents that tell of themselves.",
)
@click.option("--discovery-group", default=DISCOVERY_GROUP, show_default=True, help="Their multicast group.")
@click.option("--discovery-port", default=DISCOVERY_PORT, show_default=True, type=click.IntRange(1, 65535))
@click.option(
    "--partition-timeout",
    default=_DEFAULTS.partition_timeout,
    show_default=True,
    type=click.FloatRange(min=0, min_open=True),
    help="Seconds that agents may take to configure or release a partition.",
)
@click.option(
    "--max-auto-reset-retries",
    default=_DEFAULTS.max_auto_reset_retries,
    show_default=True,
    type=click.IntRange(0, 1000),
    help="Automatic resets that a new partition may have.",
)
@click.option("--agent-tls-ca", type=click.Path(dir_okay=False, path_type=Path), help="Authority of the agents, PEM.")
@click.option(
    "--agent-tls-certificate", type=click.Path(dir_okay=False, path_type=Path), help="What agents are shown, PEM."
)
@click.option("--agent-tls-key", type=click.Path(dir_okay=False, path_type=Path), help="Its private key, PEM.")
@metrics_options
@click.option("--log-format", default="text", show_default=True, type=click.Choice(["text", "json"]))
@click.option("--log-level", default="info", show_default=True, type=click.Choice(log.LEVELS))
@click.version_option(package_name="openipu", prog_name="vipu-server", message="%(prog)s %(version)s")
@click.pass_context
def main(
    context: click.Context,
    /,
    host: str,
    port: int,
    admin_host: str | None,
    admin_port: int | None,
    no_admin: bool,
    database: Path,
    init: bool,
    secure: bool,
    tls_init: Path | None,
    names: tuple[str, ...],
    tls_days: int,
    certs: Path,
    insecure_network: bool,
    default_user_id: str,
    metadata_user_id_key: str,
    metadata_access_key_key: str,
    interfaces: str,
    discovery_group: str,
    discovery_port: int,
    partition_timeout: float,
    max_auto_reset_retries: int,
    agent_tls_ca: Path | None,
    agent_tls_certificate: Path | None,
    agent_tls_key: Path | None,
    log_format: log.LogFormat,
    log_level: str,
    **metrics: Any,
) -> None:
    """Control the IPU-Machines of a POD until told to stop (SIGTERM, SIGINT).

    Every option can be set by the environment too: --log-level by VIPU_SERVER_LOG_LEVEL, and so on.
    """
    log.configure(log_format, log_level)
    if context.invoked_subcommand:
        return
    if tls_init is not None:
        if options.everywhere(host) and not names:
            raise click.ClickException(
                f"A certificate for {host} fits no name that a client would use: give the names and addresses of this "
                "server with --tls-san."
            )
        tls.create(tls_init, options.certificate_names(host, names), datetime.timedelta(days=tls_days))
        click.echo(f"Certificates written: {tls_init / 'server'} and {tls_init / 'client'}")
    if init:
        _initialise(database, host, port, certs if secure else None)
    if init or tls_init is not None:
        return
    admin = None
    if admin_host is not None or admin_port is not None:
        if no_admin:
            raise click.UsageError("--no-admin leaves nothing for --admin-host and --admin-port to offer.")
        admin = Listen(admin_host or host, DEFAULT_PORT if admin_port is None else admin_port)
    if not secure:
        if default_user_id:
            raise click.UsageError("--default-user-id has a meaning with --secure only.")
        _check_exposure([host, *([admin.host] if admin else [])], insecure_network)
    agent_tls = _agent_tls(agent_tls_ca, agent_tls_certificate, agent_tls_key)
    settings = Settings(
        database=database,
        user=Listen(host, port),
        admin=admin,
        public_only=no_admin,
        credentials=tls.server_credentials(certs) if secure else None,
        default_user_id=default_user_id,
        user_id_metadata=metadata_user_id_key.lower(),
        access_key_metadata=metadata_access_key_key.lower(),
        lifecycle=LifecycleOptions(
            partition_timeout=partition_timeout,
            max_auto_reset_retries=max_auto_reset_retries,
            agent_tls=agent_tls,
            discovery_interfaces=tuple(name.strip() for name in interfaces.split(",") if name.strip()),
            discovery_group=discovery_group,
            discovery_port=discovery_port,
        ),
        metrics=wanted(**metrics),
    )
    _serve(settings)


def _serve(settings: Settings) -> None:
    # Blocked before any thread starts, so that no thread gets them instead of the one that waits below.
    ending = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    server = Server(settings)
    bound = server.start()
    version = metadata.version("openipu")
    where = f"{bound[0]}, for administrators on {bound[1]}" if len(bound) > 1 else f"{bound[0]}"
    if settings.credentials is None:
        _log.warning("not secure: everybody who reaches this controller may do everything; see --secure")
    if server.exporter is not None:
        _log.info("telling metrics", url=server.exporter.listen.url)
    # Others wait for this line.
    click.echo(f"vipu-server {version} listening on {where}")
    notify("READY=1")
    number = signal.sigwait(ending)
    notify("STOPPING=1")
    _log.info("stopping", signal=signal.Signals(number).name)
    server.stop()
    _log.info("stopped")


def _initialise(database: Path, host: str, port: int, certs: Path | None) -> None:
    new = initialise(database)
    click.echo(f"{'Initialised storage' if new else 'Storage is initialised already'}: {database}")
    if certs is None:
        return
    # Certificates that come from elsewhere are not in this folder: then whoever uses the file adds them.
    shown = tls.client_files(certs) if (certs / "client").is_dir() else {}
    path = first_admin(database, Connection("localhost" if options.everywhere(host) else host, port, **shown))
    if path is not None:
        click.echo(f"vipu configuration file for the user 'admin' written: {path}")


def _check_exposure(hosts: list[str], insecure_network: bool) -> None:
    """Refuse to offer everything to everybody by accident."""
    for host in hosts:
        try:
            loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:
            loopback = False
        if not loopback and not insecure_network:
            raise click.ClickException(
                f"Without --secure a controller listens on loopback addresses only, and {host} is none: give --secure, "
                "or --insecure-network on a network where everybody may do everything."
            )


def _agent_tls(ca: Path | None, certificate: Path | None, key: Path | None) -> AgentTls | None:
    if ca and certificate and key:
        return AgentTls(ca.read_bytes(), certificate.read_bytes(), key.read_bytes())
    if ca or certificate or key:
        raise click.UsageError("--agent-tls-ca, --agent-tls-certificate and --agent-tls-key belong together.")
    return None


for _command in COMMANDS:
    main.add_command(_command)


if __name__ == "__main__":
    main()
