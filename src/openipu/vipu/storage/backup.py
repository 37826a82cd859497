# SPDX-License-Identifier: GPL-3.0-or-later
"""Backup and restore of a controller: its records and certificates in one archive.

The copied records are verified before the archive is written. The archive is read back, and appears only when it
is complete. It contains private keys and hashes of access keys, so only its owner can read it.
"""

from __future__ import annotations

import datetime
import gzip
import json
import os
import shutil
import sqlite3
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote

from openipu.shared.atomic_files import sync_folder
from openipu.vipu.storage import losses, position
from openipu.vipu.storage.database_file import DatabaseFile
from openipu.vipu.storage.last_revision import SUFFIX, LastRevision
from openipu.vipu.storage.replacement import ASIDE, BackupError, Move, Replacement, recover
from openipu.vipu.storage.store import Store

__all__ = ["ASIDE", "FORMAT", "PATTERN", "BackupError", "Contents", "check", "create", "prune", "restore"]

FORMAT = 1
PATTERN = f"vipu-{8 * '[0-9]'}T{6 * '[0-9]'}.{6 * '[0-9]'}Z.tar.gz"
_DEREFERENCE = True  # an archive has the targets of links, because links are not restored
DATABASE, CERTS, _MANIFEST = "vipu-server.db", "certs", "backup.json"
_CHUNK = 1 << 20  # bytes
_DAMAGED = (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError)
_MAX_DEPTH = 64  # names in a path of an archive; Python cannot remove folders that are nested too deep


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


