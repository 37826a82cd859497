# SPDX-License-Identifier: GPL-3.0-or-later
"""Locks of folders that processes of the tools share."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from tools.locks import folder_lock


def test_a_locked_folder_has_one_holder(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "images"
    with folder_lock(folder), (folder / "lock").open("w") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)  # only an exclusive lock blocks this one
    with folder_lock(folder):
        pass
