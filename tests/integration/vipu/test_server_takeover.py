# SPDX-License-Identifier: GPL-3.0-or-later
"""Takeovers of agents that are registered in the same request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import grpc
import pytest

from openipu.shared.vipu.contract import admin
from openipu.vipu.fleet import connection
from openipu.vipu.fleet.status import AgentState
from openipu.vipu.lifecycle.interface import LifecycleOptions
from openipu.vipu.storage.interface import StoppedError
from tests.integration.collection.playbook import results
from tests.integration.collection.tasks import task
from tests.integration.vipu_servers import InProcess, Machines
from tests.waiting import until

FAST = LifecycleOptions(heartbeat=0.2)
ABSENT = "127.83.255.1"  # no agent listens there


@pytest.fixture
def rack(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    monkeypatch.setattr(connection, "FIRST_RESPONSE", 2.0)
    made = Machines(1)
    yield made
    made.stop()


@pytest.fixture
def server(vipu_server: Callable[..., InProcess], rack: Machines) -> InProcess:
    return vipu_server(lifecycle=FAST)


def request(rack: Machines) -> Any:
    absent = admin.AgentSpec(id="absent", host=ABSENT, take_over=True)
    user = admin.UserSpec(id="alice", role=admin.ROLE_ADMIN)
    return admin.ApplyRequest(agents=[absent, rack.agents[0]], users=[user])


def test_a_batch_with_a_failed_takeover_returns_all_access_keys(server: InProcess, rack: Machines) -> None:
    reply = server.admin.Apply(request(rack))
    assert reply.applied
    assert set(reply.access_keys) == {"alice"}
    failed, taken, user = reply.results
    assert (failed.id, failed.outcome, failed.code) == (
        "absent",
        admin.OUTCOME_FAILED,
        grpc.StatusCode.FAILED_PRECONDITION.value[0],
    )
    assert failed.error.startswith("Cannot take over agent 'absent': ")
    assert failed.error.endswith(
        ". The record of the agent is stored. Take it over with 'vipu-admin take-over agent absent'."
    )
    assert (taken.outcome, taken.error, user.outcome) == (admin.OUTCOME_CREATED, "", admin.OUTCOME_CREATED)
    assert server.life.agent_status("ag01").state is AgentState.UP
    again = server.admin.Apply(request(rack))
    assert again.applied
    assert [item.outcome for item in again.results] == [
        admin.OUTCOME_FAILED,
        admin.OUTCOME_UNCHANGED,
        admin.OUTCOME_UNCHANGED,
    ]


def test_a_stop_during_a_takeover_loses_no_access_keys(
    server: InProcess, rack: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(agent_ids: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(StoppedError())
        return future

    monkeypatch.setattr(server.life, "take_over", stopped)
    reply = server.admin.Apply(request(rack))
    assert set(reply.access_keys) == {"alice"}
    assert [item.outcome for item in reply.results[:2]] == [admin.OUTCOME_FAILED] * 2
    assert reply.results[0].error.startswith("Cannot take over agent 'absent': the controller is stopping. The record ")


def test_a_single_agent_is_registered_before_its_takeover(server: InProcess, rack: Machines) -> None:
    spec = admin.AgentSpec(id="absent", host=ABSENT, take_over=True)
    with pytest.raises(grpc.RpcError) as caught:
        server.admin.CreateAgent(admin.CreateAgentRequest(spec=spec))
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert (
        "The record of the agent is stored. Take it over with 'vipu-admin take-over agent absent'."
        in caught.value.details()
    )
    with pytest.raises(grpc.RpcError, match=r"Cannot take over agent 'absent': .*\.\""):
        server.admin.TakeOverAgent(admin.TakeOverAgentRequest(id="absent"))


@pytest.mark.parametrize("fast_path", [True, False], ids=["action", "module"])
def test_a_task_reports_a_failed_takeover_and_the_next_one_repeats_it(
    vipu_server: Callable[..., InProcess], server: InProcess, rack: Machines, tmp_path: Path, fast_path: bool
) -> None:
    owner = vipu_server(tmp_path / "owner.db", lifecycle=FAST)
    owner.admin.CreateAgent(admin.CreateAgentRequest(spec=rack.agents[0]))
    until(lambda: owner.life.agent_status("ag01").state is AgentState.UP)
    (agent,) = rack.agents
    host, port = server.address.rsplit(":", 1)
    present = {"id": "ag01", "host": agent.host, "port": agent.port}
    absent = {"id": "absent", "host": ABSENT, "take_over": True}
    clusters = [{"id": "cl0", "agents": ["ag01"]}]

    def run(*tasks: dict[str, Any]) -> list[dict[str, Any]]:
        controller = {"api_host": host, "api_port": int(port)}
        ignored = [{**each, "ignore_errors": True} for each in tasks]
        return results(tmp_path, ignored, controller=controller, openipu_fast_path=fast_path)

    (first,) = run(task("vipu_pod", agents=[present, absent], clusters=clusters))
    assert (first["failed"], first["changed"]) == (True, True)
    assert first["msg"].startswith("Cannot take over agent 'absent': ")
    assert first["msg"].endswith("Take it over with 'vipu-admin take-over agent absent'.")
    assert [(error["kind"], error["id"]) for error in first["errors"]] == [("agent", "absent")]
    assert (first["agents"]["created"], first["clusters"]["created"]) == (["ag01"], ["cl0"])
    until(lambda: server.life.agent_status("ag01").rejects)
    taking = task("vipu_pod", agents=[{**present, "take_over": True}], clusters=clusters)
    checked, taken = run({**taking, "check_mode": True, "diff": True}, taking)
    assert (checked["failed"], checked["changed"]) == (False, True), checked
    assert checked["diff"]["before"]["agents"]["ag01"]["take_over"] is False
    assert (taken["failed"], taken["agents"]["updated"]) == (False, ["ag01"]), taken
    until(lambda: server.life.agent_status("ag01").state is AgentState.UP)
    (again,) = run(taking)
    assert (again["failed"], again["changed"]) == (False, False)
    assert owner.life.agent_status("ag01").rejects