def check(database: Path) -> tuple[Contents, str]:
    """Return contents and deployment id of a database, which may be in use. Raises BackupError and StoreError."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / DATABASE
            _copy(database, copy)
            contents = contents_of(copy)
            with closing(Store(copy)) as store:
                return contents, store.deployment_id()
    except (OSError, sqlite3.Error) as error:
        raise BackupError(f"Cannot read database {str(database)!r}: {reason_of(error)}.") from None


def create(
    database: Path, certs: Path, target: Path, copy_records: Callable[[Path], None] | None = None
) -> tuple[Path, Contents]:
    """Back up a controller, which may be running; return the path of the archive and its contents.

    ``copy_records`` writes the records of another store into a new database. ``target`` is a file, or a folder for a
    file with the time in its name. ``certs`` may be missing.
    Raises BackupError and StoreError, and leaves no partial backup.
    """
    if target.is_dir():
        target = target / f"vipu-{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%S.%fZ}.tar.gz"
    try:
        if copy_records is None:
            recover(database)
        with tempfile.TemporaryDirectory(prefix=".backup.", dir=target.parent) as folder:
            copy, archive, again = (Path(folder) / name for name in (DATABASE, "archive", "again"))
            (copy_records or partial(_copy, database))(copy)
            contents = contents_of(copy)
            manifest = Path(folder) / _MANIFEST
            manifest.write_text(json.dumps({"format": FORMAT, "contents": asdict(contents)}))
            files = {_MANIFEST: manifest, DATABASE: copy, **_certificates(certs)}
            _pack(files, archive)
            again.mkdir()
            unpack(archive, again, again)
            if {str(path.relative_to(again)) for path in again.rglob("*") if path.is_file()} != files.keys():
                raise BackupError(f"Cannot back up {str(certs)!r}: it changed meanwhile. Try again.")
            archive.replace(target)
            sync_folder(target.parent)
    except (OSError, sqlite3.Error) as error:
        raise BackupError(
            f"Cannot back up {str(database)!r} to {str(target)!r}: {reason_of(error)}. "
            "No backup was created. Older backups are unchanged."
        ) from None
    return target, contents


def _certificates(certs: Path) -> dict[str, Path]:
    """Return the files of a folder by their names in the archive. Links are followed. Raises BackupError, OSError."""
    if not certs.is_dir():
        return {}
    files = {}
    for path in _walk(certs):
        try:
            os.path.realpath(path, strict=True)
        except FileNotFoundError:
            raise BackupError(
                f"Cannot back up certificate {str(path)!r}: it is a link to a missing file. Correct or remove the link."
            ) from None
        files[str(CERTS / path.relative_to(certs))] = path
    return files


def _walk(folder: Path) -> Iterator[Path]:
    def reject(error: OSError) -> None:
        raise error

    for parent, _, names in os.walk(folder, followlinks=True, onerror=reject):
        yield from (Path(parent, name) for name in names)


def _pack(files: Mapping[str, Path], archive: Path) -> None:
    """Write an archive of files by name, readable by its owner only."""
    with os.fdopen(os.open(archive, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        with tarfile.open(fileobj=file, mode="w:gz", dereference=_DEREFERENCE) as tar:
            for name, path in files.items():
                tar.add(path, name)
        file.flush()
        os.fsync(file.fileno())


def prune(folder: Path, keep: int, new: Path) -> list[Path]:
    """Remove all but ``keep`` backups of a folder: ``new`` and the newest of the others; return the removed files.

    A clock that was ahead gave older backups later names. Raises BackupError.
    """
    others = sorted(file for file in folder.glob(PATTERN) if file.name != new.name)
    old = others[: max(0, len(others) - keep + 1)]
    for file in old:
        try:
            file.unlink()
        except OSError as error:
            raise BackupError(f"Cannot remove old backup {str(file)!r}: {reason_of(error)}.") from None
    return old


def restore(
    archive: Path,
    database: Path,
    certs: Path | None,
    *,
    overwrite: bool = False,
    confirm: losses.Confirm = losses.accept,
) -> Contents:
    """Replace the files of a controller by those of a backup; return the contents of the backup.

    Existing files need ``overwrite``, and are kept under names that end with ``ASIDE``. Records of an
    older release are migrated. Without ``certs``, certificates stay unchanged. ``confirm`` is called before
    partitions lose their records, and stops the restore with BackupError. Raises BackupError and StoreError,
    and then changes nothing. ``replacement.recover`` completes a restore that was killed.
    """
    try:
        recover(database)
        for path in (database, certs):
            if not overwrite and path is not None and os.path.lexists(path):
                raise BackupError(
                    f"Cannot restore {str(archive)!r}: {str(path)!r} already exists. Nothing was restored. "
                    "Give --overwrite to replace it, or another --database and --certs."
                )
        for parent in {database.parent, certs.parent if certs else database.parent}:
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with Replacement(database) as replacement:
            records, keys = replacement.folder(database), replacement.folder(certs or database)
            contents = read_archive(archive, records, keys)
            with closing(Store(records / DATABASE)) as store:
                # Its epochs and revisions may have been used again after the backup.
                store.reset_revisions(position.read(database, replacement.folder(database)))
                restored = store.load()
            moves = list(moves_aside(database, records / "old", ("-wal", "-shm", SUFFIX, "")))
            moves.append((records / DATABASE, database))
            if certs and (keys / CERTS).is_dir():
                moves += [*moves_aside(certs, keys / "old"), (keys / CERTS, certs)]
            with ExitStack() as locked:
                # No controller can start with restored records before the certificates are restored too.
                for file in (database, records / DATABASE):
                    if file.exists():
                        locked.enter_context(closing(DatabaseFile(file)))
                if database.exists() and (lost := losses.find(database, restored, replacement.folder(database))):
                    confirm(lost)
                replacement.move(moves)
    except (OSError, sqlite3.Error) as error:
        raise BackupError(
            f"Cannot restore {str(archive)!r} to {str(database)!r}: {reason_of(error)}. Nothing was restored."
        ) from None
    return contents


def read_archive(archive: Path, records: Path, keys: Path) -> Contents:
    """Unpack a backup and return its contents. Raises BackupError when records are missing."""
    expected = unpack(archive, records, keys)
    contents = contents_of(records / DATABASE)
    if asdict(contents) != expected:
        raise BackupError(f"Cannot restore {str(archive)!r}: it is damaged, records are missing. Use another backup.")
    return contents


def unpack(archive: Path, records: Path, keys: Path) -> object:
    """Unpack records and certificates next to their destinations; return the contents listed in the manifest."""
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                path = _relative_path(member)
                if path is not None:
                    _extract(tar, member, (keys if path.parts[0] == CERTS else records) / path)
            # The end of the stream has the only checksum of the certificates, and tarfile does not read it.
            while tar.fileobj is not None and tar.fileobj.read(_CHUNK):
                pass
        (records / DATABASE).stat()
        return _read_manifest(records / _MANIFEST, archive)
    except (*_DAMAGED, FileNotFoundError, FileExistsError, ValueError, RecursionError):
        if not archive.exists():
            raise
        raise BackupError(
            f"Cannot restore {str(archive)!r}: it is not a backup of a controller, or it is damaged. "
            "Use another backup."
        ) from None


def _relative_path(member: tarfile.TarInfo) -> Path | None:
    """Return the relative path of a file of a backup; None for other members. Raises ValueError."""
    path = Path(member.name)
    if len(path.parts) > _MAX_DEPTH:
        raise ValueError
    known = member.name in (DATABASE, _MANIFEST) or (path.parts[:1] == (CERTS,) and len(path.parts) > 1)
    return path if known and member.isfile() and ".." not in path.parts else None


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    """Write a file with owner-only permissions; group and others may read it if the archive says so."""
    _make_folders(target.parent)
    source = tar.extractfile(member)
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        if source is not None:
            shutil.copyfileobj(source, file)
        os.fchmod(file.fileno(), member.mode & 0o644)
        file.flush()
        os.fsync(file.fileno())


def _make_folders(folder: Path) -> None:
    """Create a folder and its parents. ``Path.mkdir`` would create the parents readable by others."""
    if not folder.is_dir():
        _make_folders(folder.parent)
        folder.mkdir(mode=0o700)


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


def moves_aside(path: Path, old: Path, suffixes: Sequence[str] = ("",)) -> Iterator[Move]:
    """Yield the moves that keep a file or folder under another name. What an earlier restore kept moves to ``old``."""
    for suffix in suffixes:
        current, aside = Path(f"{path}{suffix}"), Path(f"{path}{ASIDE}{suffix}")
        if os.path.lexists(aside):
            yield aside, Path(f"{old}{suffix}")
        if os.path.lexists(current):
            yield current, aside


def _copy(database: Path, copy: Path) -> None:
    """Copy the committed records of a database that may be in use, with the backup API of SQLite."""
    if not database.is_file():
        raise BackupError(
            f"Cannot read database {str(database)!r}: it does not exist. Give the controller's --database."
        )
    os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    with closing(LastRevision(copy)) as last:
        last.begin(LastRevision(database).read())  # before the records, which may have more revisions then
    with (
        closing(sqlite3.connect(f"file:{quote(str(database.absolute()))}?mode=rw", uri=True)) as source,
        closing(sqlite3.connect(copy)) as target,
    ):
        source.backup(target)


def contents_of(copy: Path) -> Contents:
    """Return the contents of a copy that is not in use; raises StoreError when it is damaged."""
    with closing(Store(copy)) as store:
        state = store.load()
    return Contents(
        len(state.agents), len(state.clusters), len(state.allocations), len(state.partitions), len(state.users)
    )


def reason_of(error: Exception) -> str:
    """Return the cause of an error as a clause."""
    return ((isinstance(error, OSError) and error.strerror) or str(error)).lower()
