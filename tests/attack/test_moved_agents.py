# SPDX-License-Identifier: GPL-3.0-or-later
"""Agents that get the addresses of other machines, as from a list that is shifted by one row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from openipu.shared.vipu.contract import admin
from openipu.vipu.fleet.status import AgentState
from openipu.vipu.lifecycle.interface import LifecycleOptions
from tests.integration.vipu_servers import InProcess, Machines, partition, pod, wait_active
from tests.waiting import until

FAST = LifecycleOptions(heartbeat=0.2, partition_timeout=3.0)


def nothing(*_: Any) -> bool:
    """Find nothing, in place of a rule."""
    return False


@pytest.fixture
def rack() -> Iterator[Machines]:
    made = Machines(3)
    yield made
    made.stop()


@pytest.fixture
def controller(vipu_server: Callable[..., InProcess], rack: Machines, tmp_path: Path) -> InProcess:
    """Return a controller with partitions ``p1`` and ``p2`` on the first two machines; the third is not registered."""
    server = vipu_server(tmp_path / "vipu.db", lifecycle=FAST)
    rack.agents, spare = rack.agents[:2], rack.agents[2]
    pod(server, rack)
    rack.agents.append(spare)
    for id in ("p1", "p2"):
        server.user.CreatePartition(partition(id, 4))
        wait_active(server, id)
    return server


def held(machines: Machines) -> list[list[str]]:
    return [machine.hardware.partition_ids for machine in machines._rack.machines.values()]


def at(rack: Machines, **machines: int) -> list[Any]:
    """Return agents at the addresses of other machines, in this order."""
    return [
        admin.AgentSpec(id=id, host=rack.agents[machine].host, port=rack.agents[machine].port)
        for id, machine in machines.items()
    ]


def shift_while_down(controller: InProcess, rack: Machines) -> None:
    """Move both agents to the next machine, and leave their own machines down."""
    rack.hang("ag01")
    rack.hang("ag02")
    until(lambda: controller.life.unavailable() == {"ag01", "ag02"})
    assert controller.admin.Apply(admin.ApplyRequest(agents=at(rack, ag02=2, ag01=1))).applied


@pytest.mark.defence("openipu.vipu.domain.agents._check_endpoint_change", nothing)
def test_an_agent_that_is_up_keeps_its_machine(controller: InProcess, rack: Machines) -> None:
    reply = controller.admin.Apply(admin.ApplyRequest(agents=at(rack, ag02=2, ag01=1)))
    assert not reply.applied
    address = f"{rack.agents[1].host}:{rack.agents[1].port}"
    assert [each.error for each in reply.results if each.id == "ag02"] == [
        f"Cannot change agent 'ag02': it is up at {address} and holds partition 'p2'. Remove the partition, or "
        "stop virm-agent on this machine. Then change the endpoint."
    ]
    assert held(rack) == [["p1"], ["p2"], []]


@pytest.mark.defence("openipu.vipu.agent.ownership._is_other_agent", nothing)
def test_an_agent_that_was_down_leaves_the_partitions_of_other_machines(controller: InProcess, rack: Machines) -> None:
    shift_while_down(controller, rack)
    rack.heal("ag01")
    rack.heal("ag02")
    until(lambda: controller.life.agent_status("ag02").state is AgentState.UP)
    wait_active(controller, "p2")  # the record of ag02 has moved to another machine
    until(lambda: "registered as agent 'ag02'" in controller.life.agent_status("ag01").reason, 5)
    assert held(rack) == [["p1"], ["p2"], ["p2"]]

    assert controller.admin.Apply(admin.ApplyRequest(agents=at(rack, ag01=0))).applied
    wait_active(controller, "p1")
    assert held(rack) == [["p1"], ["p2"], ["p2"]]


@pytest.mark.defence("openipu.vipu.agent.ownership._is_other_agent", nothing)
def test_a_takeover_of_another_machine_is_explicit(controller: InProcess, rack: Machines) -> None:
    shift_while_down(controller, rack)
    rack.heal("ag02")
    until(lambda: controller.life.agent_status("ag01").rejects, 5)
    assert held(rack)[1] == ["p2"]
    with pytest.raises(grpc.RpcError, match="is registered as agent 'ag02'"):
        controller.admin.TakeOverAgent(admin.TakeOverAgentRequest(id="ag01"))
    assert held(rack)[1] == ["p2"]
    controller.admin.TakeOverAgent(admin.TakeOverAgentRequest(id="ag01", other_agent=True))
    wait_active(controller, "p1")
    until(lambda: held(rack)[1] == ["p1"], 5)


@pytest.mark.defence("openipu.vipu.agent.ownership._is_other_agent", nothing)
def test_a_list_with_takeovers_leaves_the_partitions_of_other_machines(controller: InProcess, rack: Machines) -> None:
    shift_while_down(controller, rack)
    rack.heal("ag02")
    (spec,) = at(rack, ag01=1)
    spec.take_over = True
    reply = controller.admin.Apply(admin.ApplyRequest(agents=[spec]))
    assert held(rack)[1] == ["p2"]
    assert [each.error for each in reply.results] == [
        "Cannot take over agent 'ag01': the machine at its endpoint is registered as agent 'ag02'. Correct the "
        "endpoint of agent 'ag01'. If it is right, 'vipu-admin take-over agent ag01 --other-agent' releases the "
        "partitions of the other agent. The record of the agent is stored."
    ]
