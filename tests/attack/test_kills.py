# SPDX-License-Identifier: GPL-3.0-or-later
"""Durability of acknowledged changes: ``kill -9`` a hundred times on one database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration.faults import kills


def forget(transaction: Any) -> None:
    """Acknowledge a transaction without writing it."""


@pytest.mark.long
@pytest.mark.defence("openipu.vipu.storage.store.Transaction.commit", forget)
def test_hundred_kills_under_load(tmp_path: Path) -> None:
    kills.run(tmp_path, rounds=100, seed=kills.random_seed())
