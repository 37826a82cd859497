# SPDX-License-Identifier: GPL-3.0-or-later
"""Pauses of up to a minute of the controller, the agents and the network: no running partition is reset."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.faults.pauses import PARTS, check_long_pauses


@pytest.mark.soak
@pytest.mark.parametrize("part", PARTS)
def test_partitions_survive_pauses_of_a_minute(tmp_path: Path, part: str) -> None:
    check_long_pauses(tmp_path, part)
