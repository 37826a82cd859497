# SPDX-License-Identifier: GPL-3.0-or-later
"""An acknowledged change survives ``kill -9`` (a hundred rounds of it: tests/soak)."""

from __future__ import annotations

import os
from pathlib import Path

import kills


def test_kills_in_a_storm(tmp_path: Path) -> None:
    kills.run(tmp_path, rounds=10, seed=int.from_bytes(os.urandom(4), "big"))
