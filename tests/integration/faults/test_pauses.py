# SPDX-License-Identifier: GPL-3.0-or-later
"""Short pauses of the controller, the agents and the network: running partitions are not reset."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.faults.pauses import PausedRack

LONGER_THAN_SILENCE = 5.5  # seconds; agents are Down after 5 s of silence


@pytest.fixture
def paused(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PausedRack]:
    rack = PausedRack(tmp_path_factory.mktemp("pauses"))
    yield rack
    rack.close()


def test_partitions_survive_pauses(paused: PausedRack) -> None:
    paused.pause("controller", LONGER_THAN_SILENCE)
    paused.assert_agents_stayed_up()
    paused.pause("agents", LONGER_THAN_SILENCE)
    paused.pause("network", LONGER_THAN_SILENCE)
    paused.assert_no_reset()
