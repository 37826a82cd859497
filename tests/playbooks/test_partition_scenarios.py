# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of partitions in playbooks: resets, changes, failures, GCDs, and a POD on real agents."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from openipu.vipu.domain.model import Operation, Put, ReadyState
from openipu.vipu.domain.state import State
from tests.integration.collection.playbook import results
from tests.integration.collection.tasks import AGENTS, NOTEBOOK, VISION, task
from tests.integration.vipu_servers import InProcess, InstantLife, Machines, pod

SPLIT = {"id": "split", "allocation": "team-a", "size": 2, "num_gcds": 2}

# Three combinations cover each path and each transport at least once.
transports = pytest.mark.parametrize(
    ("transport", "fast_path"),
    [("grpc", True), ("grpc", False), ("cli", True)],
    ids=["grpc-action", "grpc-module", "cli-action"],
)


def run(
    server: InProcess, folder: Path, tasks: list[dict[str, Any]], transport: str = "grpc", fast_path: bool = True
) -> list[dict[str, Any]]:
    """Return the results of tasks at a server, including failed ones."""
    host, port = server.address.rsplit(":", 1)
    controller = {"api_host": host, "api_port": int(port), "transport": transport}
    tasks = [{**each, "ignore_errors": True} for each in tasks]
    found = results(folder, tasks, controller=controller, openipu_fast_path=fast_path)
    assert len(found) == len(tasks)
    return found


def outcome(result: dict[str, Any]) -> tuple[bool, bool]:
    """Return the values failed and changed of a result."""
    return result["failed"], result["changed"]


@pytest.fixture
def server(vipu_server: Callable[..., InProcess]) -> InProcess:
    """Two machines, one of them for team-a."""
    server = vipu_server(life=InstantLife)
    pod(server, machines=2, allocations={"team-a": 1})
    return server


@transports
def test_resets_and_changes(server: InProcess, tmp_path: Path, transport: str, fast_path: bool) -> None:
    smaller = {**VISION, "size": 2}
    move_agent = task("vipu_agent", **{**AGENTS[1], "port": 8181})
    grow_allocation = task("vipu_allocation", id="team-a", cluster="cl0", size=2)
    (
        missing,
        created,
        reset,
        rejected,
        recreated,
        unchanged,
        agent_change,
        agent_repeated,
        allocation_change,
        allocation_repeated,
    ) = run(
        server,
        tmp_path,
        [
            task("vipu_partition", id="vision", state="reset"),
            task("vipu_partition", **VISION),
            task("vipu_partition", id="vision", state="reset"),
            task("vipu_partition", **smaller),
            task("vipu_partition", **smaller, recreate=True),
            task("vipu_partition", **smaller, recreate=True),
            move_agent,
            move_agent,
            grow_allocation,
            grow_allocation,
        ],
        transport,
        fast_path,
    )
    assert outcome(missing) == (True, False)
    assert missing["msg"] == "Cannot reset partition 'vision': it does not exist. Create it with state present."
    assert outcome(created) == outcome(reset) == (False, True)
    assert reset["partition"]["state"] == "ACTIVE"
    assert outcome(rejected) == (True, False)
    assert (
        "Cannot change size of partition 'vision' from 4 to 2: the field is immutable. Set recreate" in rejected["msg"]
    )
    assert outcome(recreated) == (False, True), recreated
    assert (recreated["partition"]["size"], recreated["partition"]["state"]) == (2, "ACTIVE")
    assert outcome(unchanged) == (False, False)
    if transport == "cli":
        for rejected in (agent_change, allocation_change):
            assert outcome(rejected) == (True, False)
            assert re.fullmatch(
                r"Cannot change (agent 'ag02'|allocation 'team-a') over the command line: .* or use transport grpc\.",
                rejected["msg"],
            ), rejected
        return
    assert (outcome(agent_change), outcome(agent_repeated)) == ((False, True), (False, False)), agent_change
    assert agent_change["agent"]["port"] == 8181
    assert (outcome(allocation_change), outcome(allocation_repeated)) == ((False, True), (False, False)), (
        allocation_change
    )
    assert allocation_change["allocation"]["agents"] == ["ag01", "ag02"]


@transports
def test_the_controller_chooses_an_allocation(
    vipu_server: Callable[..., InProcess], tmp_path: Path, transport: str, fast_path: bool
) -> None:
    server = vipu_server(life=InstantLife)
    pod(server, machines=3, allocations={"team-a": 2, "team-b": 1})
    wanted = {"id": "vision", "size": 4}
    created, unchanged, kept, moved = run(
        server,
        tmp_path,
        [
            task("vipu_partition", **wanted),
            task("vipu_partition", **wanted),
            task("vipu_partition", **wanted, allocation="team-b", cluster="cl0"),
            task("vipu_partition", **wanted, allocation="team-a"),
        ],
        transport,
        fast_path,
    )
    assert outcome(created) == (False, True), created
    assert created["partition"]["allocation"] == "team-b"
    assert outcome(unchanged) == outcome(kept) == (False, False)
    assert unchanged["partition"] == kept["partition"] == created["partition"]
    assert outcome(moved) == (True, False)
    assert "Cannot change allocation of partition 'vision' from team-b to team-a" in moved["msg"]


