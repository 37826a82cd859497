# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of partitions in playbooks: resets, changes, failures, GCDs; and a whole POD on real agents."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playbook import results
from test_scenarios import AGENTS, NOTEBOOK, VISION, task
from vipu_servers import InProcess, InstantLife, Machines, pod

from openipu.vipu.model import Operation, Put, Ready, State

SPLIT = {"id": "split", "allocation": "team-a", "size": 2, "num_gcds": 2}

# The path only decides where a task runs and the transport how it asks: three ways meet each of them once or more.
ways = pytest.mark.parametrize(
    ("transport", "fast_path"),
    [("grpc", True), ("grpc", False), ("cli", True)],
    ids=["grpc-action", "grpc-module", "cli-action"],
)


def run(
    server: InProcess, folder: Path, tasks: list[dict[str, Any]], transport: str = "grpc", fast_path: bool = True
) -> list[dict[str, Any]]:
    """The results of tasks at a server, of those that failed too."""
    host, port = server.address.rsplit(":", 1)
    controller = {"api_host": host, "api_port": int(port), "transport": transport}
    tasks = [{**each, "ignore_errors": True} for each in tasks]
    found = results(folder, tasks, controller=controller, openipu_fast_path=fast_path)
    assert len(found) == len(tasks)
    return found


def outcome(result: dict[str, Any]) -> tuple[bool, bool]:
    """Whether a task failed, and whether it changed anything."""
    return result["failed"], result["changed"]


@pytest.fixture
def server(vipu_server: Callable[..., InProcess]) -> InProcess:
    """Two machines, one of them for team-a."""
    server = vipu_server(life=InstantLife)
    pod(server, machines=2, allocations={"team-a": 1})
    return server


@ways
def test_resets_and_changes(server: InProcess, tmp_path: Path, transport: str, fast_path: bool) -> None:
    smaller = {**VISION, "size": 2}
    moved = task("vipu_agent", **{**AGENTS[1], "port": 8181})
    grown = task("vipu_allocation", id="team-a", cluster="cl0", size=2)
    missing, made, reset, refused, anew, again, to_port, at_port, grow, as_large = run(
        server,
        tmp_path,
        [
            task("vipu_partition", id="vision", state="reset"),
            task("vipu_partition", **VISION),
            task("vipu_partition", id="vision", state="reset"),
            task("vipu_partition", **smaller),
            task("vipu_partition", **smaller, recreate=True),
            task("vipu_partition", **smaller, recreate=True),
            moved,
            moved,
            grown,
            grown,
        ],
        transport,
        fast_path,
    )
    assert outcome(missing) == (True, False)
    assert missing["msg"] == "Cannot reset partition 'vision': it does not exist; create it with state present."
    assert outcome(made) == outcome(reset) == (False, True)
    assert reset["partition"]["state"] == "ACTIVE"
    assert outcome(refused) == (True, False)
    assert "Partition 'vision' has size 4 and cannot be changed to 2: set recreate" in refused["msg"]
    assert outcome(anew) == (False, True), anew
    assert (anew["partition"]["size"], anew["partition"]["state"]) == (2, "ACTIVE")
    assert outcome(again) == (False, False)
    if transport == "cli":
        for refused in (to_port, grow):
            assert outcome(refused) == (True, False)
            assert re.fullmatch(
                r"Cannot change (agent 'ag02'|allocation 'team-a') over the command line: .* or use transport grpc\.",
                refused["msg"],
            ), refused
        return
    assert (outcome(to_port), outcome(at_port)) == ((False, True), (False, False)), to_port
    assert to_port["agent"]["port"] == 8181
    assert (outcome(grow), outcome(as_large)) == ((False, True), (False, False)), grow
    assert grow["allocation"]["agents"] == ["ag01", "ag02"]


