# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies of all records between databases and etcd: migration, backup and restore."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from openipu.vipu.storage import backup, losses, snapshot
from openipu.vipu.storage.backup import ASIDE, CERTS, DATABASE, BackupError, Contents
from openipu.vipu.storage.etcd import content
from openipu.vipu.storage.etcd.keys import Location
from openipu.vipu.storage.interface import StoreError
from openipu.vipu.storage.losses import Losses
from openipu.vipu.storage.replacement import Replacement, recover

__all__ = ["check", "copy_records", "restore", "to_database", "to_etcd"]


def copy_records(location: Location, database: Path) -> None:
    """Copy the committed records of a store in etcd, which may be in use, into a new database. Raises StoreError."""
    snapshot.to_database(content.read(location), database)


def check(location: Location) -> tuple[Contents, str]:
    """Return contents and deployment id of a store in etcd, which may be in use. Raises StoreError."""
    found = content.read(location)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / DATABASE
        snapshot.to_database(found, copy)
        return backup.contents_of(copy), found.deployment.id


def to_etcd(database: Path, location: Location) -> Contents:
    """Copy a database into an empty store in etcd. No controller may use them. Raises BackupError and StoreError."""
    recover(database)
    if not database.is_file():
        raise BackupError(f"Cannot migrate {str(database)!r}: it does not exist. Give the controller's database.")
    with content.exclusive(location) as target:
        if not target.empty:
            raise BackupError(
                f"Cannot migrate {str(database)!r}: the store {str(location)!r} has records already. Nothing was "
                "changed. Use another prefix."
            )
        contents = backup.contents_of(database)
        target.replace(snapshot.from_database(database))
    return contents


def to_database(location: Location, database: Path) -> Contents:
    """Copy a store in etcd into a new database. No controller may use them. Raises BackupError and StoreError."""
    if os.path.lexists(database):
        raise BackupError(
            f"Cannot migrate {str(location)!r}: {str(database)!r} exists already. Nothing was changed. Give another "
            "path."
        )
    with content.exclusive(location) as source:
        database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".migrate.", dir=database.parent) as folder:
            copy = Path(folder) / database.name
            snapshot.to_database(source.snapshot(), copy)
            contents = backup.contents_of(copy)
            with Replacement(database) as replacement:
                suffixes = ("-revision", "")  # the database last: without it, there are no records
                replacement.move([(Path(f"{copy}{suffix}"), Path(f"{database}{suffix}")) for suffix in suffixes])
    return contents


def restore(
    archive: Path, location: Location, certs: Path | None, *, overwrite: bool, confirm: losses.Confirm
) -> Contents:
    """Replace the records in etcd, then the certificates, by those of a backup; return its contents.

    The arguments are those of ``backup.restore``. Replaced records are not kept. Raises BackupError and StoreError.
    """
    done = "Nothing was restored."
    try:
        if certs is not None:
            recover(certs)
            if not overwrite and os.path.lexists(certs):
                raise _exists(archive, str(certs))
            certs.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder, Replacement(certs or Path(folder) / CERTS) as replacement:
            keys = replacement.folder(certs or Path(folder) / CERTS)
            contents = backup.read_archive(archive, Path(folder), keys)
            new = snapshot.from_database(Path(folder) / DATABASE)
            with content.exclusive(location, damaged_allowed=True) as target:
                if not target.empty:
                    if not overwrite:
                        raise _exists(archive, str(location))
                    if lost := _losses(target, new):
                        confirm(lost)
                target.replace(new.restored(target.position()))
                done = "The records were restored, but not the certificates. Restore again with --overwrite."
            if certs and (keys / CERTS).is_dir():
                replacement.move([*backup.moves_aside(certs, keys / "old"), (keys / CERTS, certs)])
    except OSError as error:
        reason = backup.reason_of(error) + (f" ({error.filename})" if error.filename else "")
        raise BackupError(f"Cannot restore {str(archive)!r} to {str(location)!r}: {reason}. {done}") from None
    return contents


def _losses(target: content.Exclusive, new: snapshot.Snapshot) -> Losses:
    try:
        existing = target.state()
    except StoreError as error:
        return Losses(unreadable=str(error))
    return losses.compare(existing, new.state())


def _exists(archive: Path, name: str) -> BackupError:
    return BackupError(
        f"Cannot restore {str(archive)!r}: {name!r} already exists. Nothing was restored. Give --overwrite to replace "
        f"it, or another --store and --certs. Replaced certificates get names that end with {ASIDE}; back up the "
        "records first."
    )
