# SPDX-License-Identifier: GPL-3.0-or-later
"""Maintenance commands of ``vipu-server``: backups, certificates, health.

Commands import what they need. Keepalived starts ``health`` every few seconds.
"""

from __future__ import annotations

import datetime
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from openipu.process.arguments import Command
from openipu.shared.vipu.addresses import is_wildcard
from openipu.vipu.api.addresses import ListenAddress
from openipu.vipu.server import options
from openipu.vipu.storage.replacement import ASIDE, RecordsWouldBeLostError
from openipu.vipu.tls import load

if TYPE_CHECKING:
    from openipu.vipu.storage.etcd.keys import Location
    from openipu.vipu.storage.losses import Losses

_DAY = datetime.timedelta(days=1)


@click.command("backup", cls=Command)
@options.DATABASE
@options.store
@options.CERTS
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    help="Number of backups to keep in the folder, with the new one; older ones are removed. Omit to keep all.",
)
@click.argument("target", type=click.Path(path_type=Path))
def make_backup(database: Path, location: Location | None, certs: Path, keep: int | None, target: Path) -> None:
    """Back up records and certificates.

    The controller may run. TARGET is a file, or a folder for a file with the time in its name. A backup
    contains private keys.
    """
    if keep is not None and not target.is_dir():
        raise click.UsageError(
            f"Cannot use --keep with {str(target)!r}: it is not a folder. Pass a folder, or omit --keep."
        )
    from openipu.vipu.storage import backup

    copy_records = None
    if location is not None:
        from openipu.vipu.storage import transfer

        copy_records = partial(transfer.copy_records, location)
    file, contents = backup.create(database, certs, target, copy_records)
    click.echo(f"Backup written: {file} ({contents})")
    if keep is not None:
        for old in backup.prune(target, keep, file):
            click.echo(f"Old backup removed: {old}")


@click.command(cls=Command)
@options.DATABASE
@options.store
@options.CERTS
@click.option("--records-only", is_flag=True, help="Restore the records only, not the certificates.")
@click.option("--overwrite", is_flag=True, help=f"Rename existing files to names that end with {ASIDE}.")
@click.option("--yes", is_flag=True, help="Do not ask before partitions lose their records.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def restore(
    database: Path,
    location: Location | None,
    certs: Path,
    records_only: bool,
    overwrite: bool,
    yes: bool,
    file: Path,
) -> None:
    """Restore the backup FILE. Stop all controllers first.

    List partitions that the backup does not contain, or has on other IPUs or agents, and ask before their records are
    replaced. Without a terminal, --yes is required then.
    """

    def confirm(losses: Losses) -> None:
        for line in losses.lines():
            click.echo(line)
        if yes:
            return
        problem = f"Cannot restore {str(file)!r}: {losses.clause()}"
        if not sys.stdin.isatty():
            raise RecordsWouldBeLostError(f"{problem}. Nothing was restored. Pass --yes to restore anyway.")
        try:
            accepted = click.confirm("Continue?")
        except click.Abort:
            accepted = False
        if not accepted:
            raise RecordsWouldBeLostError(f"{problem}. The restore was cancelled. Nothing was restored.")

    folder = None if records_only else certs
    if location is not None:
        from openipu.vipu.storage import transfer

        contents = transfer.restore(file, location, folder, overwrite=overwrite, confirm=confirm)
    else:
        from openipu.vipu.storage import backup

        contents = backup.restore(file, database, folder, overwrite=overwrite, confirm=confirm)
    click.echo(f"Restored: {location or database} ({contents})")


@click.command(cls=Command)
@options.DATABASE
@options.store
def check(database: Path, location: Location | None) -> None:
    """Check the database and count its records.

    Print the deployment too. The controller may run.
    """
    if location is not None:
        from openipu.vipu.storage import transfer

        contents, deployment = transfer.check(location)
    else:
        from openipu.vipu.storage import backup

        contents, deployment = backup.check(database)
    click.echo(f"Sound: {location or database} ({contents})")
    click.echo(f"Deployment: {deployment}")


