# SPDX-License-Identifier: GPL-3.0-or-later
"""Long pauses of the controller, the agents and the network: running partitions are not reset."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.faults.pauses import PARTS, PausedRack


@pytest.mark.soak
@pytest.mark.parametrize("part", PARTS)
def test_partitions_survive_pauses_of_a_minute(tmp_path: Path, part: str) -> None:
    rack = PausedRack(tmp_path)
    try:
        for seconds in (1.0, 5.5, 20.0, 60.0):
            rack.pause(part, seconds)
            rack.assert_no_reset()
    finally:
        rack.close()
