# SPDX-License-Identifier: GPL-3.0-or-later
"""The network of the fault tests separates a controller from a machine, which other controllers still reach."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from openipu.shared.vipu.contract import admin
from tests.ha.controllers import Controllers, agent_state, put_rack
from tests.ha.machine_network import MachineNetwork
from tests.integration.agents.agents_support import RackProcess
from tests.waiting import until

UP, DOWN = admin.AGENT_STATE_UP, admin.AGENT_STATE_DOWN


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[MachineNetwork]:
    rack = RackProcess(tmp_path, 2)
    made = MachineNetwork(rack.agents)
    yield made
    made.close()
    rack.close()


def test_only_one_controller_and_one_machine_are_separated(controllers: Controllers, machines: MachineNetwork) -> None:
    leader = controllers.wait_leader()
    agents = [admin.AgentSpec(id=each.id, host=each.host, port=each.port) for each in machines.agents]
    lonely, other = (agent.id for agent in agents)
    put_rack(leader.address, agents)
    until(lambda: all(agent_state(leader.address, agent.id) == UP for agent in agents), 30, "both agents are up")
    assert leader.process is not None
    machines.separate(leader.process.pid, 0)
    until(lambda: agent_state(leader.address, lonely) == DOWN, 30, "the leader has lost its machine")
    assert agent_state(leader.address, other) == UP
    leader.pause()
    until(lambda: controllers.leader() not in (None, leader), 60, "another controller leads")
    new = controllers.wait_leader()
    until(lambda: agent_state(new.address, lonely) == UP, 30, "the other controller reaches the machine")
    leader.resume()
    until(leader.follows, 60, "the former leader follows")
    new.stop()
    until(leader.leads, 60, "the first controller leads again")
    until(lambda: agent_state(leader.address, other) == UP, 30, "it reaches the other machine")
    assert agent_state(leader.address, lonely) != UP
    machines.join()
    until(lambda: agent_state(leader.address, lonely) == UP, 60, "the controller reaches all machines")
