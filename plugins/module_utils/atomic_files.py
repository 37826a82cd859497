# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Atomic writing of files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_private(path: Path, content: str, mode: int = 0o600) -> None:
    """Write a file atomically; by default only its owner can read it.

    A missing folder is created for the same readers.
    """
    readers = mode & 0o444
    path.parent.mkdir(mode=0o700 | readers | readers >> 2, parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".%s." % path.name)
    try:
        with os.fdopen(descriptor, "w") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink()
        raise


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to disk, so that a power cut does not undo a rename."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
