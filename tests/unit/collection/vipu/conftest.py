# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures for the command line transport with recorded commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.vipu.transport.command_line import CliTransport

from tests.unit.collection.vipu.cli_steps import made
from tests.unit.collection.vipu.recorded import Recorded


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    """Return commands without recordings."""
    return Recorded(tmp_path / "bin")


@pytest.fixture
def transport(recorded: Recorded) -> Iterator[CliTransport]:
    """Yield a transport over those commands."""
    yield from made(recorded)