@click.command(cls=Command)
@options.DATABASE
@options.store
@click.option("--to-database", is_flag=True, help="Copy from --store to a new --database, not the other way.")
def migrate(database: Path, location: Location | None, to_database: bool) -> None:
    """Copy all records from --database to --store, or back.

    Stop all controllers first. The target must be empty. Agents keep their owner, and their partitions continue. The
    source stays unchanged: do not start a controller with it again.
    """
    if location is None:
        raise click.UsageError("Cannot migrate: --store is required.")
    from openipu.vipu.storage import transfer

    contents = transfer.to_database(location, database) if to_database else transfer.to_etcd(database, location)
    source, target = (location, database) if to_database else (database, location)
    click.echo(f"Migrated: {source} to {target} ({contents})")


@click.command(cls=Command)
@options.CERTS
@options.HOST
@options.NAMES
@options.DAYS
@click.option(
    "--within",
    default=30,
    show_default=True,
    type=click.IntRange(0, options.MAX_DAYS),
    envvar="VIPU_SERVER_RENEW_WITHIN",
    help="Days until expiry: renew certificates that expire earlier.",
)
@click.option("--dry-run", is_flag=True, help="Print the certificates to renew, and renew none.")
def renew(certs: Path, host: str, names: tuple[str, ...], tls_days: int, within: int, dry_run: bool) -> None:
    """Renew certificates before they expire.

    Renew certificates of --tls-init, and with --tls-san also the server's certificate when its names change.
    Keys are kept. A running controller uses the new certificates from the next connection on.
    """
    from openipu.vipu.tls import renew as tls_renewal

    server_names = options.certificate_names(host, names) if names else ()
    renewed = tls_renewal.renew(certs, within * _DAY, server_names, tls_days * _DAY, pretend=dry_run)
    for name, end in renewed.items():
        click.echo(f"{'Would renew' if dry_run else 'Renewed'}: {name}, until {end:%Y-%m-%d}")
    if not renewed:
        click.echo(f"Nothing to renew: all are valid until {tls_renewal.valid_until(certs):%Y-%m-%d} or longer")


@click.command(cls=Command)
@options.CERTS
@options.HOST
def certificates(certs: Path, host: str) -> None:
    """Check certificates and print their expiry.

    Check that server and clients accept each other's certificates. Print the first expiry date.
    """
    from openipu.vipu.tls import check as tls_check

    end = tls_check.check(certs, "localhost" if is_wildcard(host) else host)
    click.echo(f"Usable: {certs}, until {end:%Y-%m-%d}")


@click.command("admin-certificate", cls=Command)
@options.DATABASE
@options.store
@options.CERTS
@click.option(
    "--replaces",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Replaced certificate. If it is not one of the administrator, nothing changes. Omit to register in any case.",
)
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
def admin_certificate(
    database: Path, location: Location | None, certs: Path, replaces: Path | None, file: Path | None
) -> None:
    """Register a certificate with the first administrator.

    Use it when the certificate is lost, or when another authority issues certificates. Stop the controller first.
    FILE is a client certificate, PEM. Omit it to use client/client.crt of --certs, which no other user can use then.
    """
    from openipu.vipu.server import initialise

    file = file or Path(load.client_files(certs)["client_cert"])
    click.echo(initialise.register(database, file, replaces, location))


@click.command(cls=Command)
@options.HOST_TO_CHECK
@options.PORT
@options.SECURE
@options.CERTS
@options.agent_tls
@click.option(
    "--wait",
    "seconds",
    default=0.0,
    show_default=True,
    type=click.FloatRange(min=0),
    help="Seconds to wait until the controller serves. With 0, query it once.",
)
@click.option("--standby", is_flag=True, help="Also accept a controller that follows the leader (--store).")
def health(
    host: str,
    port: int,
    secure: bool,
    certs: Path,
    agent_tls_ca: Path | None,
    agent_tls_certificate: Path | None,
    agent_tls_key: Path | None,
    seconds: float,
    standby: bool,
) -> None:
    """Check the controller and its certificates.

    Query its health service, and read the files of its certificates. Exit status 1: it does not serve, or a
    certificate is not valid.
    """
    from openipu.vipu.server import certificates
    from openipu.vipu.server.health import wait

    address = ListenAddress("localhost" if is_wildcard(host) else host, port)
    click.echo(f"vipu-server {wait(address, certs if secure else None, seconds, standby=standby)}")
    agents = certificates.agent_files(agent_tls_ca, agent_tls_certificate, agent_tls_key)
    end = certificates.expiry(certificates.in_use(certs if secure else None, agents))
    if end is not None:
        click.echo(f"Certificates are valid until {end:%Y-%m-%d}")


COMMANDS = (make_backup, restore, check, migrate, certificates, renew, admin_certificate, health)
