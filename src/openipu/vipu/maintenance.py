# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands of ``vipu-server`` for those who look after a controller: backups, certificates, health."""

from __future__ import annotations

import datetime
from pathlib import Path

import click

from openipu.vipu import backup, options
from openipu.vipu.services import Listen

_DAY = datetime.timedelta(days=1)


@click.command("backup")
@options.DATABASE
@options.CERTS
@click.option("--keep", type=click.IntRange(min=1), help="Remove the oldest backups in the folder but for so many.")
@click.argument("target", type=click.Path(path_type=Path))
def make_backup(database: Path, certs: Path, keep: int | None, target: Path) -> None:
    """Back records and certificates up, also while the controller runs.

    TARGET is a file, or a folder that gets one with the time in its name. It holds private keys.
    """
    if keep is not None and not target.is_dir():
        raise click.UsageError(f"--keep counts the backups of a folder, and {str(target)!r} is none.")
    file, contents = backup.create(database, certs, target)
    click.echo(f"Backup written: {file} ({contents})")
    if keep is not None:
        for old in backup.prune(target, keep):
            click.echo(f"Old backup removed: {old}")


@click.command()
@options.DATABASE
@options.CERTS
@click.option("--records-only", is_flag=True, help="Leave certificates alone.")
@click.option("--overwrite", is_flag=True, help=f"Set what is there aside, under names that end with {backup.ASIDE}.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def restore(database: Path, certs: Path, records_only: bool, overwrite: bool, file: Path) -> None:
    """Put the backup FILE in place; the controller must not run."""
    contents = backup.restore(file, database, None if records_only else certs, overwrite=overwrite)
    click.echo(f"Restored: {database} ({contents})")


@click.command()
@options.DATABASE
def check(database: Path) -> None:
    """See that the database is sound, also while the controller runs, and count what is in it."""
    click.echo(f"Sound: {database} ({backup.check(database)})")


@click.command()
@options.CERTS
@options.HOST
@options.NAMES
@options.DAYS
@click.option(
    "--within",
    default=30,
    show_default=True,
    type=click.IntRange(min=0),
    envvar="VIPU_SERVER_RENEW_WITHIN",
    help="Renew what ends within so many days.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be renewed.")
def renew(certs: Path, host: str, names: tuple[str, ...], tls_days: int, within: int, dry_run: bool) -> None:
    """Renew certificates of --tls-init before they end, or when --tls-san gives the server other names.

    A controller that runs takes them for the next connection; keys stay.
    """
    from openipu.vipu import tls_renewal

    wanted = options.certificate_names(host, names) if names else ()
    renewed = tls_renewal.renew(certs, within * _DAY, wanted, tls_days * _DAY, pretend=dry_run)
    for what, end in renewed.items():
        click.echo(f"{'Would renew' if dry_run else 'Renewed'}: {what}, until {end:%Y-%m-%d}")
    if not renewed:
        click.echo(f"Nothing to renew: all are valid until {tls_renewal.valid_until(certs):%Y-%m-%d} or longer")


@click.command()
@options.CERTS
@options.HOST
def certificates(certs: Path, host: str) -> None:
    """See that server and clients will accept each other with these certificates, and until when."""
    from openipu.vipu import tls_check

    end = tls_check.check(certs, "localhost" if options.everywhere(host) else host)
    click.echo(f"Usable: {certs}, until {end:%Y-%m-%d}")


@click.command()
@options.HOST
@options.PORT
@options.SECURE
@options.CERTS
@click.option("--wait", "seconds", default=0.0, show_default=True, type=click.FloatRange(min=0), help="For so long.")
def health(host: str, port: int, secure: bool, certs: Path, seconds: float) -> None:
    """Ask the controller's health service whether it serves."""
    from openipu.vipu.health import wait

    where = Listen("localhost" if options.everywhere(host) else host, port)
    version = wait(where, certs if secure else None, seconds)
    click.echo(f"vipu-server {version} serves on {where}")


COMMANDS = (make_backup, restore, check, certificates, renew, health)
