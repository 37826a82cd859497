# SPDX-License-Identifier: GPL-3.0-or-later
"""Switches of the twin, and their cables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.eos_switches import Cables, Rack, ServedSwitch, rack_of_switches
from tests.integration.twin_eos.eapi_support import CABLES


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[Rack]:
    with rack_of_switches(tmp_path) as rack:
        yield rack


@pytest.fixture
def switch(rack: Rack) -> ServedSwitch:
    return rack.switch(cabling=Cables(CABLES))
