# SPDX-License-Identifier: GPL-3.0-or-later
"""The file of a database: one process at a time, and a check that it is still the same file.

``flock`` is independent of the POSIX locks of SQLite. But closing any descriptor of a file releases the POSIX locks
of the process on it. So the descriptor stays open as long as the connection, and a file is opened only once.
"""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

from openipu.vipu.storage.interface import StoreError

_Identity = tuple[int, int]  # device and inode

_held: set[_Identity] = set()  # files that this process has locked
_holding = threading.Lock()


class DatabaseFile:
    """Lock on a database file. Other processes can read the database."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        """Lock a file, which ``create`` makes, readable by its owner only. Raises StoreError and OSError."""
        self.path = path
        self._pinned: dict[Path, tuple[_Identity, int]] = {}  # with the smallest possible size
        with _holding:
            if path.exists() and _identity(path.stat()) in _held:
                raise _in_use(path)
            # SQLite itself would create the file with permissions that let others read it.
            self._descriptor = os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), 0o600)
            try:
                self._identity = _identity(os.fstat(self._descriptor))
                _lock(self._descriptor)
                # A restore may have replaced the file since it was opened.
                if _identity(path.stat()) != self._identity:
                    raise BlockingIOError
            except BlockingIOError:
                os.close(self._descriptor)
                raise _in_use(path) from None
            except BaseException:
                os.close(self._descriptor)
                raise
            _held.add(self._identity)

    def pin(self) -> None:
        """Remember the identity of the file and of its write-ahead log, which must exist. Raises OSError.

        The file never shrinks, because the store does not vacuum it. Checkpoints may empty the log.
        """
        log = Path(f"{os.path.realpath(self.path)}-wal")  # SQLite writes it next to the target of a link
        size = os.fstat(self._descriptor).st_size
        self._pinned = {self.path.absolute(): (self._identity, size), log: (_identity(log.stat()), 0)}

    def lost(self) -> str:
        """Return the reason if a pinned file is truncated or no longer at its path, else an empty string."""
        for path, (identity, size) in self._pinned.items():
            try:
                status = path.stat()
                if _identity(status) != identity:
                    return f"file {str(path)!r} was replaced"
                if status.st_size < size:
                    return f"file {str(path)!r} was truncated"
            except FileNotFoundError:
                return f"file {str(path)!r} was deleted or moved"
            except OSError as error:
                return f"file {str(path)!r} cannot be reached: {str(error.strerror).lower()}"
        return ""

    def close(self) -> None:
        """Unlock the file. Close the connection first. Repeated calls have no effect."""
        with _holding:
            if self._descriptor >= 0:
                _held.discard(self._identity)
                os.close(self._descriptor)
                self._descriptor = -1


def _lock(descriptor: int) -> None:
    """Lock an open file against other processes until it is closed. Raises BlockingIOError."""
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _identity(status: os.stat_result) -> _Identity:
    return status.st_dev, status.st_ino


def _in_use(path: Path) -> StoreError:
    return StoreError(
        f"Cannot open database {str(path)!r}: another vipu-server uses it. Stop that one, or give another --database."
    )
