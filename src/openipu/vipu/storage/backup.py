# SPDX-License-Identifier: GPL-3.0-or-later
"""Backup and restore of a controller: its records and certificates in one archive.

The copied records are verified before the archive is written, and the archive appears only when it is
complete. It contains private keys and hashes of access keys, so only its owner can read it.
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

from openipu.vipu.storage.store import Store, StoreError, lock

FORMAT = 1
PATTERN = "vipu-*.tar.gz"
ASIDE = ".before-restore"
_DATABASE, _CERTS, _MANIFEST = "vipu-server.db", "certs", "backup.json"


class BackupError(Exception):
    """Raised when a backup cannot be created, read or restored."""

    error_code = "OPU613"


@dataclass(frozen=True, slots=True)
class Contents:
    """Numbers of records in a database."""

    agents: int
    clusters: int
    allocations: int
    partitions: int
    users: int

    def __str__(self) -> str:
        """Return the numbers in words."""
        counts = [f"{count} {name if count != 1 else name[:-1]}" for name, count in asdict(self).items()]
        return f"{', '.join(counts[:-1])} and {counts[-1]}"


def check(database: Path) -> Contents:
    """Return the contents of a database, which may be in use. Raises BackupError and StoreError."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / _DATABASE
            _copy(database, copy)
            return _contents(copy)
    except (OSError, sqlite3.Error) as error:
        raise BackupError(f"Cannot read database {str(database)!r}: {_reason(error)}.") from None


