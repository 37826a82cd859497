# SPDX-License-Identifier: GPL-3.0-or-later
"""Backups of a controller: its records and certificates in one archive, and the way back.

A backup is read back before it counts, and appears when it is complete. It has private keys and
hashes of access keys in it, and is for its owner only.
"""

from __future__ import annotations

import datetime
import json
import os
import shutil
import sqlite3
import tarfile
import tempfile
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

from openipu.vipu.store import Store, StoreError, lock

FORMAT = 1
PATTERN = "vipu-*.tar.gz"
ASIDE = ".before-restore"
_DATABASE, _CERTS, _CONTENTS = "vipu-server.db", "certs", "backup.json"


class BackupError(Exception):
    """A backup cannot be made, read or restored; one sentence."""


@dataclass(frozen=True, slots=True)
class Contents:
    """How many records a database has."""

    agents: int
    clusters: int
    allocations: int
    partitions: int
    users: int

    def __str__(self) -> str:
        """For people."""
        counts = [f"{count} {name if count != 1 else name[:-1]}" for name, count in asdict(self).items()]
        return f"{', '.join(counts[:-1])} and {counts[-1]}"


def check(database: Path) -> Contents:
    """What a database holds, also while a controller uses it. Raises BackupError and StoreError."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / _DATABASE
            _copy(database, copy)
            return _contents(copy)
    except (OSError, sqlite3.Error) as error:
        raise BackupError(f"Cannot read database {str(database)!r}: {_reason(error)}.") from None


def create(database: Path, certs: Path, target: Path) -> tuple[Path, Contents]:
    """Back a controller up, also while it runs; where the archive is, and what is in it.

    ``target`` is a file, or a folder that gets one with the time in its name. ``certs`` may be missing.
    Raises BackupError and StoreError; nothing of the backup is left then.
    """
    if target.is_dir():
        target = target / f"vipu-{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%S.%fZ}.tar.gz"
    try:
        with tempfile.TemporaryDirectory(prefix=".backup.", dir=target.parent) as folder:
            copy, archive = Path(folder) / _DATABASE, Path(folder) / "archive"
            _copy(database, copy)
            contents = _contents(copy)
            said = Path(folder) / _CONTENTS
            said.write_text(json.dumps({"format": FORMAT, "contents": asdict(contents)}))
            with os.fdopen(os.open(archive, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                with tarfile.open(fileobj=file, mode="w:gz") as tar:
                    for path, name in ((said, _CONTENTS), (copy, _DATABASE), (certs, _CERTS)):
                        if path is not certs or certs.is_dir():
                            tar.add(path.resolve(), name)
                file.flush()
                os.fsync(file.fileno())
            archive.replace(target)
            _flush(target.parent)
    except (OSError, sqlite3.Error) as error:
        raise BackupError(
            f"Cannot back up {str(database)!r} to {str(target)!r}: {_reason(error)}; there is no new backup, "
            "and older ones were not touched."
        ) from None
    return target, contents


def prune(folder: Path, keep: int) -> list[Path]:
    """Remove the oldest backups of a folder but for the newest ``keep``; which ones. Raises BackupError."""
    old = sorted(folder.glob(PATTERN))[:-keep]
    for file in old:
        try:
            file.unlink()
        except OSError as error:
            raise BackupError(f"Cannot remove the old backup {str(file)!r}: {_reason(error)}.") from None
    return old


def restore(archive: Path, database: Path, certs: Path | None, *, overwrite: bool = False) -> Contents:
    """Put a backup in the place of a controller's files; what it held.

    What was there stays beside it, under names that end with ``ASIDE``, and only with ``overwrite`` is
    there anything. Records of an older release are brought to the version of this one. Without ``certs``
    certificates are left alone. Raises BackupError and StoreError; what was there is untouched then.
    """
    for path in (database, certs):
        if not overwrite and path is not None and os.path.lexists(path):
            raise BackupError(
                f"There is {str(path)!r} already, and nothing was restored: give --overwrite to put the backup in its "
                "place, or name another --database and --certs."
            )
    try:
        for parent in {database.parent, certs.parent if certs else database.parent}:
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory(prefix=".restore.", dir=database.parent) as records,
            tempfile.TemporaryDirectory(prefix=".restore.", dir=(certs or database).parent) as keys,
        ):
            said = _unpack(archive, Path(records), Path(keys))
            contents = _contents(Path(records) / _DATABASE)
            if asdict(contents) != said:
                raise BackupError(f"The backup {str(archive)!r} is damaged: it lacks records that it says it has.")
            with closing(lock(database)):
                for suffix in ("", "-wal", "-shm"):
                    _set_aside(database, suffix)
                (Path(records) / _DATABASE).replace(database)
                if certs and (Path(keys) / _CERTS).is_dir():
                    _set_aside(certs)
                    (Path(keys) / _CERTS).replace(certs)
            _flush(database.parent)
            _flush((certs or database).parent)
    except (OSError, sqlite3.Error) as error:
        raise BackupError(f"Cannot restore {str(archive)!r} to {str(database)!r}: {_reason(error)}.") from None
    return contents


def _unpack(archive: Path, records: Path, keys: Path) -> object:
    """Unpack records and certificates, each beside where it belongs; what the archive says it holds."""
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                place = _place(member)
                if place is not None:
                    _extract(tar, member, (keys if place.parts[0] == _CERTS else records) / place)
        return _said(records / _CONTENTS, archive)
    except (tarfile.TarError, EOFError, FileNotFoundError, FileExistsError, ValueError):
        if not archive.exists():
            raise
        raise BackupError(
            f"{str(archive)!r} is no backup of a controller, or it is damaged: take another one."
        ) from None


def _place(member: tarfile.TarInfo) -> Path | None:
    """Where a file of a backup belongs; None for what is none."""
    place = Path(member.name)
    known = member.name in (_DATABASE, _CONTENTS) or (place.parts[0] == _CERTS and len(place.parts) == 3)
    return place if known and member.isfile() and ".." not in place.parts else None


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    """Write a file for its owner only; of its mode counts that others may read a certificate."""
    for folder in (target.parent.parent, target.parent):
        folder.mkdir(mode=0o700, exist_ok=True)
    source = tar.extractfile(member)
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        if source is not None:
            shutil.copyfileobj(source, file)
        os.fchmod(file.fileno(), member.mode & 0o644)


def _said(file: Path, archive: Path) -> object:
    """What a backup says it holds; raises BackupError, FileNotFoundError, ValueError."""
    said = json.loads(file.read_text())
    if not isinstance(said, dict) or "contents" not in said:
        raise ValueError
    if said.get("format") != FORMAT:
        raise BackupError(f"The backup {str(archive)!r} was made by a newer release: restore it with that release.")
    return said["contents"]


def _set_aside(path: Path, suffix: str = "") -> None:
    """Move a file or folder out of the way, in the place of what an earlier restore has moved."""
    old, aside = Path(f"{path}{suffix}"), Path(f"{path}{ASIDE}{suffix}")
    if aside.is_dir():
        shutil.rmtree(aside)
    else:
        aside.unlink(missing_ok=True)
    if os.path.lexists(old):
        old.rename(aside)


def _copy(database: Path, copy: Path) -> None:
    """Copy the committed records of a database that may be in use, with SQLite's own backup."""
    if not database.is_file():
        raise BackupError(f"There is no database {str(database)!r}; name the one of the controller with --database.")
    os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    with (
        closing(sqlite3.connect(f"file:{quote(str(database.absolute()))}?mode=rw", uri=True)) as source,
        closing(sqlite3.connect(copy)) as target,
    ):
        source.backup(target)


def _contents(copy: Path) -> Contents:
    """What a copy holds, which nobody else uses; raises StoreError when it is not sound."""
    with closing(sqlite3.connect(copy)) as connection:
        wrong = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if wrong != "ok":
        raise StoreError(f"The database is damaged: {wrong}; restore a backup.")
    with closing(Store(copy)) as store:
        state = store.load()
    return Contents(
        len(state.agents), len(state.clusters), len(state.allocations), len(state.partitions), len(state.users)
    )


def _flush(folder: Path) -> None:
    """Have what was renamed in a folder on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _reason(error: Exception) -> str:
    return ((isinstance(error, OSError) and error.strerror) or str(error)).lower()
