# SPDX-License-Identifier: GPL-3.0-or-later
"""Pauses of the controller, the agents and the network: running partitions are not reset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration.faults.pauses import PARTS, check_long_pauses


def reset_at_once(health: Any, id: str, error: str) -> None:
    """Treat a silent agent as a restarted one."""
    health.lost(id, error)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.defence("openipu.vipu.lifecycle.health.PartitionHealth.unreachable", reset_at_once)
@pytest.mark.defence("openipu.vipu.fleet.silence.LATE", float("inf"))
@pytest.mark.parametrize("part", PARTS)
def test_partitions_survive_pauses_of_a_minute(tmp_path: Path, part: str) -> None:
    check_long_pauses(tmp_path, part)
