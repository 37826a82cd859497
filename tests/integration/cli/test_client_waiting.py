# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of waiting for partitions: until an operation ends, until a state, and until the timeout."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import grpc
import pytest

from openipu.shared.vipu.client import Client, Connection, VipuError, settled, wait_partition
from openipu.shared.vipu.contract import virmgrpc
from tests.integration.cli.client_support import aborting

PENDING = (virmgrpc.PS_PENDING, virmgrpc.POS_CREATING)
ACCEPTED = (virmgrpc.PS_PENDING, virmgrpc.POS_IDLE)  # requested, but not started
ACTIVE = (virmgrpc.PS_ACTIVE, virmgrpc.POS_IDLE)
FAILED = (virmgrpc.PS_ERROR, virmgrpc.POS_FAILED)


class Life:
    """Partition that changes its state with each request, and stays in the last one."""

    def __init__(self, *states: tuple[int, int]) -> None:
        self.requests = 0
        self._states = itertools.chain(states, itertools.repeat(states[-1]))

    def __call__(self, method: str, request: Any, context: Any) -> Any:
        assert (method, request.partition_id) == ("GetPartitionStatus", "p")
        self.requests += 1
        ready, operation = next(self._states)
        status = virmgrpc.PartitionStatus(partition_id="p", ready_state=ready, operation_state=operation)
        return virmgrpc.GetPartitionStatusReply(status=status)


@pytest.mark.parametrize("end", [ACTIVE, FAILED])
def test_waiting_ends_with_the_operation(serve: Callable[..., int], end: tuple[int, int]) -> None:
    life = Life(PENDING, ACCEPTED, PENDING, end)
    with Client(Connection("127.0.0.1", serve(life))) as client:
        done, status = wait_partition(client, "p", 30)
    assert done and (status.ready_state, status.operation_state) == end
    assert life.requests == 4


def test_waiting_ends_with_the_timeout(serve: Callable[..., int]) -> None:
    life = Life(PENDING)
    with Client(Connection("127.0.0.1", serve(life))) as client:
        done, status = wait_partition(client, "p", 0.05)
        assert (done, status.ready_state) == (False, virmgrpc.PS_PENDING)
        assert life.requests >= 2  # the last request is sent at the end of the time
        life.requests = 0
        assert not wait_partition(client, "p", 0)[0]
        assert life.requests == 1


def test_waiting_for_another_state(serve: Callable[..., int]) -> None:
    life = Life(ACTIVE, (virmgrpc.PS_PENDING, virmgrpc.POS_RESETTING))
    with Client(Connection("127.0.0.1", serve(life))) as client:
        done, status = wait_partition(client, "p", 30, until=lambda status: not settled(status))
    assert done and status.operation_state == virmgrpc.POS_RESETTING


def test_waiting_for_a_missing_partition(serve: Callable[..., int]) -> None:
    port = serve(aborting(grpc.StatusCode.NOT_FOUND, "partition 'p' does not exist."))
    with Client(Connection("127.0.0.1", port)) as client, pytest.raises(VipuError) as caught:
        wait_partition(client, "p", 30)
    assert caught.value.code == "NOT_FOUND"
