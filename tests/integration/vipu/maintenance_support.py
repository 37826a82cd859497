# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared parts of the maintenance tests."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path

from tests.integration.vipu_servers import Process

DAY = datetime.timedelta(days=1)
Start = Callable[..., Process]


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777
