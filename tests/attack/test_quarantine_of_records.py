# SPDX-License-Identifier: GPL-3.0-or-later
"""Shares of partitions that the records contain too, but that a restored backup had differently."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.agent_api.contract import agent as contract
from openipu.vipu.domain.model import Operation, Put, ReadyState
from openipu.vipu.fleet.status import AgentState
from openipu.vipu.storage import backup
from openipu.vipu.storage.store import Store
from openipu.vipu.storage.writer import RecordWriter
from tests.attack.lying_agent import LyingRack, plane, rack
from tests.attack.test_quarantine import FAST, Restored, trust_events
from tests.integration.agents.agents_support import Plane
from tests.integration.vipu_servers import InProcess, Machines, partition, pod, wait_active
from tests.waiting import until

__all__ = ["plane", "rack"]

EXPLAINED = "openipu.vipu.lifecycle.reported.may_be_other"
CONFIRM = "openipu.vipu.lifecycle.reported.ReportedShares.confirm"
WHOLE, HALF = [0, 1, 2, 3], [0, 1]


def explained(*_: Any) -> bool:
    """Take every share for that of the record, in place of ``may_be_other``."""
    return False


@dataclass
class History:
    """Controller before and after the restore of a backup."""

    start: Callable[..., InProcess]
    database: Path
    machines: Machines

    def before(self, size: int) -> InProcess:
        """Start, create partition ``p``, and back up."""
        server = self.start(self.database, lifecycle=FAST)
        pod(server, self.machines)
        server.user.CreatePartition(partition("p", size))
        wait_active(server, "p")
        backup.create(self.database, self.database.with_name("certs"), self.archive)
        return server

    @property
    def archive(self) -> Path:
        return self.database.with_name("backup.tar.gz")

    def replace(self, server: InProcess, size: int) -> None:
        """Create the partition again, with another size."""
        remove(server)
        server.user.CreatePartition(partition("p", size))
        wait_active(server, "p")

    def restore(self, server: InProcess, **changes: Any) -> Restored:
        """Restore the backup, in which the record of the partition has these changes, and start again."""
        server.stop()
        backup.restore(self.archive, self.database, None, overwrite=True)
        if changes:
            writer = RecordWriter(Store(self.database))
            writer.start()
            writer.submit(lambda state: ([Put(replace(state.partitions["p"], **changes))], None)).result(10)
            writer.stop()
        return Restored(self.start(self.database, lifecycle=FAST), self.machines)


@pytest.fixture
def history(vipu_server: Callable[..., InProcess], tmp_path: Path) -> Iterator[History]:
    machines = Machines(2)
    yield History(vipu_server, tmp_path / "vipu.db", machines)
    machines.stop()


def remove(server: InProcess) -> None:
    server.user.RemovePartition(virmgrpc.RemovePartitionRequest(partition_id="p"))


def status(server: InProcess) -> Any:
    return server.user.GetPartitionStatus(virmgrpc.GetPartitionStatusRequest(partition_id="p")).status


def shares(machines: Machines) -> dict[str, Any]:
    """Return agent -> its share of the partition. A reset replaces it, also by an equal one."""
    return {machine.id: machine.hardware._shares.get("p") for machine in machines._rack.machines.values()}


def unchanged(history: History, before: dict[str, Any]) -> bool:
    return all(share is before[agent] for agent, share in shares(history.machines).items())


def in_quarantine(restored: Restored) -> list[tuple[str, list[int], bool]]:
    return [(share.agent_id, list(share.ipus), share.releasing) for share in restored.quarantine()]


def reset(restored: Restored) -> None:
    restored.server.user.ResetPartition(virmgrpc.ResetPartitionRequest(partition_id="p"))
    wait_active(restored.server, "p")


@pytest.mark.defence(EXPLAINED, explained)
def test_a_share_on_other_ipus_is_not_reset(history: History) -> None:
    server = history.before(4)
    history.replace(server, 2)
    before = shares(history.machines)
    restored = history.restore(server)
    restored.settle()
    assert unchanged(history, before)
    assert in_quarantine(restored) == [("ag01", HALF, False)]
    reported = status(restored.server)
    assert reported.ready_state == virmgrpc.PS_ERROR
    assert "IPUs 0, 1 of agent 'ag01' are in quarantine." in " ".join(reported.errors)
    assert restored.release("ag01") == ["p"]
    reset(restored)
    assert restored.held() == {"ag01": {"p": WHOLE}, "ag02": {}}


@pytest.mark.long
@pytest.mark.defence(EXPLAINED, explained)
@pytest.mark.parametrize("force", [False, True], ids=["removed", "removed with force"])
def test_the_removal_of_a_record_does_not_release_a_share_in_quarantine(history: History, force: bool) -> None:
    server = history.before(4)
    history.replace(server, 2)
    before = shares(history.machines)
    restored = history.restore(server)
    restored.settle()
    request = virmgrpc.RemovePartitionRequest(partition_id="p", force=force)
    restored.server.user.RemovePartition(request, timeout=10)
    restored.settle()
    assert unchanged(history, before)
    assert in_quarantine(restored) == [("ag01", HALF, False)]


@pytest.mark.long
@pytest.mark.defence(EXPLAINED, explained)
def test_one_part_of_a_larger_partition_is_not_reset(history: History) -> None:
    """The share on the first machine is that of the record, but the other machine has none."""
    server = history.before(8)
    history.replace(server, 4)
    before = shares(history.machines)
    restored = history.restore(server)
    restored.settle()
    assert unchanged(history, before)
    assert in_quarantine(restored) == [("ag01", WHOLE, False)]
    restored.release("ag01")
    reset(restored)
    assert restored.held() == {"ag01": {"p": WHOLE}, "ag02": {"p": WHOLE}}


@pytest.mark.long
@pytest.mark.defence(EXPLAINED, explained)
@pytest.mark.parametrize("operation", [Operation.CREATING, Operation.RESETTING, Operation.FAILED, Operation.REMOVING])
def test_an_operation_of_the_backup_stops_no_job(history: History, operation: Operation) -> None:
    """Restore a record of an operation that had ended when the job started."""
    server = history.before(4)
    before = shares(history.machines)
    restored = history.restore(server, operation=operation, ready=ReadyState.PENDING)
    restored.settle()
    assert unchanged(history, before)
    assert in_quarantine(restored) == [("ag01", WHOLE, False)]
    known = operation is not Operation.REMOVING
    assert [each.id for each in partitions(restored)] == (["p"] if known else [])


def partitions(restored: Restored) -> list[Any]:
    return list(restored.server.user.ListPartitions(virmgrpc.ListPartitionsRequest()).partitions)


def unexplained(*_: Any) -> bool:
    """Take no share for that of the record, in place of ``may_be_other``."""
    return True


def confirm_nothing(*_: Any) -> None:
    """Assign no share to a record, in place of ``ReportedShares.confirm``."""


@pytest.mark.long
@pytest.mark.defence(EXPLAINED, unexplained)
@pytest.mark.defence(CONFIRM, confirm_nothing)
def test_a_partition_as_in_the_backup_is_reset_and_removed_as_before(history: History) -> None:
    restored = history.restore(history.before(8))
    restored.settle()
    assert in_quarantine(restored) == []
    first = shares(history.machines)
    reset(restored)
    assert not unchanged(history, first)
    assert restored.held() == {"ag01": {"p": WHOLE}, "ag02": {"p": WHOLE}}
    remove(restored.server)
    assert restored.held() == {"ag01": {}, "ag02": {}}


@pytest.mark.long
@pytest.mark.defence(EXPLAINED, unexplained)
@pytest.mark.defence(CONFIRM, confirm_nothing)
def test_a_lost_share_of_a_confirmed_partition_is_reset(history: History) -> None:
    """All agents have reported the partition since the restore, so its shares are those of the record."""
    restored = history.restore(history.before(8))
    restored.settle()
    second = history.machines._rack.machines["ag02"]
    del second.hardware._shares["p"]
    until(lambda: "p" in second.hardware._shares, what="the automatic reset")
    wait_active(restored.server, "p")
    assert in_quarantine(restored) == []


@pytest.mark.defence("openipu.vipu.lifecycle.quarantine.Quarantine.update", trust_events)
def test_another_deployment_with_a_partition_of_the_same_name(
    history: History, vipu_server: Callable[..., InProcess], tmp_path: Path
) -> None:
    history.before(2)
    before = shares(history.machines)
    other = Restored(vipu_server(tmp_path / "other.db", lifecycle=FAST), history.machines)
    agents = history.machines.agents[:1]
    other.server.admin.Apply(
        admin.ApplyRequest(
            agents=agents,
            clusters=[admin.ClusterSpec(id="cl0", agent_ids=["ag01"], ipu_link_topology=2)],
            allocations=[admin.AllocationSpec(id="a1", cluster_id="cl0", size=1)],
        )
    )
    until(lambda: other.server.life.agent_status("ag01").state is AgentState.UP)
    until(lambda: in_quarantine(other) == [("ag01", HALF, False)])
    other.server.user.CreatePartition(partition("p", 2))  # its IPUs are free, but the machine has a share of that name
    until(lambda: "in quarantine" in " ".join(status(other.server).errors), what="the error that names the quarantine")
    assert unchanged(history, before)


def broken(event: Any) -> None:
    """End the stream of events."""
    raise ConnectionError


@pytest.mark.long
@pytest.mark.defence(EXPLAINED, explained)
def test_an_agent_that_returns_during_a_removal_keeps_a_share_in_quarantine(plane: Plane, rack: LyingRack) -> None:
    plane.wait_up()
    rack.liar.held["p"] = contract.HeldShare(partition_id="p", ipus=[0], deployment="f" * 16, epoch=1)
    until(lambda: plane.lifecycle.quarantined() == {"ag01": 1})
    plane.create("p", 4)
    assert "in quarantine" in plane.wait_error("p").errors[0]
    rack.liar.lies["AgentEvent"] = broken
    plane.wait_down("ag01")
    plane.put(replace(plane.partition("p"), operation=Operation.REMOVING, ready=ReadyState.PENDING))
    rack.liar.lies.clear()
    until(lambda: "p" not in plane.state.partitions)
    plane.wait_events("ag01", 3)
    assert "p" in rack.liar.held
    assert "ReleaseReply" not in rack.liar.calls
    assert plane.lifecycle.quarantined() == {"ag01": 1}
