# SPDX-License-Identifier: GPL-3.0-or-later
"""The fixtures and the order of the integration tests."""

from __future__ import annotations

from tests.integration.conftest import (
    instant_server,
    machines,
    pytest_collection_modifyitems,
    pytest_configure,
    quiet,
    vipu_process,
    vipu_server,
)
from tests.integration.pdu.conftest import agents

__all__ = [
    "agents",
    "instant_server",
    "machines",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "quiet",
    "vipu_process",
    "vipu_server",
]
