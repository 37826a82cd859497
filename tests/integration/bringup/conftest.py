# SPDX-License-Identifier: GPL-3.0-or-later
"""Twins of the POD of inventory/twin, on other loopback addresses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from openipu.shared.vipu.client import Client, Connection
from openipu.shared.vipu.contract import virmgrpc
from tests.integration.bringup.own_twin import OwnTwin, make, octet
from tests.waiting import until

PARTITIONS = {"vision", "language", "notebook"}  # of inventory/twin


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnTwin]:
    """Return a POD whose twin is started by a test and stopped after the last one."""
    made = make(tmp_path_factory.mktemp("own"))
    yield made
    made.twin("down")


@pytest.fixture
def deployed(own: OwnTwin) -> OwnTwin:
    """Return the same POD with a running twin and ACTIVE partitions."""
    own.twin("up")
    with Client(Connection(own.controller)) as client:

        def partitions() -> Sequence[virmgrpc.Partition]:
            return client.call(client.user.ListPartitions, virmgrpc.ListPartitionsRequest()).partitions

        # Tests inject faults: restore the full number of automatic resets of each partition.
        for partition in partitions():
            client.call(client.user.ResetPartition, virmgrpc.ResetPartitionRequest(partition_id=partition.id))
        if {partition.id for partition in partitions()} != PARTITIONS:
            own.playbook("site.yml", seconds=300)  # on a busy machine
        until(lambda: {partition.ready_state for partition in partitions()} == {virmgrpc.PS_ACTIVE})
    return own


@pytest.fixture
def generated(tmp_path: Path) -> Iterator[OwnTwin]:
    """Return a twin of a generated POD that is not started yet, on addresses between those of the other twins."""
    state = tmp_path / "state"
    made = OwnTwin(state / "pod" / "pod.yml", state, octet(5))
    yield made
    made.twin("down")
