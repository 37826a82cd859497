# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines out of service, over the APIs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.storage import backup
from tests.integration.vipu.test_server_admin import outcomes, rejection
from tests.integration.vipu_servers import (
    Client,
    InProcess,
    InstantLife,
    Machines,
    partition,
    pod,
    run,
    wait_active,
)
from tests.integration.watching import Watcher
from tests.waiting import until

IN, OUT = admin.SERVICE_STATE_IN_SERVICE, admin.SERVICE_STATE_OUT_OF_SERVICE


def set_service(client: Client, id: str, service: int, reason: str = "") -> bool:
    request = admin.SetAgentServiceRequest(id=id, service=service, service_reason=reason)
    return bool(client.admin.SetAgentService(request, timeout=10).changed)


def spec(client: Client, id: str) -> Any:
    return client.admin.GetAgent(admin.GetAgentRequest(id=id), timeout=10).agent.spec


def drain(client: Client, id: str, **fields: Any) -> Any:
    return client.admin.DrainAgent(admin.DrainAgentRequest(id=id, **fields), timeout=10)


def agents_of(server: InProcess, id: str) -> set[str]:
    with server.server.controller.reading() as state:
        return {agent for agent, _ in state.machines_of(state.partitions[id])}


def test_the_state_of_an_agent(instant_server: InProcess) -> None:
    pod(instant_server, 2)
    assert (spec(instant_server, "ag01").service, spec(instant_server, "ag01").service_reason) == (IN, "")
    assert not set_service(instant_server, "ag01", IN)
    assert set_service(instant_server, "ag01", OUT, "fan")
    assert not set_service(instant_server, "ag01", OUT)
    listed = instant_server.admin.ListAgents(admin.ListAgentsRequest()).agents
    assert [(each.spec.service, each.spec.service_reason) for each in listed] == [(OUT, "fan"), (IN, "")]
    reply = instant_server.tenant.GetAllocation(admin.GetAllocationRequest(id="a1"))
    assert (reply.allocation.free_ipus, list(reply.allocation.free_machines)) == (4, [1])
    attributes = instant_server.user.ListIPUAttributes(virmgrpc.ListIPUAttributesRequest()).entries
    states = {each.agent: each.ipu_attributes[0].attributes.get("service state") for each in attributes}
    assert states == {"ag01": "out of service", "ag02": None}
    assert rejection(lambda: set_service(instant_server, "ag01", 7)) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "Cannot change agent 'ag01': 7 is not a valid state of service. Omit it to keep it.",
    )
    assert set_service(instant_server, "ag01", IN)
    assert instant_server.tenant.GetAllocation(admin.GetAllocationRequest(id="a1")).allocation.free_ipus == 8


def test_batches_can_set_the_state(instant_server: InProcess) -> None:
    pod(instant_server, 2)

    def apply(**service: Any) -> Any:
        agent = admin.AgentSpec(id="ag01", host="127.0.9.1", **service)
        request = virmgrpc.PartitionRequirements(id="p", size=4, allocation_id="a1")
        partitions = [admin.PartitionSpec(requirements=request)]
        return instant_server.admin.Apply(admin.ApplyRequest(agents=[agent], partitions=partitions))

    created, changed, unchanged = admin.OUTCOME_CREATED, admin.OUTCOME_CHANGED, admin.OUTCOME_UNCHANGED
    assert outcomes(apply(service=OUT, service_reason="fan")) == [("ag01", changed), ("p", created)]
    assert agents_of(instant_server, "p") == {"ag02"}
    for service in ({}, {"service": OUT}):
        assert outcomes(apply(**service)) == [("ag01", unchanged), ("p", unchanged)]
    assert spec(instant_server, "ag01").service_reason == "fan"
    assert outcomes(apply(service=IN))[0] == ("ag01", changed)
    assert "9 is not a valid state" in rejection(lambda: apply(service=9))[1]


def test_watchers_receive_the_state(instant_server: InProcess) -> None:
    pod(instant_server, 2)
    watcher = Watcher(instant_server.admin)
    try:
        until(lambda: watcher.revision)
        set_service(instant_server, "ag01", OUT, "fan")
        until(lambda: not watcher.objects["agent", "ag01"]["in_service"])
        assert watcher.objects["agent", "ag01"]["service_reason"] == "fan"
        assert watcher.objects["allocation", "a1"]["free_ipus"] == 4
    finally:
        watcher.stop()


def test_backups_contain_the_state(vipu_server: Callable[..., InProcess], certs: Path, tmp_path: Path) -> None:
    server = vipu_server(life=InstantLife)
    pod(server, 2)
    set_service(server, "ag01", OUT, "fan")
    file, _ = backup.create(tmp_path / "vipu-server.db", certs, tmp_path)
    host = tmp_path / "host"
    made = run("restore", "--database", str(host / "vipu-server.db"), "--certs", str(host / "certs"), str(file))
    assert made.returncode == 0, made.stderr
    restored = vipu_server(database=host / "vipu-server.db", life=InstantLife)
    assert [(spec(restored, id).service, spec(restored, id).service_reason) for id in ("ag01", "ag02")] == [
        (OUT, "fan"),
        (IN, ""),
    ]


@pytest.fixture
def busy(vipu_server: Callable[..., InProcess], machines: Machines) -> InProcess:
    """Return a controller with real agents and an active relocatable partition on the first one."""
    server = vipu_server()
    pod(server, machines)
    request = partition("p", 4)
    request.relocatable = True
    server.user.CreatePartition(request, timeout=10)
    wait_active(server, "p")
    return server


def test_a_drain_moves_partitions(busy: InProcess) -> None:
    (first,) = agents_of(busy, "p")
    kept = drain(busy, first, service_reason="fan", validate_only=True)
    assert (kept.changed, spec(busy, first).service) == (True, IN)
    (stays,) = drain(busy, first, service_reason="fan").partitions
    assert (stays.moves, stays.partition_id, stays.allocation_id) == (False, "p", "a1")
    assert stays.reason.startswith("a job may use it")
    assert agents_of(busy, "p") == {first}
    assert (spec(busy, first).service, spec(busy, first).service_reason) == (OUT, "fan")
    losses = busy.server.lifecycle.agent_status(first).losses
    reply = drain(busy, first, force=True)
    assert reply.changed
    (moves,) = reply.partitions
    assert moves.moves
    wait_active(busy, "p")
    assert agents_of(busy, "p") == set(moves.agent_ids) != {first}
    assert drain(busy, first, force=True) == admin.DrainAgentReply()
    assert busy.server.lifecycle.agent_status(first).losses == losses  # the connection stays


def test_users_move_their_partitions_with_a_reset(busy: InProcess) -> None:
    (first,) = agents_of(busy, "p")
    drain(busy, first)
    reset = virmgrpc.ResetPartitionRequest(partition_id="p")
    busy.user.ResetPartition(reset, timeout=10)
    wait_active(busy, "p")
    assert agents_of(busy, "p") == {first}
    reset.relocatable = True
    busy.user.ResetPartition(reset, timeout=10)
    wait_active(busy, "p")
    assert agents_of(busy, "p") != {first}