@transports
def test_partitions_that_do_not_become_active(
    server: InProcess, tmp_path: Path, transport: str, fast_path: bool
) -> None:
    server.life.configures = False
    run(server, tmp_path, [task("vipu_partition", **NOTEBOOK, wait=False)])
    fail(server, "notebook", "Agent 'ag01' rejected its share: the IPUs do not come up.")
    timed_out, failed = run(
        server,
        tmp_path,
        # The command itself waits until the partition is ACTIVE, which timeout bounds.
        [task("vipu_partition", **SPLIT, timeout=10, wait_timeout=0.5), task("vipu_partition", **NOTEBOOK)],
        transport,
        fast_path,
    )
    assert outcome(timed_out) == (True, True)
    assert timed_out["msg"].startswith("Cannot activate partition 'split': it is still PENDING")
    assert timed_out["msg"].endswith(" after 0.5 seconds. Check the controller, or increase wait_timeout.")
    assert timed_out["partitions"]["split"]["state"] == "PENDING"
    assert outcome(failed) == (True, False)
    assert failed["msg"].startswith("Cannot activate partition 'notebook': it is in state ERROR: ")
    assert failed["msg"].endswith(" Fix the cause and use state reset.")
    assert "Agent 'ag01' rejected its share: the IPUs do not come up." in failed["msg"]
    assert failed["partitions"]["notebook"]["state"] == "ERROR"


def fail(server: InProcess, id: str, error: str) -> None:
    """Fail a partition as its machines would."""

    def command(state: State) -> tuple[list[Put], None]:
        changed = {"ready": ReadyState.ERROR, "operation": Operation.FAILED, "errors": (error,)}
        return [Put(replace(state.partitions[id], **changed))], None

    server.life.records.submit(command).result(15)


@transports
def test_the_files_of_two_gcds(server: InProcess, tmp_path: Path, transport: str, fast_path: bool) -> None:
    first, second = (task("vipu_ipuof_config", id="split", gcd=gcd, dest=f"gcd{gcd}.conf") for gcd in (0, 1))
    created, written, second_written, unchanged, rejected = run(
        server,
        tmp_path,
        [
            task("vipu_partition", **SPLIT),
            first,
            second,
            second,
            task("vipu_ipuof_config", id="split", dest="both.conf"),
        ],
        transport,
        fast_path,
    )
    assert outcome(created) == outcome(written) == outcome(second_written) == (False, True)
    assert outcome(unchanged) == (False, False)
    assert outcome(rejected) == (True, False)
    assert (
        rejected["msg"]
        == "Cannot write the IPUoF configuration of partition 'split': it has 2 GCDs. Select one with gcd."
    )
    configs = [json.loads((tmp_path / f"gcd{gcd}.conf").read_text()) for gcd in (0, 1)]
    assert [config["attributes"]["GCD Id"] for config in configs] == ["0", "1"]
    assert all(len(config["devices"]) == 1 for config in configs)
    assert configs[0]["devices"] != configs[1]["devices"]
    assert not (tmp_path / "both.conf").exists()


def test_a_pod_on_real_agents_is_applied_and_pruned_idempotently(
    vipu_server: Callable[..., InProcess], machines: Machines, tmp_path: Path
) -> None:
    """Check, apply, apply again, check again with partitions on machines."""
    pod(vipu_server(tmp_path / "earlier.db"), machines)  # releases the shares of other tests
    server = vipu_server()
    agents = [
        {"id": agent.id, "host": agent.host, "port": agent.port, "take_over": True} for agent in machines.agents[:4]
    ]
    bulk = task(
        "vipu_pod",
        agents=agents,
        clusters=[{"id": "cl0", "agents": [agent["id"] for agent in agents], "topology": "torus"}],
        allocations=[{"id": "team-a", "cluster": "cl0", "size": 4}],
        partitions=[{**VISION, "size": 8}, NOTEBOOK],
    )
    modes = ("checked", "applied", "again", "checked again")
    kinds = ["partitions", "allocations", "clusters", "agents"]
    pruned = task("vipu_pod", prune=kinds, **{kind: [] for kind in kinds})
    tasks = [{**bulk, "check_mode": mode.startswith("checked")} for mode in modes]
    query = task("vipu_partition_info", id="vision", ipuof=True)
    *outcomes, info, pruned_first, pruned_again = run(server, tmp_path, [*tasks, query, pruned, pruned])
    assert [outcome(result) for result in outcomes] == [(False, changed) for changed in (True, True, False, False)]
    assert outcomes[1]["partition_states"] == {"vision": "ACTIVE", "notebook": "ACTIVE"}
    assert info["partitions"][0]["state"] == "ACTIVE"
    devices = info["partitions"][0]["ipuof"][0]["devices"]
    assert len({(device["ip"], device["device_id"]) for device in devices}) == 8
    assert {device["ip"] for device in devices} <= {agent["host"] for agent in agents}
    assert (outcome(pruned_first), outcome(pruned_again)) == ((False, True), (False, False)), pruned_first
