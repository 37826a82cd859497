# SPDX-License-Identifier: GPL-3.0-or-later
"""Failures of machines and IPUs that hold partitions."""

from __future__ import annotations

import time
from typing import Any

import pytest

from openipu.vipu.domain import rules
from openipu.vipu.domain.model import Agent, Operation, PlacedIpu, ReadyState
from openipu.vipu.domain.specs import PartitionSpec
from openipu.vipu.fleet.status import AgentState
from tests.integration.agents.agents_support import Plane
from tests.waiting import until


def active(plane: Plane, id: str, size: int, **options: Any) -> list[str]:
    plane.create(id, size, **options)
    plane.wait_active(id)
    return plane.agents_of(id)


def on_machine(plane: Plane, id: str, position: int) -> None:
    """Create a partition on a machine that the controller would not choose."""
    ipus = tuple(PlacedIpu(0, 0, 4 * position + ipu, 0) for ipu in range(4))
    plane.change(PartitionSpec(id, 4, cluster="cl0", ipus=ipus))


def test_partitions_fail_with_their_machine_and_recover_with_it(plane: Plane) -> None:
    agents = active(plane, "p8", 8)
    others = active(plane, "other", 4)
    lost = next(agent for agent in plane.rack.agents if agent.id == agents[0])
    plane.rack.stop_machines(lost.id)
    partition = plane.wait_error("p8")
    assert partition.operation is Operation.UNREACHABLE
    assert partition.errors == (
        f"Agent '{lost.id}' at {lost.host}:{lost.port} does not respond: the connection broke.",
    )
    assert plane.lifecycle.unavailable() == {lost.id}
    plane.rack.start_machines(lost.id)
    plane.wait_active("p8")
    assert (plane.partition("p8").retries, plane.partition("p8").errors) == (1, ())
    assert abs((plane.partition("p8").last_auto_reset or 0) - time.time()) < 60
    assert plane.rack.held(lost.id) == ["p8"]
    assert plane.lifecycle.unavailable() == frozenset()
    assert plane.partition("other").retries == 0
    assert others != agents


def test_an_immediate_restart_of_a_machine_is_detected(plane: Plane) -> None:
    (agent,) = active(plane, "p", 4)
    plane.rack.stop_machines(agent)
    plane.rack.start_machines(agent)
    until(lambda: plane.partition("p").retries == 1)
    plane.wait_active("p")
    assert plane.rack.held(agent) == ["p"]


def test_a_silent_machine_is_down(plane: Plane) -> None:
    (agent,) = active(plane, "p", 4)
    plane.rack.fault(f"hang {agent}")
    plane.wait_down(agent)
    assert "does not respond: it sends no heartbeats." in plane.wait_error("p").errors[0]
    plane.rack.fault(f"heal {agent}")
    plane.wait_active("p")
    assert plane.partition("p").retries == 0, "its share was never lost"


def test_rejected_shares_are_retried_up_to_the_limit(plane: Plane) -> None:
    plane.rack.fault("reject ag01")
    plane.create("p", 4)
    assert plane.agents_of("p") == ["ag01"]
    until(lambda: plane.partition("p").retries == 3 and plane.partition("p").ready is ReadyState.ERROR)
    assert plane.partition("p").errors == (
        "Agent 'ag01' rejected its share: the IPUs do not come up (fault of the twin).",
    )
    seen = len(plane.history)
    plane.wait_events("ag01", 3)
    assert len(plane.history) == seen, "the record does not change"
    plane.rack.fault("heal ag01")
    plane.lifecycle.reset_partition("p", relocatable=False).result(15)
    plane.wait_active("p")
    assert (plane.partition("p").retries, plane.partition("p").last_auto_reset) == (0, None)


def test_a_partition_without_automatic_reset_stays_in_error(plane: Plane) -> None:
    (agent,) = active(plane, "p", 4, disable_auto_reset=True, relocatable=True)
    plane.rack.stop_machines(agent)
    plane.wait_error("p")
    plane.rack.start_machines(agent)
    plane.wait_up(agent)
    plane.wait_events(agent, 3)
    assert plane.partition("p").ready is ReadyState.ERROR
    plane.lifecycle.reset_partition("p", relocatable=False).result(15)
    plane.wait_active("p")
    assert plane.agents_of("p") == [agent]


def test_a_failed_ipu_is_reset(plane: Plane) -> None:
    (agent,) = active(plane, "p", 4)
    plane.rack.fault(f"ipu {agent} 2")
    until(lambda: plane.partition("p").retries == 1)
    plane.wait_active("p")
    assert ("p", ReadyState.ERROR, Operation.FAILED) in plane.history
    assert plane.lifecycle.ipu_attributes([agent]).result(15)[agent][2]["ipu state"] == "ready"


