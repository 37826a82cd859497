# SPDX-License-Identifier: GPL-3.0-or-later
"""Twins to bring up, each the POD of inventory/twin on other loopback addresses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import Client, Connection
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import virmgrpc
from own_twin import OwnTwin, make


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnTwin]:
    """A POD whose twin a test starts; stopped after the last one."""
    made = make(tmp_path_factory.mktemp("own"))
    yield made
    made.twin("down")


@pytest.fixture
def deployed(own: OwnTwin) -> OwnTwin:
    """The same, up and brought to ACTIVE partitions."""
    own.twin("up")
    # Each test breaks something: partitions begin it with all of their automatic resets.
    with Client(Connection(own.controller)) as client:
        for partition in client.call(client.user.ListPartitions, virmgrpc.ListPartitionsRequest()).partitions:
            client.call(client.user.ResetPartition, virmgrpc.ResetPartitionRequest(partition_id=partition.id))
    own.playbook("site.yml", "--tags", "vipu,partitions,report")
    return own
