# SPDX-License-Identifier: GPL-3.0-or-later
"""``vipu-server``: the controller of a POD as a process.

The parts of the controller are imported when it starts, because commands such as ``health`` do not need them.
"""

from __future__ import annotations

import datetime
import signal
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from openipu.process import log
from openipu.process.failures import Program, ProgramError, is_output_error, program_error
from openipu.process.notify import notify
from openipu.process.plain_structlog import structlog
from openipu.shared.vipu.addresses import is_wildcard
from openipu.shared.vipu.client import ACCESS_KEY_METADATA, USER_ID_METADATA
from openipu.shared.vipu.ports import CONTROLLER_PORT, DISCOVERY_PORT
from openipu.vipu.agent_api.multicast import DISCOVERY_GROUP
from openipu.vipu.api.addresses import ListenAddress
from openipu.vipu.lifecycle.interface import LifecycleOptions
from openipu.vipu.metrics.options import metrics_address, metrics_options
from openipu.vipu.server import certificates, options
from openipu.vipu.server.commands import COMMANDS
from openipu.vipu.storage.replacement import recover
from openipu.vipu.tls import issue, load

if TYPE_CHECKING:
    from openipu.vipu.server.controller import Settings
    from openipu.vipu.storage.etcd.keys import Location

_log = structlog.get_logger("vipu-server")

_DEFAULTS = LifecycleOptions()


