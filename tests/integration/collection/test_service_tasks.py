# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks that take machines out of service and drain them, with a real controller."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.collection.playbook import results
from tests.integration.collection.recorder import Recorder
from tests.integration.collection.tasks import AGENTS, Perform, task
from tests.integration.vipu_servers import InProcess, partition, wait_active

FIRST = AGENTS[0]
OUT = {**FIRST, "in_service": False, "service_reason": "fan 2 fails"}
CLI = {"transport": "cli", "vipu_admin_path": str(Path(sys.executable).with_name("vipu-admin"))}


def service(server: InProcess) -> tuple[bool, str]:
    agent = server.server.controller.state.agents["ag01"]
    return agent.out_of_service, agent.service_reason


def four_runs(perform: Perform, name: str, **options: Any) -> list[bool]:
    """Return whether check mode, a run, another run and another check report a change."""
    found = [perform(name, check, **options) for check in (True, False, False, True)]
    assert not any(each.get("failed") for each in found), found
    return [each["changed"] for each in found]


@pytest.mark.parametrize("transport", [{}, CLI], ids=["grpc", "cli"])
def test_an_agent_out_of_service(server: InProcess, perform: Perform, transport: dict[str, str]) -> None:
    assert perform("vipu_agent", True, **OUT, **transport)["changed"]
    assert service(server) == (False, "")
    assert four_runs(perform, "vipu_agent", **OUT, **transport) == [True, True, False, False]
    assert service(server) == (True, "fan 2 fails")
    for unset in (FIRST, {**FIRST, "in_service": False}):
        assert four_runs(perform, "vipu_agent", **unset, **transport) == [False] * 4
    back = perform("vipu_agent", **FIRST, **transport, in_service=True)
    assert (back["changed"], back["agent"]["in_service"], service(server)) == (True, True, (False, ""))
    changes = back["diff"]
    assert (changes["before"]["agents"]["ag01"]["in_service"], changes["after"]["agents"]["ag01"]["in_service"]) == (
        False,
        True,
    )


def test_the_reason_can_change(server: InProcess, perform: Perform) -> None:
    perform("vipu_agent", **OUT)
    other = {**OUT, "service_reason": "pump"}
    assert four_runs(perform, "vipu_agent", **other) == [True, True, False, False]
    assert service(server) == (True, "pump")
    moved = perform("vipu_agent", id="ag01", host="127.0.9.9")
    assert (moved["changed"], service(server)) == (True, (True, "pump"))
    failed = perform("vipu_agent", **{**other, "in_service": True})
    assert failed["failed"] and "Omit the reason" in failed["msg"]
    assert service(server) == (True, "pump")


def test_a_pod_with_agents_out_of_service(server: InProcess, perform: Perform) -> None:
    assert four_runs(perform, "vipu_pod", agents=[OUT, AGENTS[1]]) == [True, True, False, False]
    assert service(server) == (True, "fan 2 fails")
    new = {"id": "ag03", "host": "127.0.9.3", "in_service": False}
    assert four_runs(perform, "vipu_pod", agents=[new]) == [True, True, False, False]
    assert server.server.controller.state.out_of_service == {"ag01", "ag03"}
    rejected = perform("vipu_pod", agents=[{**new, "id": "ag04", "host": "127.0.9.4"}], **CLI)
    assert rejected["failed"] and "it has no flag for in_service false" in rejected["msg"]


def test_another_vipu_admin_has_no_command_for_it(server: InProcess, perform: Perform, tmp_path: Path) -> None:
    vendor = tmp_path / "vipu-admin"
    vendor.write_text("#!/bin/sh\nprintf ' Agent ID | Host | Port\\n---\\n ag01 | 127.0.9.1 | 8080\\n'\n")
    vendor.chmod(0o755)
    failed = perform("vipu_agent", **OUT, transport="cli", vipu_admin_path=str(vendor))
    assert failed["failed"]
    assert failed["msg"] == (
        "Cannot change in_service of agent 'ag01' over the command line: Graphcore's vipu-admin has no such command. "
        "Omit in_service or use transport grpc."
    )
    assert not perform("vipu_agent", **FIRST, in_service=True, transport="cli", vipu_admin_path=str(vendor))["changed"]


def relocatable(server: InProcess) -> str:
    """Create an active relocatable partition and return its agent."""
    request = partition("p", 4, "team-a")
    request.relocatable = True
    server.user.CreatePartition(request)
    wait_active(server, "p")
    with server.server.controller.reading() as state:
        return next(state.machines_of(state.partitions["p"]))[0]


def test_a_drain(server: InProcess, perform: Perform) -> None:
    agent = relocatable(server)
    assert four_runs(perform, "vipu_agent_drain", id=agent, service_reason="fan") == [True, True, False, False]
    stays = perform("vipu_agent_drain", id=agent)
    assert [item["id"] for item in stays["remaining"]] == ["p"]
    assert stays["diff"] == {"before": {"partitions": ["p"]}, "after": {"partitions": ["p"]}}
    predicted = perform("vipu_agent_drain", True, id=agent, force=True)
    (moves,) = predicted["partitions"]
    assert (predicted["changed"], predicted["remaining"], moves["moves"]) == (True, [], True)
    assert perform("vipu_agent_drain", id=agent, force=True)["partitions"] == [moves]
    empty = perform("vipu_agent_drain", id=agent, force=True)
    assert (empty["changed"], empty["partitions"]) == (False, [])


def test_a_rejected_drain(perform: Perform) -> None:
    assert perform("vipu_agent_drain", id="x")["msg"] == "Cannot drain agent 'x': agent 'x' does not exist."
    assert perform("vipu_agent_drain", id="ag01", **CLI)["msg"] == (
        "Cannot drain agent 'ag01' over the command line: Graphcore's vipu-admin has no such command. Use transport "
        "grpc."
    )


def test_modules_and_action_plugins_do_the_same(server: InProcess, tmp_path: Path) -> None:
    recorder = Recorder(server.address)
    drain, back = task("vipu_agent_drain", id="ag01"), task("vipu_agent", **FIRST, in_service=True)
    blocks = [
        {
            "vars": {"openipu_fast_path": fast_path},
            "check_mode": check,
            "module_defaults": {"group/openipu.pod.vipu": "{{ controller }}"},
            "block": tasks,
        }
        for fast_path in (True, False)
        for check, tasks in ((True, [drain]), (False, [drain, drain, back, back]), (True, [back]))
    ]
    try:
        found = results(tmp_path, blocks, controller={"api_host": "127.0.0.1", "api_port": recorder.port})
        assert [result["changed"] for result in found] == [True, True, False, True, False, False] * 2
        assert recorder.writes() == ["DrainAgent", "DrainAgent", "Apply"] * 2
    finally:
        recorder.stop()
