# SPDX-License-Identifier: GPL-3.0-or-later
"""Creation, reset and removal of partitions on a healthy rack, and restarts of the controller."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import grpc
import pytest

from openipu.vipu.agent_api import identity
from openipu.vipu.agent_api.contract import agent as contract
from openipu.vipu.domain import partition_state, rules
from openipu.vipu.domain.invariants import violations
from openipu.vipu.domain.model import Delete, Kind, Operation, ReadyState
from openipu.vipu.domain.specs import PartitionSpec, Removal
from tests.agent_owner import controller_stub
from tests.integration.agents.agents_support import Plane
from tests.waiting import until


def test_a_partition_becomes_active(plane: Plane) -> None:
    plane.create("warm", 1)
    plane.wait_active("warm")
    assert plane.history[:2] == [
        ("warm", ReadyState.PENDING, Operation.CREATING),
        ("warm", ReadyState.ACTIVE, Operation.IDLE),
    ]


def test_devices_have_the_order_of_the_ipus(plane: Plane) -> None:
    plane.create("p16", 16, num_gcds=2)
    plane.wait_active("p16")
    partition = plane.partition("p16")
    hosts = {agent.id: agent.host for agent in plane.rack.agents}
    with plane.controller.reading() as state:
        expected = [(hosts[agent], ipu) for agent, ipu in state.machines_of(partition)]
    assert [(device.ip, device.device_id) for device in partition.devices] == expected
    assert [ipu for _, ipu in expected[:5]] == [3, 2, 1, 0, 3]
    assert len({(device.ip, device.server_port) for device in partition.devices}) == 16
    assert len({device.chip_id for device in partition.devices}) == 16
    assert all(plane.rack.held(agent) == ["p16"] for agent in plane.agents_of("p16"))


def test_removal_returns_when_the_machines_are_free(plane: Plane) -> None:
    plane.create("p8", 8)
    plane.wait_active("p8")
    agents = plane.agents_of("p8")
    assert plane.lifecycle.remove_partition("p8", force=False).result(15) is None
    assert "p8" not in plane.state.partitions
    assert [plane.rack.held(agent) for agent in agents] == [[], []]
    assert ("p8", ReadyState.PENDING, Operation.REMOVING) in plane.history


def test_two_concurrent_removals_succeed(plane: Plane) -> None:
    plane.create("p", 4)
    futures = [plane.lifecycle.remove_partition("p", force=False) for _ in range(3)]
    responses = [future.exception(5) for future in futures]
    assert responses[0] is None
    assert all(response is None or "does not exist" in str(response) for response in responses)
    assert "p" not in plane.state.partitions


def test_missing_and_hidden_partitions_cannot_be_removed_or_reset(plane: Plane) -> None:
    plane.create("p", 4)
    plane.wait_active("p")
    for future in (
        plane.lifecycle.remove_partition("q", force=False),
        plane.lifecycle.reset_partition("q", relocatable=False),
        plane.lifecycle.remove_partition("p", force=True, allowed=frozenset({"other"})),
        plane.lifecycle.reset_partition("p", relocatable=False, allowed=frozenset({"other"})),
    ):
        error = future.exception(5)
        assert isinstance(error, rules.RuleError)
        assert error.code is rules.Code.NOT_FOUND
    assert plane.partition("p").ready is ReadyState.ACTIVE


def test_reset_resets_the_ipus(make_rack: Any, make_plane: Any) -> None:
    plane = make_plane(make_rack(2, bring_up_seconds=0.3))
    plane.wait_up()
    plane.create("p", 4)
    plane.wait_active("p")
    begun = time.monotonic()
    plane.lifecycle.reset_partition("p", relocatable=False).result(15)
    plane.wait_active("p")
    assert time.monotonic() - begun >= 0.3, "the IPUs were not brought up again"
    assert ("p", ReadyState.PENDING, Operation.RESETTING) in plane.history
    assert plane.partition("p").retries == 0


def test_a_partition_that_is_being_created_is_not_reset(make_rack: Any, make_plane: Any) -> None:
    plane = make_plane(make_rack(1, bring_up_seconds=0.5))
    plane.wait_up()
    plane.create("p", 4)
    with pytest.raises(rules.RuleError, match="Cannot reset partition 'p': it is being created"):
        plane.lifecycle.reset_partition("p", relocatable=False).result(15)
    plane.wait_active("p")


def test_a_removal_overtakes_a_creation(make_rack: Any, make_plane: Any) -> None:
    plane = make_plane(make_rack(1, bring_up_seconds=0.5))
    plane.wait_up()
    plane.create("p", 4)
    plane.lifecycle.remove_partition("p", force=False).result(15)
    assert "p" not in plane.state.partitions
    assert plane.rack.held("ag01") == []
    assert ("p", ReadyState.ACTIVE, Operation.IDLE) not in plane.history


def test_shares_of_one_agent_are_in_one_call(make_rack: Any, make_plane: Any) -> None:
    """Separate calls would configure the four shares one after the other."""
    plane = make_plane(make_rack(1, bring_up_seconds=0.2))
    plane.wait_up()
    context = rules.Context()

    def four(state: Any) -> Any:
        scratch, changes = state.copy(), []
        for number in range(4):
            made = rules.create(scratch, PartitionSpec(f"p{number}", 1, allocation="a0"), context)
            scratch.apply(made)
            changes += made
        return changes, None

    plane.controller.submit(four).result(15)
    until(lambda: all(plane.partition(f"p{number}").ready is ReadyState.ACTIVE for number in range(4)))
    # One call returns one reply, which is written in one transaction.
    states = [ready for _, ready, _ in plane.history]
    assert states == [ReadyState.PENDING] * 4 + [ReadyState.ACTIVE] * 4


def test_an_interrupted_creation_resumes_at_the_next_start(make_rack: Any, make_plane: Any) -> None:
    rack = make_rack(2, bring_up_seconds=0.5)
    plane = make_plane(rack)
    plane.wait_up()
    plane.create("p", 8)
    plane.lifecycle.stop()
    assert plane.partition("p").operation is Operation.CREATING
    plane.close()
    again = make_plane(rack)
    again.wait_active("p")
    assert rack.held("ag01") == rack.held("ag02") == ["p"]


def test_an_interrupted_removal_resumes_at_the_next_start(make_rack: Any, make_plane: Any) -> None:
    rack = make_rack(2)
    plane = make_plane(rack)
    plane.wait_up()
    plane.create("p", 8)
    plane.wait_active("p")
    plane.lifecycle.stop()
    plane.put(partition_state.removing(plane.partition("p")))
    plane.close()
    again = make_plane(rack)
    until(lambda: "p" not in again.state.partitions)
    assert rack.held("ag01") == rack.held("ag02") == []


def test_an_interrupted_removal_waits_for_a_late_machine(make_rack: Any, make_plane: Any) -> None:
    rack = make_rack(2)
    plane = make_plane(rack)
    plane.wait_up()
    plane.create("p", 8)
    plane.wait_active("p")
    plane.lifecycle.stop()
    plane.put(partition_state.removing(plane.partition("p")))
    plane.close()
    rack.stop_machines("ag02")
    again = make_plane(rack, partition_timeout=30.0)
    again.wait_up("ag01")
    again.wait_down("ag02")
    assert again.partition("p").operation is Operation.REMOVING
    rack.start_machines("ag02")
    until(lambda: "p" not in again.state.partitions)
    assert rack.held("ag01") == rack.held("ag02") == []
    assert {operation for _, _, operation in again.history} <= {Operation.REMOVING}


def test_an_interrupted_removal_is_never_undone(make_rack: Any, make_plane: Any) -> None:
    """The machine stays down beyond the partition timeout and a second restart, then releases the partition."""
    rack = make_rack(2)
    plane = make_plane(rack)
    plane.wait_up()
    plane.create("p", 8)
    plane.wait_active("p")
    plane.lifecycle.stop()
    plane.put(partition_state.removing(plane.partition("p")))
    plane.close()
    rack.fault("hang ag02")
    for last in (False, True):
        again = make_plane(rack, partition_timeout=0.3)
        until(lambda: rack.held("ag01") == [])
        until(lambda again=again: again.partition("p").ready is ReadyState.ERROR)
        again.wait_down("ag02")
        again.wait_events("ag01", 8)  # longer than the partition timeout
        record = again.partition("p")
        assert (record.ready, record.operation) == (ReadyState.ERROR, Operation.REMOVING)
        assert "Agent 'ag02'" in record.errors[0]
        if not last:
            again.close()
    rack.fault("heal ag02")
    until(lambda: "p" not in again.state.partitions)
    assert rack.held("ag02") == []
    assert {operation for _, _, operation in again.history} <= {Operation.REMOVING}


def test_a_removal_fails_at_once_when_its_machine_is_already_down(make_rack: Any, make_plane: Any) -> None:
    plane = make_plane(make_rack(1), partition_timeout=30.0)
    plane.wait_up()
    plane.create("p", 4)
    plane.wait_active("p")
    plane.rack.stop_machines("ag01")
    plane.wait_error("p")
    record = partition_state.removing(plane.partition("p"))  # as after a removal call
    plane.put(record)
    done: Future[None] = Future()
    lifecycle = plane.lifecycle
    lifecycle._loop.call_soon_threadsafe(lifecycle._driver.await_removal, record, done)
    with pytest.raises(rules.RuleError, match=r"Cannot remove partition 'p': Agent 'ag01' at .* does not respond"):
        done.result(15)
    assert plane.partition("p").operation is Operation.REMOVING


def test_active_partitions_survive_a_restart_of_the_controller(make_rack: Any, make_plane: Any) -> None:
    rack = make_rack(2)
    plane = make_plane(rack)
    plane.wait_up()
    plane.create("p", 8)
    plane.wait_active("p")
    before = plane.partition("p")
    plane.close()
    again = make_plane(rack)
    again.wait_up()
    for agent in ("ag01", "ag02"):
        again.wait_events(agent, 3)  # heartbeats must not look like a loss
    assert again.partition("p") == before
    assert again.history == []


def test_deletion_and_creation_in_one_transaction(plane: Plane) -> None:
    plane.create("p", 8)
    plane.wait_active("p")
    before = plane.agents_of("p")

    def again(state: Any) -> Any:
        scratch = state.copy()
        deletion = Delete(Kind.PARTITION, "p")
        scratch.apply([deletion])
        made = rules.create(scratch, PartitionSpec("p", 1, allocation="a0"), rules.Context())
        return [deletion, *made], None

    plane.controller.submit(again).result(15)
    plane.wait_active("p")
    assert plane.partition("p").size == 1
    (agent,) = plane.agents_of("p")
    until(lambda: all(plane.rack.held(other) == [] for other in before if other != agent))
    assert plane.rack.held(agent) == ["p"]


def test_an_agent_releases_unknown_partitions(plane: Plane) -> None:
    target = plane.rack.agents[2]
    with grpc.insecure_channel(f"{target.host}:{target.port}") as channel:
        share = contract.PartitionShare(
            partition_id="stranger",
            ipus=[contract.ShareIpu(ipu=0)],
            ipulink_routing_type=1,
            sync_type=1,
        )
        deployment = plane.controller.deployment
        stub = controller_stub(channel, identity.Controller(deployment.id, deployment.epoch))
        reply = stub.Configure(contract.ConfigureRequest(shares=[share]), timeout=5)
        assert reply.results[0].error == ""
    until(lambda: plane.rack.held(target.id) == [], 5, "the release of the unknown partition")


def test_an_agent_releases_partitions_before_its_removal(plane: Plane) -> None:
    plane.create("p", 4)
    plane.wait_active("p")
    (agent,) = plane.agents_of("p")
    removal = Removal(Kind.AGENT, agent, force=True)
    plane.controller.submit(lambda state: (rules.remove(state, removal, rules.Context()), None)).result(15)
    until(lambda: plane.rack.held(agent) == [])
    until(lambda: plane.lifecycle.agent_status(agent).info is None, 5)
    assert plane.lifecycle.agent_status("ag08").info is not None


def test_attributes_of_the_agents_that_respond(plane: Plane) -> None:
    plane.rack.stop_machines("ag02")
    plane.wait_down("ag02")
    attributes = plane.lifecycle.ipu_attributes(["ag01", "ag02", "unknown"]).result(15)
    assert list(attributes) == ["ag01"]
    assert sorted(attributes["ag01"]) == [0, 1, 2, 3]
    assert attributes["ag01"][0]["clock"] == "1330MHz"


def test_attributes_while_an_agent_is_removed(plane: Plane) -> None:
    connection = plane.lifecycle._driver.supervisor.connections["ag01"]
    plane.rack.fault("hang ag01")
    try:
        attributes = plane.lifecycle.ipu_attributes(["ag01", "ag03"])
        until(lambda: connection._calls)
        removal = Removal(Kind.AGENT, "ag01", force=True)
        plane.controller.submit(lambda state: (rules.remove(state, removal, rules.Context()), None)).result(15)
        assert list(attributes.result(15)) == ["ag03"]
    finally:
        plane.rack.fault("heal ag01")


def test_concurrent_callers_leave_consistent_partitions(plane: Plane) -> None:
    ids = ["a", "b", "c"]

    def storm(seed: int) -> None:
        for step in range(40):
            id = ids[(seed * 7 + step) % len(ids)]
            try:
                match (seed + step) % 4:
                    case 0 | 1:
                        plane.create(id, 8)
                    case 2:
                        plane.lifecycle.reset_partition(id, relocatable=False).result(15)
                    case 3:
                        plane.lifecycle.remove_partition(id, force=step % 8 == 3).result(15)
            except rules.RuleError:
                pass  # another caller was faster

    with ThreadPoolExecutor(8) as pool:
        done, _ = wait([pool.submit(storm, seed) for seed in range(8)], timeout=60)
        assert len(done) == 8
        for future in done:
            future.result()
    plane.wait_up()  # a busy machine delays heartbeats
    for id in ids:
        if id not in plane.state.partitions:
            plane.create(id, 8)
        plane.wait_active(id)
    with plane.controller.reading() as state:
        assert violations(state) == []
        expected = {agent: sorted(set(holders.values())) for agent, holders in state.holders.items()}
    until(lambda: {m.agent_id: list(m.partition_ids) for m in plane.rack.machines() if m.partition_ids} == expected)
