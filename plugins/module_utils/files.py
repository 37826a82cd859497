# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_private(path: Path, content: str, mode: int = 0o600) -> None:
    """Write a file whole or not at all; only its owner can read it unless the mode says otherwise.

    A folder that is missing is made for the same readers.
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
