# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests that are larger than users need."""

from __future__ import annotations

from collections.abc import Callable

import grpc
import pytest

from openipu.shared.vipu.contract import virmgrpc
from tests.integration.vipu_servers import InProcess, Process

MEGABYTE = 1 << 20


@pytest.mark.defence("openipu.vipu.api.methods._MAX_REQUEST", 1 << 40)
def test_large_requests(instant_server: InProcess) -> None:
    request = virmgrpc.GetPartitionStatusRequest(partition_id="x" * 2 * MEGABYTE)
    with pytest.raises(grpc.RpcError) as caught:
        instant_server.user.GetPartitionStatus(request, timeout=10)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.long
@pytest.mark.defence("openipu.vipu.api.methods._MAX_REQUEST", 1 << 40)
def test_large_requests_to_a_process(vipu_process: Callable[..., Process]) -> None:
    request = virmgrpc.GetPartitionStatusRequest(partition_id="x" * 2 * MEGABYTE)
    with pytest.raises(grpc.RpcError) as caught:
        vipu_process().user.GetPartitionStatus(request, timeout=10)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
