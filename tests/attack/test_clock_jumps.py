# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of the clock, of a running controller and before a restore."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openipu.vipu.domain.deployment import next_epoch
from openipu.vipu.domain.model import Operation
from openipu.vipu.fleet.status import AgentState
from openipu.vipu.lifecycle.interface import LifecycleOptions
from openipu.vipu.storage import backup, deployment
from openipu.vipu.storage.position import UNKNOWN, Position
from tests.attack.lying_agent import HEARTBEAT, LyingRack, rack
from tests.attack.test_foreign_controllers import accept
from tests.integration.agents.agents_support import Plane
from tests.integration.vipu_servers import InProcess, Machines, partition, pod, wait_active
from tests.waiting import until

__all__ = ["rack"]

DAY = 86_400.0
FAST = LifecycleOptions(heartbeat=HEARTBEAT, partition_timeout=5.0)


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


@pytest.mark.defence("openipu.vipu.agent.ownership.rejection", accept)
def test_a_restore_on_an_empty_host_whose_clock_is_behind(
    vipu_server: Callable[..., InProcess], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agents reject its epoch and the reason has the remedy: set the clock and restart. No job stops."""
    machines = Machines(1)
    hardware = machines._rack.machines["ag01"].hardware

    def started(database: Path, clock: float) -> InProcess:
        with monkeypatch.context() as changed:
            changed.setattr(deployment, "next_epoch", lambda last, now: next_epoch(last, now + clock))
            return vipu_server(database, lifecycle=FAST)

    try:
        first = started(tmp_path / "first.db", 0)
        pod(first, machines)
        first.user.CreatePartition(partition("job", 4))
        wait_active(first, "job")
        archive, _ = backup.create(tmp_path / "first.db", tmp_path / "certs", tmp_path / "backup.tar.gz")
        first.stop()
        second = started(tmp_path / "first.db", DAY)
        until(lambda: second.life.agent_status("ag01").state is AgentState.UP)
        second.stop()
        (tmp_path / "empty").mkdir()
        restored = tmp_path / "empty" / "vipu.db"
        backup.restore(archive, restored, None, overwrite=False)
        behind = started(restored, 0)
        until(lambda: "set its clock and restart it" in behind.life.agent_status("ag01").reason)
        assert "job" in hardware._shares
        behind.stop()
        corrected = started(restored, 2 * DAY)
        until(lambda: corrected.life.agent_status("ag01").state is AgentState.UP)
        wait_active(corrected, "job")
        assert "job" in hardware._shares
    finally:
        machines.stop()


def unknown(database: Path, folder: Path) -> Position:
    """Read nothing of the replaced database."""
    return UNKNOWN


@pytest.mark.defence("openipu.vipu.storage.position.read", unknown)
def test_a_restore_after_the_clock_was_ahead_stops_no_job(
    vipu_server: Callable[..., InProcess], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replaced controller has a later epoch than the time. Its shares are not older than the restore then."""
    machines = Machines(1)
    hardware = machines._rack.machines["ag01"].hardware
    database = tmp_path / "vipu.db"
    try:
        first = vipu_server(database, lifecycle=FAST)
        pod(first, machines)
        archive, _ = backup.create(database, tmp_path / "certs", tmp_path / "backup.tar.gz")
        first.stop()
        with monkeypatch.context() as ahead:
            ahead.setattr(deployment, "next_epoch", lambda last, now: next_epoch(last, now + DAY))
            second = vipu_server(database, lifecycle=FAST)
        second.user.CreatePartition(partition("job", 4))
        wait_active(second, "job")
        second.stop()
        backup.restore(archive, database, None, overwrite=True)
        restored = vipu_server(database, lifecycle=FAST)
        until(lambda: restored.life.agent_status("ag01").state is AgentState.UP)
        until(lambda: restored.life.quarantined() or "job" not in hardware._shares)
        assert "job" in hardware._shares
    finally:
        machines.stop()
