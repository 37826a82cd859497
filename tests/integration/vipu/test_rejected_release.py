# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine that responds but rejects the release of a partition."""

from __future__ import annotations

from collections.abc import Callable

import grpc
import pytest

from openipu.shared.vipu.contract import virmgrpc
from openipu.vipu.agent.hardware import HardwareError
from openipu.vipu.lifecycle import operations
from tests.integration.vipu_servers import InProcess, Machines, partition, pod, wait_active
from tests.waiting import until


def test_a_rejected_release_is_retried(
    vipu_server: Callable[..., InProcess], machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "RELEASE_RETRY", 0.05)
    server = vipu_server()
    pod(server, machines)
    server.user.CreatePartition(partition("p1", 4))
    wait_active(server, "p1")
    attempts, may_release = 0, False

    def reject_first(real: Callable[[str], object]) -> Callable[[str], object]:
        async def release(partition_id: str) -> None:
            nonlocal attempts
            attempts += 1
            if not may_release:
                raise HardwareError("the IPUs do not respond")
            await real(partition_id)  # type: ignore[misc]

        return release

    for machine in machines._rack.machines.values():
        monkeypatch.setattr(machine.hardware, "release", reject_first(machine.hardware.release))
    request = virmgrpc.RemovePartitionRequest(partition_id="p1")
    with pytest.raises(grpc.RpcError) as rejected:
        server.user.RemovePartition(request, timeout=10)
    assert rejected.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert "rejected the release: the IPUs do not respond." in rejected.value.details()
    status = virmgrpc.GetPartitionStatusRequest(partition_id="p1")
    until(lambda: server.user.GetPartitionStatus(status).status.errors)
    reported = server.user.GetPartitionStatus(status).status
    assert (reported.ready_state, reported.operation_state) == (virmgrpc.PS_ERROR, virmgrpc.POS_REMOVING)
    until(lambda: attempts > 3)
    may_release = True
    until(lambda: not server.user.ListPartitions(virmgrpc.ListPartitionsRequest()).partitions)
