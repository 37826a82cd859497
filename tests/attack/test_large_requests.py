# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests that are larger than users need."""

from __future__ import annotations

import threading
from collections.abc import Callable

import grpc
import psutil
import pytest

from openipu.shared.vipu.contract import virmgrpc
from tests.integration.faults import hostile
from tests.integration.vipu_servers import InProcess, Process

MEGABYTE = 1 << 20


@pytest.mark.defence("openipu.vipu.api.methods.MAX_REQUEST", 1 << 40)
def test_large_requests(instant_server: InProcess) -> None:
    request = virmgrpc.GetPartitionStatusRequest(partition_id="x" * 2 * MEGABYTE)
    with pytest.raises(grpc.RpcError) as caught:
        instant_server.user.GetPartitionStatus(request, timeout=10)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.long
@pytest.mark.defence("openipu.vipu.api.methods.MAX_REQUEST", 1 << 40)
def test_large_requests_to_a_process(vipu_process: Callable[..., Process]) -> None:
    request = virmgrpc.GetPartitionStatusRequest(partition_id="x" * 2 * MEGABYTE)
    with pytest.raises(grpc.RpcError) as caught:
        vipu_process().user.GetPartitionStatus(request, timeout=10)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


CREATE = "/virmgrpc.UserService/CreatePartition"
CALLS = 16


def of_empty_ipus(size: int) -> bytes:
    """Return a request of about this size to create a partition, with as many IPUs as possible."""
    ipus = [virmgrpc.PartitionIpu()] * (size // 2 - 8)
    return bytes(virmgrpc.CreatePartitionRequest(requirements={"ipus": ipus}).SerializeToString())


@pytest.mark.defence("openipu.vipu.api.convert.MAX_IPUS", 1 << 40)
def test_a_long_list_in_a_short_request(instant_server: InProcess) -> None:
    create = hostile.Method(CREATE, virmgrpc.CreatePartitionRequest, False)
    code, details = create.call(instant_server.channel, of_empty_ipus(100 << 10))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "IPUs; at most 4096 are allowed." in details


@pytest.mark.long
@pytest.mark.defence("openipu.vipu.api.methods.MAX_REQUEST", 1 << 40)
@pytest.mark.defence("openipu.vipu.api.convert.MAX_IPUS", 1 << 40)
def test_long_lists_of_concurrent_calls(vipu_process: Callable[..., Process]) -> None:
    """Their messages would occupy 40 MB each, and the processor for a second."""
    server = vipu_process("--log-level", "warning")
    process = psutil.Process(server.process.pid)
    server.version.GetVersion(virmgrpc.VersionRequest(), timeout=10)
    before, peak, ended = process.memory_info().rss, 0, threading.Event()
    data = of_empty_ipus(MEGABYTE)
    calls = [server.channel.unary_unary(CREATE, None, None).future(data, timeout=60) for _ in range(CALLS)]
    for call in calls:
        call.add_done_callback(lambda _: ended.set() if all(each.done() for each in calls) else None)
    while not ended.wait(0.02):
        peak = max(peak, process.memory_info().rss)
    assert peak <= before + 100 * MEGABYTE, (before, peak)
    assert {call.code() for call in calls} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