@ways
def test_partitions_that_do_not_become_active(
    server: InProcess, tmp_path: Path, transport: str, fast_path: bool
) -> None:
    server.life.configures = False
    run(server, tmp_path, [task("vipu_partition", **NOTEBOOK, wait=False)])
    fail(server, "notebook", "Agent 'ag01' refused: the IPUs do not come up.")
    waited, failed = run(
        server,
        tmp_path,
        # The command itself waits until the partition is ACTIVE, which timeout bounds.
        [task("vipu_partition", **SPLIT, timeout=10, wait_timeout=0.5), task("vipu_partition", **NOTEBOOK)],
        transport,
        fast_path,
    )
    assert outcome(waited) == (True, True)
    assert waited["msg"].startswith("Partition 'split' was still PENDING")
    assert waited["msg"].endswith(" after 0.5 seconds: allow more with wait_timeout.")
    assert waited["partitions"]["split"]["state"] == "PENDING"
    assert outcome(failed) == (True, False)
    assert failed["msg"].startswith("Partition 'notebook' is in ERROR: ")
    assert failed["msg"].endswith(" Mend the cause and use state reset.")
    assert "Agent 'ag01' refused: the IPUs do not come up." in failed["msg"]
    assert failed["partitions"]["notebook"]["state"] == "ERROR"


def fail(server: InProcess, id: str, error: str) -> None:
    """Fail a partition as its machines would."""

    def command(state: State) -> tuple[list[Put], None]:
        changed = {"ready": Ready.ERROR, "operation": Operation.FAILED, "errors": (error,)}
        return [Put(replace(state.partitions[id], **changed))], None

    server.life.records.submit(command).result(15)


@ways
def test_the_files_of_two_gcds(server: InProcess, tmp_path: Path, transport: str, fast_path: bool) -> None:
    first, second = (task("vipu_ipuof_config", id="split", gcd=gcd, dest=f"gcd{gcd}.conf") for gcd in (0, 1))
    made, written, other, same, refused = run(
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
    assert outcome(made) == outcome(written) == outcome(other) == (False, True)
    assert outcome(same) == (False, False)
    assert outcome(refused) == (True, False)
    assert refused["msg"] == "Partition 'split' has 2 GCDs: say with gcd which one the file is for."
    configs = [json.loads((tmp_path / f"gcd{gcd}.conf").read_text()) for gcd in (0, 1)]
    assert [config["attributes"]["GCD Id"] for config in configs] == ["0", "1"]
    assert all(len(config["devices"]) == 1 for config in configs)
    assert configs[0]["devices"] != configs[1]["devices"]
    assert not (tmp_path / "both.conf").exists()


def test_a_pod_on_real_agents_four_ways(
    vipu_server: Callable[..., InProcess], machines: Machines, tmp_path: Path
) -> None:
    """Check, apply, apply again, check again: the partitions are brought up on machines, and taken off them."""
    server = vipu_server()
    agents = [{"id": agent.id, "host": agent.host, "port": agent.port} for agent in machines.agents[:4]]
    bulk = task(
        "vipu_pod",
        agents=agents,
        clusters=[{"id": "cl0", "agents": [agent["id"] for agent in agents], "topology": "torus"}],
        allocations=[{"id": "team-a", "cluster": "cl0", "size": 4}],
        partitions=[{**VISION, "size": 8}, NOTEBOOK],
    )
    there = ("checked", "applied", "again", "checked again")
    kinds = ["partitions", "allocations", "clusters", "agents"]
    pruned = task("vipu_pod", prune=kinds, **{kind: [] for kind in kinds})
    tasks = [{**bulk, "check_mode": way.startswith("checked")} for way in there]
    look = task("vipu_partition_info", id="vision", ipuof=True)
    *found, info, back, gone = run(server, tmp_path, [*tasks, look, pruned, pruned])
    assert [outcome(result) for result in found] == [(False, changed) for changed in (True, True, False, False)]
    assert found[1]["partition_states"] == {"vision": "ACTIVE", "notebook": "ACTIVE"}
    assert info["partitions"][0]["state"] == "ACTIVE"
    devices = info["partitions"][0]["ipuof"][0]["devices"]
    assert len({(device["ip"], device["device_id"]) for device in devices}) == 8
    assert {device["ip"] for device in devices} <= {agent["host"] for agent in agents}
    assert (outcome(back), outcome(gone)) == ((False, True), (False, False)), back
