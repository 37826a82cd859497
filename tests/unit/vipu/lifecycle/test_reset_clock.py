# SPDX-License-Identifier: GPL-3.0-or-later
"""Age of automatic resets while the clock of the controller changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openipu.vipu.domain import partition_state
from openipu.vipu.domain.model import Operation, Partition, PlacedIpu
from openipu.vipu.lifecycle.reset_clock import ResetClock

DAY = 86_400.0
FAILED = Partition("p", "a1", "cl0", (PlacedIpu(0, 0, 0, 0),), operation=Operation.FAILED, retries=2)


class Times:
    """Wall clock that changes, and steady time."""

    def __init__(self) -> None:
        self.wall, self.steady = 1_000_000.0, 500.0
        self.clock = ResetClock(lambda: self.wall, lambda: self.steady)

    def pass_by(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds

    def delay(self, record: Partition) -> float:
        return partition_state.auto_reset_due(record) - self.clock.now(record)


@pytest.mark.parametrize("jump", [-365 * DAY, -DAY, -1.0, 0.0, 1.0, DAY])
def test_changes_of_the_clock_have_no_effect(jump: float) -> None:
    times = Times()
    record = replace(FAILED, last_auto_reset=times.wall)
    assert times.delay(record) == 1.0
    times.pass_by(0.25)
    times.wall += jump
    assert times.delay(record) == 0.75
    times.pass_by(partition_state.RETRY_EXPIRY - 1)
    idle = replace(record, operation=Operation.IDLE)
    assert partition_state.lost(idle, "lost.", times.clock.now(idle)).retries == 2
    times.pass_by(1.0)
    assert partition_state.lost(idle, "lost.", times.clock.now(idle)).retries == 0


def test_a_reset_in_the_future_counts_as_now() -> None:
    """The clock was set back while the controller was stopped, or directly after the reset."""
    times = Times()
    record = replace(FAILED, last_auto_reset=times.wall + DAY)
    assert times.delay(record) == 1.0
    times.pass_by(1.0)
    assert times.delay(record) == 0.0


def test_each_reset_is_measured() -> None:
    times = Times()
    first = replace(FAILED, last_auto_reset=times.wall)
    assert times.delay(first) == 1.0
    times.pass_by(5.0)
    second = replace(FAILED, last_auto_reset=times.wall)
    assert times.delay(second) == 1.0
    times.clock.drop("p")
    assert not times.clock._noted
    assert times.clock.now(replace(FAILED, last_auto_reset=None)) == times.wall
