# SPDX-License-Identifier: GPL-3.0-or-later
"""The transport over the command lines, with commands that tests make."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.vipu.transport_cli import CliTransport
from cli_steps import made
from recorded import Recorded


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    """Commands that know nothing yet."""
    return Recorded(tmp_path / "bin")


@pytest.fixture
def transport(recorded: Recorded) -> Iterator[CliTransport]:
    """A transport over those commands."""
    yield from made(recorded)
