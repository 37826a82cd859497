# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures: switches served in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.eos_switches import Rack, ServedSwitch, rack_of_switches


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[Rack]:
    with rack_of_switches(tmp_path) as rack:
        yield rack


@pytest.fixture
def switch(rack: Rack) -> ServedSwitch:
    return rack.switch()
