# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of partitions over the command lines on machines of the twin, with and without faults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.agents.agents_support import RackProcess
from tests.integration.collection.playbook import results
from tests.integration.collection.tasks import task
from tests.integration.vipu_servers import Process
from tests.waiting import until


def partition_states(result: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the states of partitions by id."""
    return [(item["id"], item["state"]) for item in result["partitions"]]


def test_a_rack_over_the_command_lines(
    tmp_path: Path, request: pytest.FixtureRequest, vipu_process: Callable[..., Process]
) -> None:
    rack = RackProcess(tmp_path, 2)
    request.addfinalizer(rack.close)
    host, port = vipu_process("--partition-timeout", "2").address.rsplit(":", 1)
    controller = {"api_host": host, "api_port": int(port), "transport": "cli"}
    agents = [{"id": agent.id, "host": agent.host, "port": agent.port} for agent in rack.agents]

    def run(*tasks: dict[str, Any]) -> list[dict[str, Any]]:
        return results(tmp_path, list(tasks), controller=controller)

    def partition(id: str, **options: Any) -> dict[str, Any]:
        return task("vipu_partition", id=id, allocation="a0", **options)

    bulk = task(
        "vipu_pod",
        agents=agents,
        clusters=[{"id": "cl0", "agents": [agent["id"] for agent in agents], "topology": "torus"}],
        allocations=[{"id": "a0", "cluster": "cl0", "size": 2}],
        partitions=[{"id": "p1", "allocation": "a0", "size": 4}],
    )
    created, again, info, config = run(
        bulk,
        bulk,
        task("vipu_partition_info"),
        task("vipu_ipuof_config", id="p1", dest="p1.conf"),
    )
    assert (created["partition_states"], again["changed"]) == ({"p1": "ACTIVE"}, False)
    assert partition_states(info) == [("p1", "ACTIVE")]
    assert config["changed"] and '"ip": "127.' in (tmp_path / "p1.conf").read_text()
    assert not (tmp_path / ".ipuof.conf.d").exists(), "the command has left its own file in the home of the task"

    holder = next(agent.id for agent in rack.agents if rack.held(agent.id))
    (other,) = (agent.id for agent in rack.agents if agent.id != holder)
    rack.fault(f"reject {other}")
    (failed,) = run(partition("p2", size=4))
    assert "Cannot activate partition 'p2': it is in state ERROR: " in failed["msg"]
    assert failed["changed"], "it was created, although it is in ERROR"
    assert until(lambda: partition_states(run(task("vipu_partition_info", id="p2"))[0]) == [("p2", "ERROR")], 60)
    info, rejected = run(task("vipu_partition_info"), partition("p2", size=4, routing="swnc", wait=False))
    assert sorted(partition_states(info)) == [("p1", "ACTIVE"), ("p2", "ERROR")]
    assert "from dnc to swnc" in rejected["msg"]
    rack.fault(f"heal {other}")
    reset, removed, info = run(
        partition("p2", state="reset"), partition("p1", state="absent"), task("vipu_partition_info")
    )
    assert (reset["changed"], reset["partition"]["state"]) == (True, "ACTIVE")
    assert removed["changed"]
    assert partition_states(info) == [("p2", "ACTIVE")]
    assert rack.held(holder) == []
    rack.stop_machines(other)
    assert until(lambda: partition_states(run(task("vipu_partition_info"))[0]) == [("p2", "ERROR")], 60)
