# SPDX-License-Identifier: GPL-3.0-or-later
"""Acknowledged changes survive ``kill -9``; tests/soak runs 100 rounds.

Each run draws a random seed. A failure reports it; set ``OPENIPU_KILL_SEED`` to run with it again.
"""

from __future__ import annotations

from pathlib import Path

from tests.integration.faults import kills


def test_kills_under_load(tmp_path: Path) -> None:
    kills.run(tmp_path, rounds=10, seed=kills.random_seed())