def test_a_failure_of_an_unused_ipu_affects_no_partition(plane: Plane) -> None:
    (agent,) = active(plane, "p", 2)
    plane.rack.fault(f"ipu {agent} 3")
    until(lambda: plane.lifecycle.ipu_attributes([agent]).result(15)[agent][3]["ipu state"] != "ready")
    plane.wait_events(agent, 3)
    assert plane.partition("p").ready is ReadyState.ACTIVE
    assert plane.partition("p").retries == 0


def test_a_relocatable_partition_moves(plane: Plane) -> None:
    before = active(plane, "p8", 8, relocatable=True)
    plane.rack.stop_machines(before[1])
    until(lambda: plane.partition("p8").retries == 1)
    plane.wait_active("p8")
    after = plane.agents_of("p8")
    assert before[1] not in after
    assert len(plane.partition("p8").devices) == 8
    hosts = {agent.id: agent.host for agent in plane.rack.agents}
    assert {device.ip for device in plane.partition("p8").devices} == {hosts[agent] for agent in after}
    until(lambda: before[0] in after or plane.rack.held(before[0]) == [])
    plane.rack.start_machines(before[1])
    plane.wait_up()
    assert plane.agents_of("p8") == after


def test_a_hung_machine_is_cleaned_when_it_returns(plane: Plane) -> None:
    (before,) = active(plane, "p", 4, relocatable=True)
    plane.rack.fault(f"hang {before}")
    until(lambda: plane.partition("p").retries == 1)
    plane.wait_active("p")
    assert plane.agents_of("p") != [before]
    plane.rack.fault(f"heal {before}")
    until(lambda: plane.rack.held(before) == [], what="the missed release")


def test_a_relocatable_partition_waits_for_free_ipus(plane: Plane) -> None:
    active(plane, "big", 16)
    active(plane, "half", 8)
    active(plane, "full", 4)
    (before,) = active(plane, "p", 4, relocatable=True)
    plane.rack.stop_machines(before)
    plane.wait_error("p")
    plane.lifecycle.remove_partition("full", force=False).result(15)
    plane.wait_active("p")
    assert plane.agents_of("p") != [before]


def test_a_relocatable_reset_moves_the_partition_once(plane: Plane) -> None:
    (before,) = active(plane, "p", 4, disable_auto_reset=True)
    plane.rack.stop_machines(before)
    plane.wait_error("p")
    plane.lifecycle.reset_partition("p", relocatable=True).result(15)
    plane.wait_active("p")
    assert plane.agents_of("p") != [before]


def test_a_reset_on_a_lost_machine_fails_with_a_message(make_rack: Any, make_plane: Any) -> None:
    plane = make_plane(make_rack(1), partition_timeout=0.8)
    plane.wait_up()
    active(plane, "p", 4, disable_auto_reset=True)
    plane.rack.stop_machines("ag01")
    plane.wait_error("p")
    plane.lifecycle.reset_partition("p", relocatable=False).result(15)
    assert plane.partition("p").operation is Operation.RESETTING
    assert "Agent 'ag01' at 127.81.0.2:" in plane.wait_error("p").errors[0]


def test_removal_without_force_needs_all_machines(plane: Plane) -> None:
    agents = active(plane, "p8", 8, disable_auto_reset=True)
    plane.rack.stop_machines(agents[0])
    plane.wait_error("p8")
    with pytest.raises(rules.RuleError, match=f"agent '{agents[0]}' is down") as rejection:
        plane.lifecycle.remove_partition("p8", force=False).result(15)
    assert rejection.value.code is rules.Code.FAILED_PRECONDITION
    assert plane.partition("p8").ready is ReadyState.ERROR
    assert plane.rack.held(agents[1]) == ["p8"]
    plane.lifecycle.remove_partition("p8", force=True).result(15)
    assert "p8" not in plane.state.partitions
    until(lambda: plane.rack.held(agents[1]) == [])


def test_a_forced_removal_reaches_a_hung_machine_later(plane: Plane) -> None:
    (agent,) = active(plane, "p", 4)
    plane.rack.fault(f"hang {agent}")
    plane.lifecycle.remove_partition("p", force=True).result(15)
    plane.wait_down(agent)
    assert plane.rack.held(agent) == ["p"]
    plane.rack.fault(f"heal {agent}")
    until(lambda: plane.rack.held(agent) == [])


