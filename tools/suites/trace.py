# SPDX-License-Identifier: GPL-3.0-or-later
"""Trace which tracked files a suite reads, by their access times.

The access time of each file is set to a time before its modification time. The kernel then records the
first read, by any process, also with the mount option ``relatime``. Compiled Python modules would hide
reads of their sources, so a traced suite compiles into a folder of its own (``PYTHONPYCACHEPREFIX``).

Limits: reads from git objects (a clone of the checkout) and through mounts without access times are not seen.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_UNREAD = 1_000_000_000  # ns since 1970: before any file of the project was written


def start(root: Path, names: Iterable[str]) -> None:
    """Mark files as unread."""
    for name in names:
        path = root / name
        os.utime(path, ns=(_UNREAD, path.lstat().st_mtime_ns), follow_symlinks=False)


def files_read(root: Path, names: Iterable[str]) -> list[str]:
    """Return the files that were read since ``start``."""
    return [name for name in names if (root / name).exists() and (root / name).lstat().st_atime_ns != _UNREAD]


def records_reads(folder: Path) -> bool:
    """Return whether the file system of a folder records reads (it does not with ``noatime``)."""
    probe = folder / "trace-probe"
    probe.write_text("x")
    start(folder, [probe.name])
    probe.read_text()
    traced = bool(files_read(folder, [probe.name]))
    probe.unlink()
    return traced
