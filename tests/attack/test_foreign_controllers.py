# SPDX-License-Identifier: GPL-3.0-or-later
"""Controllers that use the agents of another deployment, or of a later process of their own."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from openipu.shared.vipu.contract import admin
from openipu.vipu.fleet.status import AgentState
from openipu.vipu.lifecycle.interface import LifecycleOptions
from tests.integration.vipu_servers import InProcess, Machines, partition, pod, wait_active
from tests.waiting import until

FAST = LifecycleOptions(heartbeat=0.2, partition_timeout=3.0)


def accept(*_: Any) -> str:
    """Accept every caller, in place of ``ownership.rejection``."""
    return ""


@pytest.fixture
def rack() -> Iterator[Machines]:
    made = Machines(2)
    yield made
    made.stop()


def held(machines: Machines) -> list[list[str]]:
    return [machine.hardware.partition_ids for machine in machines._rack.machines.values()]


def wait_known(server: InProcess) -> None:
    """Wait until the controller has reached its agents, or was rejected."""
    until(
        lambda: all(
            server.life.agent_status(id).state is not AgentState.UNKNOWN for id in server.server.controller.state.agents
        )
    )


@pytest.fixture
def first(vipu_server: Callable[..., InProcess], rack: Machines, tmp_path: Path) -> InProcess:
    """Return a controller with partition ``p`` on all machines."""
    server = vipu_server(tmp_path / "first.db", lifecycle=FAST)
    pod(server, rack)
    server.user.CreatePartition(partition("p", 8))
    wait_active(server, "p")
    return server


@pytest.mark.defence("openipu.vipu.agent.ownership.rejection", accept)
def test_a_second_controller_releases_nothing(
    vipu_server: Callable[..., InProcess], rack: Machines, first: InProcess, tmp_path: Path
) -> None:
    second = vipu_server(tmp_path / "second.db", lifecycle=FAST)
    for agent in rack.agents:  # as on a port that another rack has used before
        second.admin.CreateAgent(
            admin.CreateAgentRequest(spec=admin.AgentSpec(id=agent.id, host=agent.host, port=agent.port))
        )
    wait_known(second)
    statuses = [second.life.agent_status(agent.id) for agent in rack.agents]
    assert [status.state for status in statuses] == [AgentState.DOWN] * 2
    assert all("it belongs to deployment" in status.reason for status in statuses)
    assert held(rack) == [["p"], ["p"]]
    assert first.life.unavailable() == frozenset()


@pytest.mark.defence("openipu.vipu.agent.ownership.rejection", accept)
def test_a_copy_of_the_database_stops_the_earlier_controller(
    vipu_server: Callable[..., InProcess], rack: Machines, first: InProcess, tmp_path: Path
) -> None:
    for suffix in ("", "-wal"):
        shutil.copy(f"{tmp_path / 'first.db'}{suffix}", f"{tmp_path / 'copy.db'}{suffix}")
    copy = vipu_server(tmp_path / "copy.db", lifecycle=FAST)
    wait_known(copy)
    until(lambda: len(first.life.unavailable()) == 2, 5, "the rejection of the earlier controller")
    assert "a later controller of deployment" in first.life.agent_status("ag01").reason
    assert copy.life.unavailable() == frozenset()
    wait_active(copy, "p")
    assert held(rack) == [["p"], ["p"]]


@pytest.mark.defence("openipu.vipu.agent.ownership.rejection", accept)
def test_a_takeover_is_explicit_and_removal_gives_up(
    vipu_server: Callable[..., InProcess], rack: Machines, first: InProcess, tmp_path: Path
) -> None:
    second = vipu_server(tmp_path / "second.db", lifecycle=FAST)
    spec = admin.AgentSpec(id="x", host=rack.agents[0].host, port=rack.agents[0].port)
    second.admin.CreateAgent(admin.CreateAgentRequest(spec=spec))
    wait_known(second)
    second.admin.TakeOverAgent(admin.TakeOverAgentRequest(id="x"))
    until(lambda: second.life.agent_status("x").state is AgentState.UP)
    until(lambda: first.life.unavailable() == {"ag01"})
    second.admin.RemoveAgent(admin.RemoveRequest(id="x"))
    until(lambda: first.life.unavailable() == frozenset(), 10, "the return to the first controller")