class _Commandline(Program):
    """Command group that reports errors of users with one message and exit status 1."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except click.ClickException:
            raise
        except Exception as error:
            # Errors for users have a code.
            reported = not is_output_error(error) if isinstance(error, OSError) else hasattr(error, "error_code")
            if not reported:
                raise
            raise program_error(error) from None


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
@click.option("--admin-host", help="Address of a separate endpoint for administrators. --host is then for users only.")
@click.option(
    "--admin-port",
    type=click.IntRange(0, 65535),
    help="Port of a separate endpoint for administrators, on --admin-host or --host.",
)
@click.option("--admin-on-both", is_flag=True, help="Offer the admin services on the endpoint of --host too.")
@click.option(
    "--no-admin", is_flag=True, help="Offer only the public user API, without the extensions of this implementation."
)
@options.DATABASE
@options.server_store
@click.option(
    "--lease-seconds",
    default=3,
    show_default=True,
    type=click.IntRange(2, 60),
    help="Seconds after which another controller leads when this one does not respond (--store).",
)
@click.option(
    "--advertise",
    default="",
    metavar="HOST",
    help="Host of this controller for clients of the others (--store). Omit to use --host.",
)
@click.option("--init", is_flag=True, help="Create the database (with --secure an administrator too) and exit.")
@options.SECURE
@click.option(
    "--tls-init",
    is_flag=False,
    flag_value="vipu-certs",
    metavar="[DIR]",
    type=click.Path(file_okay=False, path_type=Path),
    help="Create certificates for --secure in DIR (default: vipu-certs) and exit.",
)
@options.NAMES
@options.DAYS
@options.CERTS
@click.option("--insecure-network", is_flag=True, help="Allow addresses other than loopback without --secure.")
@click.option(
    "--client-certificates",
    default="user",
    show_default=True,
    type=click.Choice(["user", "shared"]),
    help="Certificates of new users (--secure). user: each needs certificates of its own. shared: until it has some, "
    "it may use any that is not another user's. A shared certificate cannot be revoked for one user, and a stolen "
    "access key works with it.",
)
@click.option("--default-user-id", default="", help="User of calls without a user id (--secure). Omit to reject them.")
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
    help="Network interfaces on which to discover agents. Omit for no discovery.",
)
@click.option("--discovery-group", default=DISCOVERY_GROUP, show_default=True, help="Multicast group for discovery.")
@click.option(
    "--discovery-port",
    default=DISCOVERY_PORT,
    show_default=True,
    type=click.IntRange(1, 65535),
    help="UDP port for discovery.",
)
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
    help="Limit of automatic resets for each new partition.",
)
@click.option(
    "--relocation-delay",
    default=_DEFAULTS.relocation_delay,
    show_default=True,
    type=click.FloatRange(min=0),
    help="Seconds that an agent must be Down before its relocatable partitions move.",
)
@options.agent_tls
@metrics_options
@click.option(
    "--log-format",
    default="text",
    show_default=True,
    type=click.Choice(["text", "json"]),
    help="Format of the log on standard error.",
)
@click.option(
    "--log-level",
    default="info",
    show_default=True,
    type=click.Choice(log.LEVELS),
    help="Lowest level of logged events.",
)
@click.version_option(package_name="openipu", prog_name="vipu-server", message="%(prog)s %(version)s")
@click.pass_context
def main(
    context: click.Context,
    /,
    host: str,
    port: int,
    admin_host: str | None,
    admin_port: int | None,
    admin_on_both: bool,
    no_admin: bool,
    database: Path,
    location: Location | None,
    lease_seconds: int,
    advertise: str,
    init: bool,
    secure: bool,
    tls_init: Path | None,
    names: tuple[str, ...],
    tls_days: int,
    certs: Path,
    insecure_network: bool,
    client_certificates: str,
    default_user_id: str,
    metadata_user_id_key: str,
    metadata_access_key_key: str,
    interfaces: str,
    discovery_group: str,
    discovery_port: int,
    partition_timeout: float,
    max_auto_reset_retries: int,
    relocation_delay: float,
    agent_tls_ca: Path | None,
    agent_tls_certificate: Path | None,
    agent_tls_key: Path | None,
    log_format: log.LogFormat,
    log_level: str,
    **metrics: Any,
) -> None:
    """Run the controller of an IPU-POD until SIGTERM or SIGINT.

    Environment variables set the same options: VIPU_SERVER_LOG_LEVEL sets --log-level, and so on.
    """
    log.configure(log_format, log_level)
    if context.invoked_subcommand:
        options.check_positions(context, {"log_format", "log_level"})
        return
    from openipu.vipu.server import initialise
    from openipu.vipu.server.controller import STOP_SIGNALS, Settings

    if location is None:
        recover(database)
    if init and secure:
        initialise.check_file(database, location)
    if tls_init is not None:
        if is_wildcard(host) and not names:
            raise ProgramError(
                f"Cannot create certificates for {host}: clients cannot use that address. Set the names and addresses "
                "of this server with --tls-san."
            )
        issue.create(tls_init, options.certificate_names(host, names, admin_host), datetime.timedelta(days=tls_days))
        click.echo(f"Certificates written: {tls_init / 'server'} and {tls_init / 'client'}")
        if context.get_parameter_source("certs") is ParameterSource.DEFAULT:
            certs = tls_init
    user = ListenAddress(host, port)
    admin = None
    if admin_host is not None or admin_port is not None:
        if no_admin:
            raise click.UsageError("--no-admin excludes --admin-host and --admin-port.")
        admin = ListenAddress(admin_host or host, CONTROLLER_PORT if admin_port is None else admin_port)
    elif admin_on_both:
        raise click.UsageError("--admin-on-both requires --admin-port or --admin-host.")
    if init:
        shared = client_certificates == "shared"
        for line in initialise.run(
            database, admin or user, certs if secure else None, shared_certificate=shared, location=location
        ):
            click.echo(line)
    if init or tls_init is not None:
        return
    if not secure:
        if default_user_id:
            raise click.UsageError("--default-user-id requires --secure.")
        options.check_exposure([host, *([admin.host] if admin else [])], insecure_network)
    agent_files = certificates.agent_files(agent_tls_ca, agent_tls_certificate, agent_tls_key)
    credentials = load.server_credentials(certs) if secure else None
    certificates.warn(
        certificates.in_use(certs if secure else None, agent_files), agents_in_clear=secure and not agent_files
    )
    settings = Settings(
        database=database,
        user=user,
        admin=admin,
        admin_on_both=admin_on_both,
        public_only=no_admin,
        credentials=credentials,
        certs=certs if secure else None,
        shared_certificates=client_certificates == "shared",
        default_user_id=default_user_id,
        user_id_metadata=metadata_user_id_key.lower(),
        access_key_metadata=metadata_access_key_key.lower(),
        lifecycle=LifecycleOptions(
            partition_timeout=partition_timeout,
            max_auto_reset_retries=max_auto_reset_retries,
            relocation_delay=relocation_delay,
            agent_tls=load.ClientCredentials(load.PemFiles(*agent_files)) if agent_files else None,
            discovery_interfaces=tuple(name.strip() for name in interfaces.split(",") if name.strip()),
            discovery_group=discovery_group,
            discovery_port=discovery_port,
        ),
        metrics=metrics_address(**metrics),
    )
    # Block the signals before any thread starts, so that only ``sigwait`` below receives them.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    if location is None:
        _serve(settings)
    else:
        from openipu.vipu.server.replica import Replica

        if is_wildcard(host) and not advertise:
            raise click.UsageError(f"--advertise is required with --host {host}: clients cannot use that address.")
        Replica(settings, location, lease_seconds, advertise).run()


def _serve(settings: Settings) -> None:
    from openipu.vipu.server.controller import STOP_SIGNALS, Server, addresses_text, announce

    server = Server(settings)
    bound = server.start()
    announce(server, settings)
    # Scripts wait for this line.
    click.echo(f"vipu-server {metadata.version('openipu')} listening on {addresses_text(bound)}")
    notify("READY=1")
    number = signal.sigwait(STOP_SIGNALS)
    notify("STOPPING=1")
    _log.info("stopping", signal=signal.Signals(number).name)
    server.stop()
    _log.info("stopped")


for _command in COMMANDS:
    main.add_command(_command)


if __name__ == "__main__":
    main()
