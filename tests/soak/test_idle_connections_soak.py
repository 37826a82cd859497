# SPDX-License-Identifier: GPL-3.0-or-later
"""Ten thousand idle connections to the controller."""

from __future__ import annotations

from pathlib import Path

import pytest

from openipu.vipu.server.initialise import initialise
from tests.integration.faults import idle_connections
from tests.integration.vipu_servers import Process


@pytest.mark.soak
def test_ten_thousand_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in idle_connections.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    database = tmp_path / "vipu-server.db"
    initialise(database)
    server = Process("--database", str(database), "--log-level", "warning")
    try:
        idle_connections.check(server, connections=10_000, processes=4)
    finally:
        server.stop()
