# SPDX-License-Identifier: GPL-3.0-or-later
"""An acknowledged change survives ``kill -9``, a hundred times over on one database."""

from __future__ import annotations

import os
from pathlib import Path

import kills
import pytest


@pytest.mark.soak
def test_hundred_kills_in_a_storm(tmp_path: Path) -> None:
    kills.run(tmp_path, rounds=100, seed=int.from_bytes(os.urandom(4), "big"))
