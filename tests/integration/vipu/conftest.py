# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of controllers."""

from __future__ import annotations

from pathlib import Path

import pytest

from openipu.vipu.tls import issue
from tests.integration.vipu.maintenance_support import DAY


@pytest.fixture
def certs(tmp_path: Path) -> Path:
    issue.create(tmp_path / "certs", ["127.0.0.1", "localhost"], 5 * DAY)
    return tmp_path / "certs"
