# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls of a former leader that reach a machine late: agents reject them, and the checker notices when they do not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import grpc
import pytest

from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.domain.model import Partition
from openipu.vipu.storage.etcd import content, keys
from tests.ha.contradictions import AGENT_SECONDS, of_agents, settled
from tests.ha.controllers import Controllers, agent_state, create, listed, put_rack
from tests.ha.machine_network import MachineNetwork
from tests.integration.agents.agents_support import RackProcess
from tests.waiting import until

SIZE = 4  # all IPUs of the machine


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def remove(address: str, id: str) -> None:
    with grpc.insecure_channel(address) as channel:
        request = virmgrpc.RemovePartitionRequest(partition_id=id)
        virmgrpc.stub(channel, "UserService").RemovePartition(request, timeout=20)


@pytest.mark.parametrize("epochs", ["reject", "accept"])
def test_configure_of_a_former_leader(epochs: str, stack: ExitStack, url: str, tmp_path: Path) -> None:
    late = tmp_path / "late"
    late.touch()
    rack = stack.enter_context(closing(RackProcess(tmp_path, 1, program=("tests.ha.late_calls", str(late), epochs))))
    network = stack.enter_context(closing(MachineNetwork(rack.agents)))
    controllers = stack.enter_context(closing(Controllers(tmp_path, url, 2)))
    (agent,) = network.agents
    former = controllers.wait_leader()
    assert former.process is not None
    (other,) = (each for each in controllers.all if each is not former)
    put_rack(former.address, [admin.AgentSpec(id=agent.id, host=agent.host, port=agent.port)])
    until(lambda: agent_state(former.address, agent.id) == admin.AGENT_STATE_UP, 30, "the machine is up")

    network.separate(former.process.pid, 0)
    create(former.address, "first", SIZE)
    network.wait_held("first")
    former.pause()
    until(other.leads, 60, controllers.logs)
    until(lambda: settled(other.address), 60, "the partition is ACTIVE")
    remove(other.address, "first")
    until(lambda: not listed(other.address), 60, "the partition is removed")
    create(other.address, "second", SIZE)
    until(lambda: settled(other.address), 60, "the other partition is ACTIVE")
    stored = [each for each in content.read(keys.parse(url)).records if isinstance(each, Partition)]

    def findings() -> list[str]:
        return of_agents(stored, [agent.id], {each.agent_id: set(each.partition_ids) for each in rack.machines()})

    assert findings() == []
    other.pause()  # it would repair the machine
    assert not late.read_text()
    network.join()
    until(late.read_text, 30, "the call of the former leader arrives")
    violations = [f"{agent.id} holds first without a record", f"{agent.id} lacks second"]
    assert findings() == (violations if epochs == "accept" else [])
    former.resume()
    until(former.leads, 60, controllers.logs)
    until(lambda: not findings(), AGENT_SECONDS, "the machine has the partition in the records")
