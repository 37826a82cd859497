# SPDX-License-Identifier: GPL-3.0-or-later
"""A thousand idle connections (ten thousand: tests/soak)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.integration.faults import idle_connections
from tests.integration.vipu_servers import Process


def test_thousand_connections(vipu_process: Callable[..., Process], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in idle_connections.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    idle_connections.check(vipu_process("--log-level", "warning"), connections=1000, processes=2)