def removal_blocked(plane: Plane, id: str, size: int = 4) -> list[str]:
    """Create a partition whose removal failed because its first machine does not respond; return its agents."""
    agents = active(plane, id, size)
    plane.rack.fault(f"hang {agents[0]}")
    rejected = f"Cannot remove partition '{id}': Agent '{agents[0]}' at .* does not respond.*The removal continues"
    with pytest.raises(rules.RuleError, match=rejected) as rejection:
        plane.lifecycle.remove_partition(id, force=False).result(15)
    assert rejection.value.code is rules.Code.FAILED_PRECONDITION
    until(lambda: plane.partition(id).ready is ReadyState.ERROR)
    record = plane.partition(id)
    assert record.operation is Operation.REMOVING
    assert f"Agent '{agents[0]}' at" in record.errors[0]
    return agents


def test_a_removal_without_response_fails_and_continues(plane: Plane) -> None:
    agents = removal_blocked(plane, "p", 8)
    assert plane.rack.held(agents[1]) == []
    plane.history.clear()
    plane.rack.fault(f"heal {agents[0]}")
    until(lambda: "p" not in plane.state.partitions)
    assert plane.rack.held(agents[0]) == []
    assert {operation for _, _, operation in plane.history} <= {Operation.REMOVING}


def test_a_blocked_removal_can_be_repeated_and_forced(plane: Plane) -> None:
    (agent,) = removal_blocked(plane, "p")
    with pytest.raises(rules.RuleError, match=f"agent '{agent}' is down. Bring it up first"):
        plane.lifecycle.remove_partition("p", force=False).result(15)
    plane.lifecycle.remove_partition("p", force=True).result(15)
    assert "p" not in plane.state.partitions
    plane.rack.fault(f"heal {agent}")
    until(lambda: plane.rack.held(agent) == [])


def test_a_partition_with_a_blocked_removal_can_be_reset(plane: Plane) -> None:
    agents = removal_blocked(plane, "p", 8)
    plane.lifecycle.reset_partition("p", relocatable=False).result(15)
    plane.rack.fault(f"heal {agents[0]}")
    plane.wait_active("p")
    assert [plane.rack.held(agent) for agent in agents] == [["p"], ["p"]]
    plane.lifecycle.remove_partition("p", force=False).result(15)
    assert [plane.rack.held(agent) for agent in agents] == [[], []]


def test_a_creation_waits_for_a_late_machine(plane: Plane) -> None:
    plane.rack.stop_machines("ag03")
    plane.wait_down("ag03")
    on_machine(plane, "p", 2)
    plane.wait_events("ag02", 2)
    assert plane.partition("p").operation is Operation.CREATING
    plane.rack.start_machines("ag03")
    plane.wait_active("p")


def test_a_creation_on_an_absent_machine_fails(make_rack: Any, make_plane: Any) -> None:
    plane = make_plane(make_rack(4), partition_timeout=0.7)
    plane.wait_up()
    plane.rack.stop_machines("ag03")
    plane.wait_down("ag03")
    on_machine(plane, "p", 2)
    error = plane.wait_error("p").errors[0]
    assert error.startswith("Agent 'ag03' at 127.81.0.4:")


def test_an_agent_with_a_changed_endpoint(plane: Plane) -> None:
    first, second = plane.rack.agents[:2]
    plane.rack.stop_machines(first.id)
    plane.wait_down(first.id)
    plane.put(Agent(first.id, "127.81.3.3", 1))
    until(lambda: plane.lifecycle.agent_status(first.id).info is None)
    plane.wait_down(first.id)
    plane.rack.start_machines(first.id)
    plane.put(first)
    plane.wait_up(first.id)
    assert plane.status(second.id) is AgentState.UP


def test_sixty_four_machines(make_rack: Any, make_plane: Any) -> None:
    plane = make_plane(make_rack(64))
    plane.wait_up()
    for number in range(32):
        plane.create(f"p{number}", 8)
    until(lambda: all(p.ready is ReadyState.ACTIVE for p in list(plane.state.partitions.values())))
    lost = [f"ag{number:02d}" for number in range(1, 17)]
    plane.rack.stop_machines(*lost)
    until(lambda: sum(p.ready is ReadyState.ERROR for p in list(plane.state.partitions.values())) == 8)
    plane.rack.start_machines(*lost)
    until(lambda: all(p.ready is ReadyState.ACTIVE for p in list(plane.state.partitions.values())))
    assert sorted(p.retries for p in plane.state.partitions.values()) == [0] * 24 + [1] * 8


def test_an_idle_controller_writes_nothing(plane: Plane) -> None:
    active(plane, "p", 4)
    seen = len(plane.history)
    plane.wait_events(plane.agents_of("p")[0], 4)
    assert len(plane.history) == seen
