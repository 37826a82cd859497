# SPDX-License-Identifier: GPL-3.0-or-later
"""Databases of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from openipu.vipu.server.initialise import initialise
from openipu.vipu.storage.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    initialise(path)
    opened = Store(path)
    yield opened
    opened.close()
