# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures for controllers: certificates and watchers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from openipu.vipu.tls import issue
from tests.integration.vipu.maintenance_support import DAY
from tests.integration.watching import Watcher


@pytest.fixture
def certs(tmp_path: Path) -> Path:
    issue.create(tmp_path / "certs", ["127.0.0.1", "localhost"], 5 * DAY)
    return tmp_path / "certs"


@pytest.fixture
def watcher() -> Iterator[Callable[..., Watcher]]:
    """Yield a factory of watchers."""
    made: list[Watcher] = []

    def make(*arguments: Any, **options: Any) -> Watcher:
        made.append(Watcher(*arguments, **options))
        return made[-1]

    yield make
    for each in made:
        each.stop()