def create(database: Path, certs: Path, target: Path) -> tuple[Path, Contents]:
    """Back up a controller, which may be running; return the path of the archive and its contents.

    ``target`` is a file, or a folder for a file with the time in its name. ``certs`` may be missing.
    Raises BackupError and StoreError, and leaves no partial backup.
    """
    if target.is_dir():
        target = target / f"vipu-{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%S.%fZ}.tar.gz"
    try:
        with tempfile.TemporaryDirectory(prefix=".backup.", dir=target.parent) as folder:
            copy, archive = Path(folder) / _DATABASE, Path(folder) / "archive"
            _copy(database, copy)
            contents = _contents(copy)
            manifest = Path(folder) / _MANIFEST
            manifest.write_text(json.dumps({"format": FORMAT, "contents": asdict(contents)}))
            with os.fdopen(os.open(archive, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                with tarfile.open(fileobj=file, mode="w:gz") as tar:
                    for path, name in ((manifest, _MANIFEST), (copy, _DATABASE), (certs, _CERTS)):
                        if path is not certs or certs.is_dir():
                            tar.add(path.resolve(), name)
                file.flush()
                os.fsync(file.fileno())
            archive.replace(target)
            _sync(target.parent)
    except (OSError, sqlite3.Error) as error:
        raise BackupError(
            f"Cannot back up {str(database)!r} to {str(target)!r}: {_reason(error)}. "
            "No backup was created. Older backups are unchanged."
        ) from None
    return target, contents


def prune(folder: Path, keep: int) -> list[Path]:
    """Remove all but the newest ``keep`` backups of a folder; return the removed files. Raises BackupError."""
    old = sorted(folder.glob(PATTERN))[:-keep]
    for file in old:
        try:
            file.unlink()
        except OSError as error:
            raise BackupError(f"Cannot remove old backup {str(file)!r}: {_reason(error)}.") from None
    return old


def restore(archive: Path, database: Path, certs: Path | None, *, overwrite: bool = False) -> Contents:
    """Replace the files of a controller by those of a backup; return the contents of the backup.

    Existing files need ``overwrite``, and are kept under names that end with ``ASIDE``. Records of an
    older release are migrated. Without ``certs``, certificates stay unchanged. Raises BackupError and
    StoreError, and then changes nothing.
    """
    for path in (database, certs):
        if not overwrite and path is not None and os.path.lexists(path):
            raise BackupError(
                f"Cannot restore {str(archive)!r}: {str(path)!r} already exists. Nothing was restored. "
                "Give --overwrite to replace it, or another --database and --certs."
            )
    try:
        for parent in {database.parent, certs.parent if certs else database.parent}:
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory(prefix=".restore.", dir=database.parent) as records,
            tempfile.TemporaryDirectory(prefix=".restore.", dir=(certs or database).parent) as keys,
        ):
            expected = _unpack(archive, Path(records), Path(keys))
            contents = _contents(Path(records) / _DATABASE)
            if asdict(contents) != expected:
                raise BackupError(
                    f"Cannot restore {str(archive)!r}: it is damaged, records are missing. Use another backup."
                )
            with closing(lock(database)):
                for suffix in ("", "-wal", "-shm"):
                    _set_aside(database, suffix)
                (Path(records) / _DATABASE).replace(database)
                if certs and (Path(keys) / _CERTS).is_dir():
                    _set_aside(certs)
                    (Path(keys) / _CERTS).replace(certs)
            _sync(database.parent)
            _sync((certs or database).parent)
    except (OSError, sqlite3.Error) as error:
        raise BackupError(f"Cannot restore {str(archive)!r} to {str(database)!r}: {_reason(error)}.") from None
    return contents


def _unpack(archive: Path, records: Path, keys: Path) -> object:
    """Unpack records and certificates next to their destinations; return the contents listed in the manifest."""
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                path = _relative_path(member)
                if path is not None:
                    _extract(tar, member, (keys if path.parts[0] == _CERTS else records) / path)
        return _read_manifest(records / _MANIFEST, archive)
    except (tarfile.TarError, EOFError, FileNotFoundError, FileExistsError, ValueError):
        if not archive.exists():
            raise
        raise BackupError(
            f"Cannot restore {str(archive)!r}: it is not a backup of a controller, or it is damaged. "
            "Use another backup."
        ) from None


def _relative_path(member: tarfile.TarInfo) -> Path | None:
    """Return the relative path of a file of a backup; None for other members."""
    path = Path(member.name)
    known = member.name in (_DATABASE, _MANIFEST) or (path.parts[0] == _CERTS and len(path.parts) == 3)
    return path if known and member.isfile() and ".." not in path.parts else None


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    """Write a file with owner-only permissions; group and others may read it if the archive says so."""
    for folder in (target.parent.parent, target.parent):
        folder.mkdir(mode=0o700, exist_ok=True)
    source = tar.extractfile(member)
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        if source is not None:
            shutil.copyfileobj(source, file)
        os.fchmod(file.fileno(), member.mode & 0o644)


def _read_manifest(file: Path, archive: Path) -> object:
    """Return the contents listed in a manifest; raises BackupError, FileNotFoundError, ValueError."""
    manifest = json.loads(file.read_text())
    if not isinstance(manifest, dict) or "contents" not in manifest:
        raise ValueError
    if manifest.get("format") != FORMAT:
        raise BackupError(
            f"Cannot restore {str(archive)!r}: it was created by a newer release. Restore it with that release."
        )
    return manifest["contents"]


def _set_aside(path: Path, suffix: str = "") -> None:
    """Rename a file or folder, and replace the one that an earlier restore has renamed."""
    old, aside = Path(f"{path}{suffix}"), Path(f"{path}{ASIDE}{suffix}")
    if aside.is_dir():
        shutil.rmtree(aside)
    else:
        aside.unlink(missing_ok=True)
    if os.path.lexists(old):
        old.rename(aside)


def _copy(database: Path, copy: Path) -> None:
    """Copy the committed records of a database that may be in use, with the backup API of SQLite."""
    if not database.is_file():
        raise BackupError(
            f"Cannot read database {str(database)!r}: it does not exist. Give the controller's --database."
        )
    os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    with (
        closing(sqlite3.connect(f"file:{quote(str(database.absolute()))}?mode=rw", uri=True)) as source,
        closing(sqlite3.connect(copy)) as target,
    ):
        source.backup(target)


def _contents(copy: Path) -> Contents:
    """Return the contents of a copy that is not in use; raises StoreError when it is damaged."""
    with closing(sqlite3.connect(copy)) as connection:
        result = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if result != "ok":
        raise StoreError(f"Cannot read the database: it is damaged ({result}). Restore a backup.")
    with closing(Store(copy)) as store:
        state = store.load()
    return Contents(
        len(state.agents), len(state.clusters), len(state.allocations), len(state.partitions), len(state.users)
    )


def _sync(folder: Path) -> None:
    """Write renames in a folder to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _reason(error: Exception) -> str:
    return ((isinstance(error, OSError) and error.strerror) or str(error)).lower()
