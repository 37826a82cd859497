# SPDX-License-Identifier: GPL-3.0-or-later
"""Unpack archives that this checkout made."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Unpack a trusted archive below a folder. The Python 3.11.2 of Debian 12 has no extraction filters."""
    options: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    archive.extractall(folder, **options)  # noqa: S202
