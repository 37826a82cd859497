# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of the clock of a running controller."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from openipu.vipu.domain.model import Operation
from tests.attack.lying_agent import HEARTBEAT, LyingRack, rack
from tests.integration.agents.agents_support import Plane
from tests.waiting import until

__all__ = ["rack"]

DAY = 86_400.0


def wall_time(clock: Any, record: Any) -> float:
    return time.time()


@pytest.mark.defence("openipu.vipu.lifecycle.reset_clock.ResetClock.now", wall_time)
@pytest.mark.parametrize("jump", [-DAY, pytest.param(-10 * DAY, marks=pytest.mark.long)])
def test_automatic_resets_after_the_clock_was_set_back(
    tmp_path: Path, rack: LyingRack, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    true_time, offset = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: true_time() + offset[-1])
    plane = Plane(tmp_path / "vipu.db", rack, heartbeat=HEARTBEAT)
    try:
        plane.wait_up()
        rack.liar.lies["ConfigureReply"] = lambda reply: setattr(reply.results[0], "error", "no power")
        plane.create("p", 4)
        until(lambda: plane.partition("p").retries == 1)
        offset.append(jump)
        until(lambda: plane.partition("p").operation is Operation.FAILED or plane.partition("p").retries > 1)
        del rack.liar.lies["ConfigureReply"]
        before = len(rack.honest.calls)
        until(lambda: plane.partition("p").retries > 1 or len(rack.honest.calls) > before + 8)
        assert plane.partition("p").retries > 1, "the next reset is overdue"
    finally:
        plane.close()
