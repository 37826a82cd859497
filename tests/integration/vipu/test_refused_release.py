# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine that is there and will not let go of a partition."""

from __future__ import annotations

from collections.abc import Callable

import grpc
import pytest
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import virmgrpc
from vipu_servers import InProcess, Machines, partition, pod, wait_active
from waiting import until

from openipu.vipu import driver
from openipu.vipu.agent.hardware import HardwareError


def test_it_is_asked_again_until_it_lets_go(
    vipu_server: Callable[..., InProcess], machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "RELEASE_AGAIN", 0.05)
    server = vipu_server()
    pod(server, machines)
    server.user.CreatePartition(partition("p1", 4))
    wait_active(server, "p1")
    asked, willing = 0, False

    def refuse_first(real: Callable[[str], object]) -> Callable[[str], object]:
        async def release(partition_id: str) -> None:
            nonlocal asked
            asked += 1
            if not willing:
                raise HardwareError("the IPUs do not answer")
            await real(partition_id)  # type: ignore[misc]

        return release

    for machine in machines._rack.machines.values():
        monkeypatch.setattr(machine.hardware, "release", refuse_first(machine.hardware.release))
    request = virmgrpc.RemovePartitionRequest(partition_id="p1")
    with pytest.raises(grpc.RpcError) as refused:
        server.user.RemovePartition(request, timeout=10)
    assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert "refused to release it: the IPUs do not answer." in refused.value.details()
    status = virmgrpc.GetPartitionStatusRequest(partition_id="p1")
    until(lambda: server.user.GetPartitionStatus(status).status.errors)
    told = server.user.GetPartitionStatus(status).status
    assert (told.ready_state, told.operation_state) == (virmgrpc.PS_ERROR, virmgrpc.POS_REMOVING)
    until(lambda: asked > 3)
    willing = True
    until(lambda: not server.user.ListPartitions(virmgrpc.ListPartitionsRequest()).partitions)
