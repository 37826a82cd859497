# SPDX-License-Identifier: GPL-3.0-or-later
"""Shares that the records do not contain: they may belong to running jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest

from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.agent_api.contract import agent as contract
from openipu.vipu.domain import capacity
from openipu.vipu.domain.deployment import Deployment
from openipu.vipu.fleet.agent_messages import HeldShare
from openipu.vipu.fleet.status import AgentState, QuarantinedShare
from openipu.vipu.lifecycle.interface import LifecycleOptions
from openipu.vipu.lifecycle.quarantine import Quarantine
from openipu.vipu.storage import backup
from openipu.vipu.storage.interface import StoppedError
from tests.attack.lying_agent import LyingRack, plane, rack
from tests.integration.agents.agents_support import EventCounter, Plane
from tests.integration.vipu_servers import InProcess, Machines, partition, pod, wait_active
from tests.waiting import until

__all__ = ["plane", "rack"]

FAST = LifecycleOptions(heartbeat=0.2, partition_timeout=5.0)
SETTLED = 3  # events of each agent; the first automatic reset would follow the first one


def release_all(share: HeldShare, deployment: Deployment) -> bool:
    """Release every unknown share, in place of ``may_release``."""
    return True


def block_nothing(self: Quarantine, agent_id: str, partition_id: str, ipus: Any) -> None:
    """Send every share, in place of ``Quarantine.blocking``."""


def without_quarantine(
    state: Any, allocation: Any, unavailable: frozenset[str] = frozenset(), quarantined: Mapping[str, int] | None = None
) -> Any:
    """Return the occupancy by records only."""
    return _occupancy_of(state, allocation, unavailable)


_occupancy_of = capacity.occupancy_of


@dataclass
class Restored:
    """Controller that was restored from a backup without its newest partition, and the machines."""

    server: InProcess
    machines: Machines

    def __post_init__(self) -> None:
        self._events = EventCounter(self.server.life)

    def held(self) -> dict[str, dict[str, list[int]]]:
        """Return agent -> partition -> its IPUs, as the machines know them."""
        return {
            machine.id: {id: sorted(each.ipu for each in share.ipus) for id, share in machine.hardware._shares.items()}
            for machine in self.machines._rack.machines.values()
        }

    def quarantine(self) -> list[Any]:
        return list(self.server.admin.ListQuarantine(admin.ListQuarantineRequest()).shares)

    def settle(self) -> None:
        """Wait until the agents are up and several of their events were handled."""
        status = self.server.life.agent_status
        until(lambda: all(status(agent.id).state is AgentState.UP for agent in self.machines.agents))
        for agent in self.machines.agents:
            self._events.wait(agent.id, SETTLED)

    def release(self, agent_id: str, partition_id: str = "") -> list[str]:
        request = admin.ReleaseQuarantineRequest(agent_id=agent_id, partition_id=partition_id)
        return [share.partition_id for share in self.server.admin.ReleaseQuarantine(request).shares]


@pytest.fixture
def restored(
    vipu_server: Callable[..., InProcess], tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Restored]:
    """Restore a backup of the time when only the partition ``old`` existed, if the parameter is ``keeps old``.

    ``removes old``: it was removed after the backup. In both cases ``new`` was created afterwards.
    """
    machines = Machines(2)
    database = tmp_path / "vipu.db"
    first = vipu_server(database, lifecycle=FAST)
    pod(first, machines)
    first.user.CreatePartition(partition("old", 4))
    wait_active(first, "old")
    archive, _ = backup.create(database, tmp_path / "certs", tmp_path / "backup.tar.gz")
    if getattr(request, "param", "") == "removes old":
        first.user.RemovePartition(virmgrpc.RemovePartitionRequest(partition_id="old"))
    first.user.CreatePartition(partition("new", 4))
    wait_active(first, "new")
    first.stop()
    backup.restore(archive, database, None, overwrite=True)
    yield Restored(vipu_server(database, lifecycle=FAST), machines)
    machines.stop()


@pytest.mark.defence("openipu.vipu.lifecycle.quarantine.may_release", release_all)
def test_a_restore_stops_no_job(restored: Restored) -> None:
    before = restored.held()
    assert before == {"ag01": {"old": [0, 1, 2, 3]}, "ag02": {"new": [0, 1, 2, 3]}}
    restored.settle()
    assert restored.held() == before
    (share,) = restored.quarantine()
    assert (share.agent_id, share.partition_id, list(share.ipus), share.releasing) == (
        "ag02",
        "new",
        [0, 1, 2, 3],
        False,
    )
    assert restored.release("ag02", "new") == ["new"]
    assert restored.held()["ag02"] == {}
    assert restored.quarantine() == []
    restored.server.user.CreatePartition(partition("next", 4))
    wait_active(restored.server, "next")


@pytest.mark.long
@pytest.mark.parametrize("restored", ["removes old"], indirect=True)
@pytest.mark.defence("openipu.vipu.lifecycle.quarantine.Quarantine.blocking", block_nothing)
def test_a_record_of_a_backup_takes_no_ipus_from_a_job(restored: Restored) -> None:
    before = restored.held()
    assert before == {"ag01": {"new": [0, 1, 2, 3]}, "ag02": {}}
    restored.settle()
    assert restored.held() == before
    status = restored.server.user.GetPartitionStatus(virmgrpc.GetPartitionStatusRequest(partition_id="old")).status
    assert status.ready_state == virmgrpc.PS_ERROR
    assert "IPUs 0, 1, 2, 3 of agent 'ag01' are in quarantine." in " ".join(status.errors)
    assert "new" not in " ".join(status.errors), "it may belong to another tenant"
    assert restored.release("ag01") == ["new"]
    restored.server.user.ResetPartition(virmgrpc.ResetPartitionRequest(partition_id="old"))
    wait_active(restored.server, "old")


@pytest.mark.defence("openipu.vipu.domain.partitions.occupancy_of", without_quarantine)
def test_no_partition_is_placed_in_quarantine(restored: Restored) -> None:
    restored.settle()
    try:
        restored.server.user.CreatePartition(partition("next", 4))
    except grpc.RpcError as error:
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "'ag02'" in error.details()
        assert "in quarantine" in error.details()
        return
    pytest.fail("the partition was placed on IPUs in quarantine")


def trust_events(self: Quarantine, agent_id: str, unknown: Any) -> bool:
    """Put nothing into quarantine, in place of ``Quarantine.update``."""
    return False


@pytest.mark.defence("openipu.vipu.lifecycle.quarantine.Quarantine.update", trust_events)
def test_listed_ipus_in_quarantine_are_rejected(restored: Restored) -> None:
    restored.settle()
    ipus = [virmgrpc.PartitionIpu(topology_id=number) for number in range(4, 8)]
    with pytest.raises(grpc.RpcError) as caught:
        restored.server.user.CreatePartition(partition("next", 4, cluster_id="cl0", ipus=ipus))
    assert "IPU 0 of agent 'ag02' is in quarantine" in caught.value.details()


async def release_any(self: Quarantine, queue: Any, partition_id: str, timeout: float) -> list[QuarantinedShare]:
    """Release all shares of an agent, in place of ``Quarantine.release``."""
    for id in ("old", "new"):
        queue.release(id)
    return []


@pytest.mark.long
@pytest.mark.defence("openipu.vipu.lifecycle.quarantine.Quarantine.release", release_any)
def test_nothing_else_can_be_released(restored: Restored) -> None:
    restored.settle()
    before = restored.held()
    for agent, name in (("ag09", ""), ("ag02", "old"), ("ag01", "")):
        with pytest.raises(grpc.RpcError) as caught:
            restored.release(agent, name)
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        assert f"Cannot release the quarantine of agent '{agent}'" in caught.value.details()
    restored.settle()
    assert restored.held() == before


@pytest.mark.long
@pytest.mark.defence("openipu.vipu.lifecycle.quarantine.may_release", release_all)
def test_a_takeover_stops_no_job(restored: Restored, vipu_server: Callable[..., InProcess], tmp_path: Path) -> None:
    restored.settle()
    before = restored.held()
    other = Restored(vipu_server(tmp_path / "other.db", lifecycle=FAST), restored.machines)
    for agent in restored.machines.agents:
        other.server.admin.CreateAgent(admin.CreateAgentRequest(spec=agent))
    other.settle()
    assert restored.held() == before
    assert [share.partition_id for share in other.quarantine()] == ["old", "new"]


def rejecting(reply: Any) -> None:
    for result in reply.results:
        result.error = "the IPUs are busy"


@pytest.mark.defence("openipu.vipu.lifecycle.quarantine.Quarantine.update", trust_events)
def test_ipus_of_a_forced_removal_stay_in_quarantine_until_they_are_free(plane: Plane, rack: LyingRack) -> None:
    plane.wait_up()
    plane.create("p", 4)
    plane.wait_active("p")
    plane.wait_events("ag01", 1)
    share = rack.liar.held["p"]
    rack.liar.lies["ReleaseReply"] = lambda reply: (rejecting(reply), rack.liar.held.update(p=share))
    plane.lifecycle.remove_partition("p", force=True).result(10)
    plane.wait_events("ag01", 3)
    assert quarantined(plane) == [("ag01", "p", (0, 1, 2, 3), True)]
    assert plane.lifecycle.quarantined() == {"ag01": 15}
    with pytest.raises(Exception, match="the agent rejected it: the IPUs are busy"):
        plane.lifecycle.release_quarantine("ag01", "p").result(10)
    rack.liar.lies.clear()
    until(lambda: plane.lifecycle.quarantined() == {}, what="the release")
    assert quarantined(plane) == []


async def end_nothing(calls: Any) -> None:
    """Leave the calls of other threads, in place of ``LoopCalls.end``."""


@pytest.mark.defence("openipu.vipu.lifecycle.loop_calls.LoopCalls.end", end_nothing)
def test_a_stop_ends_the_wait_for_a_release(plane: Plane, rack: LyingRack) -> None:
    """A thread that waits forever would keep the process alive."""
    plane.wait_up()
    rack.liar.held["p"] = contract.HeldShare(partition_id="p", ipus=[0])
    rack.liar.lies["ReleaseReply"] = lambda reply: rack.liar.held.update(p=share)
    share = rack.liar.held["p"]
    until(lambda: plane.lifecycle.quarantined() == {"ag01": 1})
    waiting = plane.lifecycle.release_quarantine("ag01", "p")
    until(lambda: "ReleaseReply" in rack.liar.calls)
    plane.close()
    wait([waiting], 5)
    assert waiting.done()
    assert isinstance(waiting.exception(), StoppedError)


def quarantined(plane: Plane) -> list[tuple[str, str, tuple[int, ...], bool]]:
    shares: list[QuarantinedShare] = plane.lifecycle.quarantine().result(10)
    return [(share.agent_id, share.partition_id, share.ipus, share.releasing) for share in shares]
