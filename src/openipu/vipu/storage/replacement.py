# SPDX-License-Identifier: GPL-3.0-or-later
"""Replacement of several files at once: a kill leaves all old or all new files, after ``recover``.

A journal next to the database lists temporary folders, and then all renames, before the first one happens. Each line
has a checksum, and is on disk before it takes effect. A file is recognised by its inode, which a rename does not
change. So ``recover`` finds out which renames are missing, and completes them. Without a line of renames it only
removes the folders.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import shutil
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from openipu.shared.atomic_files import sync_folder

ASIDE = ".before-restore"
"""End of the names of replaced files that are kept."""

Move = tuple[Path, Path]  # old path, new path
_Entry = tuple[Path, Path, int]  # also the inode of the file


class BackupError(Exception):
    """Raised when a backup cannot be created, read or restored."""

    error_code = "OPU613"


class RecordsWouldBeLostError(BackupError):
    """Raised when a restore was not confirmed, although partitions would lose their records."""

    error_code = "OPU623"


def recover(database: Path) -> None:
    """Complete or undo an interrupted replacement of files of a controller. Raises BackupError and OSError."""
    if os.path.lexists(journal_of(database)):
        Replacement(database).close()


def journal_of(database: Path) -> Path:
    """Return the path of the journal."""
    return Path(f"{database}.restore")


class Replacement:
    """Exclusive right to replace the files of a controller, and its journal. Use it as a context manager."""

    def __init__(self, database: Path) -> None:
        """Recover first. Raises BackupError, even when another process replaces files, and OSError."""
        self._database = database
        self._path = journal_of(database)
        self._incomplete = False
        self._descriptor = self._lock()
        try:
            self._recover()
            os.ftruncate(self._descriptor, 0)
            sync_folder(self._path.parent)
        except BaseException:
            os.close(self._descriptor)
            raise

    def __enter__(self) -> Replacement:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def folder(self, path: Path) -> Path:
        """Create a temporary folder next to a path, readable by its owner only. ``close`` removes it."""
        folder = path.absolute().parent / f".restore.{secrets.token_hex(4)}"
        self._write({"folder": str(folder)})
        folder.mkdir(mode=0o700)
        return folder

    def move(self, moves: Sequence[Move]) -> None:
        """Move all files durably, or none of them. No file is moved twice.

        Raises OSError; BackupError when files cannot be moved back, which the next ``recover`` completes.
        """
        entries = [(source.absolute(), target.absolute(), source.lstat().st_ino) for source, target in moves]
        self._write({"moves": [(str(source), str(target), inode) for source, target, inode in entries]})
        self._incomplete = True
        try:
            _complete(entries)
        except BaseException:
            _move_back(entries)
            self._end_moves()
            raise
        self._end_moves()  # before ``close`` removes the folders, which contain targets

    def close(self) -> None:
        """Remove the temporary folders and the journal."""
        try:
            if not self._incomplete:
                self._recover()
                self._path.unlink()
        finally:
            os.close(self._descriptor)

    def _lock(self) -> int:
        while True:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _inode(self._path) == os.fstat(descriptor).st_ino:
                    return descriptor
            except BlockingIOError:
                os.close(descriptor)
                raise BackupError(
                    f"Cannot use database {str(self._database)!r}: a restore of it is running. Wait until it has ended."
                ) from None
            os.close(descriptor)  # the other process has just ended and removed its journal

    def _write(self, line: dict[str, Any]) -> None:
        content = encode(line)
        if os.write(self._descriptor, content) < len(content):  # the next recovery ignores an incomplete line
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        os.fsync(self._descriptor)

    def _end_moves(self) -> None:
        """Remove the line of moves, which is the last one."""
        os.ftruncate(self._descriptor, self._content()[:-1].rfind(b"\n") + 1)
        os.fsync(self._descriptor)
        self._incomplete = False

    def _recover(self) -> None:
        """Complete the moves of the journal, and remove its folders."""
        content = self._content()
        complete = content[: content.rfind(b"\n") + 1]
        os.ftruncate(self._descriptor, len(complete))
        try:
            lines = [_decode(line) for line in complete.splitlines()]
        except ValueError:
            raise BackupError(
                f"Cannot complete an interrupted restore: its journal {str(self._path)!r} is damaged. Remove the "
                "journal, and restore the backup again."
            ) from None
        if lines and "moves" in lines[-1]:
            _complete([(Path(source), Path(target), inode) for source, target, inode in lines.pop()["moves"]])
            self._end_moves()
        for line in lines:
            if os.path.lexists(line["folder"]):
                shutil.rmtree(line["folder"])

    def _content(self) -> bytes:
        return os.pread(self._descriptor, os.fstat(self._descriptor).st_size, 0)


def encode(line: dict[str, Any]) -> bytes:
    """Return a line of a journal: a checksum and JSON."""
    content = json.dumps(line).encode()
    return b"%08x %s\n" % (zlib.crc32(content), content)


def _decode(line: bytes) -> dict[str, Any]:
    """Return the content of a line of a journal. Raises ValueError when it is damaged."""
    checksum, _, content = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(content):
        raise ValueError
    values: dict[str, Any] = json.loads(content)
    return values


def _complete(moves: Sequence[_Entry]) -> None:
    """Make the moves that are missing, in order."""
    for source, target, inode in moves:
        if _inode(target) != inode:
            if os.path.lexists(target) or _inode(source) != inode:
                raise BackupError(
                    f"Cannot complete an interrupted restore: {str(source)!r} cannot be moved to {str(target)!r}, "
                    "because one of them was changed meanwhile. Put the right files in place, remove the journal with "
                    "suffix '.restore', and start again."
                )
            source.rename(target)
    for folder in {target.parent for _, target, _ in moves}:
        sync_folder(folder)


def _move_back(moves: Sequence[_Entry]) -> None:
    """Undo the moves that were made."""
    for source, target, inode in reversed(moves):
        if _inode(target) == inode:
            try:
                target.rename(source)
            except OSError as error:
                raise BackupError(
                    f"Cannot move {str(target)!r} back to {str(source)!r}: {str(error.strerror).lower()}. The restore "
                    "is incomplete. Correct the cause, and start the controller to complete it."
                ) from None


def _inode(path: Path) -> int | None:
    try:
        return path.lstat().st_ino
    except FileNotFoundError:
        return None
