# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the info modules: equal results on both paths and in check mode, for each transport."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin

from openipu.vipu.fleet.status import DiscoveredAgent
from tests.integration.collection.playbook import results
from tests.integration.collection.recorder import Recorder
from tests.integration.collection.tasks import task
from tests.integration.vipu_servers import InProcess, InstantLife, partition, pod, wait_active

INFOS = [
    task("vipu_info"),
    task("vipu_info", gather_subset=["users", "ipu_attributes"]),
    task("vipu_partition_info"),
    task("vipu_partition_info", id="vision", ipuof=True),
    task("vipu_partition_info", id="nonesuch"),
    task("vipu_agent_discovery_info"),
]
FITS = task("vipu_info", gather_subset=["fits"], sizes=[1, 4, 8])


@pytest.fixture
def server(vipu_server: Callable[..., InProcess]) -> InProcess:
    """Return a server with four IPU-Machines, two partitions, a user and an unregistered agent."""
    server = vipu_server(life=InstantLife)
    pod(server, machines=4, allocations={"team-a": 2, "team-b": 2})
    for request in (
        partition("vision", 4, "team-a", num_gcds=2, reconfigurable=True),
        partition("notebook", 1, "team-a"),
    ):
        server.user.CreatePartition(request)
        wait_active(server, request.requirements.id)
    server.admin.CreateUser(
        admin.CreateUserRequest(spec=admin.UserSpec(id="alice", allocation_ids=["team-a", "team-b"]))
    )
    server.life.found = [DiscoveredAgent("127.0.9.1", 8080, "lo", 0.25), DiscoveredAgent("127.0.9.9", 8080, "lo", 1.5)]
    return server


@pytest.fixture
def recorder(server: InProcess) -> Iterator[Recorder]:
    """Return the recording proxy of that controller."""
    proxy = Recorder(server.address)
    yield proxy
    proxy.stop()


def block(tasks: list[dict[str, Any]], transport: str, fast_path: bool, check: bool = False) -> dict[str, Any]:
    """Runner of tasks on one transport and path."""
    return {
        "name": "Gather information",
        "vars": {"openipu_fast_path": fast_path},
        "check_mode": check,
        "module_defaults": {
            "group/openipu.pod.vipu": f"{{{{ controller | combine({{'transport': '{transport}'}}) }}}}"
        },
        "block": tasks,
    }


def without_invocation(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result without its invocation."""
    return {name: value for name, value in result.items() if name != "invocation" and not name.startswith("_")}


def common_part(value: Any, grpc_value: Any) -> Any:
    """Return the common part of the results of both transports, in one format."""
    if isinstance(value, dict) and isinstance(grpc_value, dict):
        return {name: common_part(part, grpc_value[name]) for name, part in value.items()}
    if isinstance(value, list) and isinstance(grpc_value, list) and len(value) == len(grpc_value):
        return [common_part(part, other) for part, other in zip(value, grpc_value, strict=True)]
    return value if value is None and grpc_value is not None else grpc_value


def test_results_of_info_modules(recorder: Recorder, tmp_path: Path) -> None:
    blocks = [
        block([*INFOS, FITS], "grpc", fast_path=True),
        block([*INFOS, FITS], "grpc", fast_path=False),
        block(INFOS, "grpc", fast_path=True, check=True),
        block(INFOS, "cli", fast_path=True),
        block(INFOS[:2], "cli", fast_path=False),
    ]
    found = results(tmp_path, blocks, controller={"api_host": "127.0.0.1", "api_port": recorder.port})
    outcomes = iter(found)
    done = [[without_invocation(next(outcomes)) for _ in each["block"]] for each in blocks]
    assert not list(outcomes)
    assert {result["changed"] for results in done for result in results} == {False}, found
    assert recorder.writes() == []
    action, module, check_mode, cli, cli_module = done
    assert action == module
    assert action[: len(INFOS)] == check_mode
    assert cli[:2] == cli_module
    for cli_result, grpc_result in zip(cli, action, strict=False):
        assert cli_result == common_part(cli_result, grpc_result)

    info, users_and_attributes, partitions, vision, missing, discovered, fits = action
    assert [agent["id"] for agent in info["agents"]] == ["ag01", "ag02", "ag03", "ag04"]
    assert info["agents"][0] == {
        "id": "ag01",
        "host": "127.0.9.1",
        "port": 8080,
        "state": "Up",
        "reason": None,
        "cluster": "cl0",
        "allocation": "team-a",
        "versions": {},  # these machines did not respond
        "in_service": True,
        "service_reason": None,
    }
    assert [(item["id"], item["free_ipus"]) for item in info["allocations"]] == [("team-a", 3), ("team-b", 8)]
    assert info["clusters"][0]["topology"] == "torus"
    assert {item["id"] for item in info["partitions"]} == {"vision", "notebook"}
    assert "users" not in info and "fits" not in info
    assert users_and_attributes["users"] == [{"id": "alice", "role": "user", "allocations": ["team-a", "team-b"]}]
    assert users_and_attributes["ipu_attributes"]["ag04"]["3"]["clock"] == "1330MHz"
    assert fits["fits"] == {"team-a": {"1": 3, "4": 0, "8": 0}, "team-b": {"1": 8, "4": 2, "8": 1}}
    assert {item["id"]: item["operation"] for item in partitions["partitions"]} == {
        "vision": "IDLE",
        "notebook": "IDLE",
    }
    assert [len(gcd["devices"]) for gcd in vision["partitions"][0]["ipuof"]] == [2, 2]
    assert missing["partitions"] == []
    assert [(agent["agent"], agent["age"]) for agent in discovered["agents"]] == [("ag01", 0.25), (None, 1.5)]


def test_partition_info_over_the_command_line_needs_two_calls(recorder: Recorder, tmp_path: Path) -> None:
    controller = {"api_host": "127.0.0.1", "api_port": recorder.port}
    results(tmp_path, [block([task("vipu_partition_info")], "cli", fast_path=True)], controller=controller)
    assert recorder.calls() == ["ListPartitions", "ListPartitions"]  # for details and states


def test_a_controller_with_the_public_api_only(vipu_server: Callable[..., InProcess], tmp_path: Path) -> None:
    database = tmp_path / "pod.db"
    full = vipu_server(database, life=InstantLife)
    pod(full, machines=1, allocations={"team-a": 1})
    full.user.CreatePartition(partition("vision", 4, "team-a"))
    wait_active(full, "vision")
    full.stop()
    server = vipu_server(database, life=InstantLife, public_only=True)
    tasks = [
        task("vipu_partition_info", id="vision", ipuof=True),
        task("vipu_ipuof_config", id="vision", dest="vision.conf"),
        task("vipu_info", gather_subset=["version", "partitions", "ipu_attributes"]),
        {**task("vipu_info"), "ignore_errors": True},
    ]
    host, port = server.address.rsplit(":", 1)
    for transport in ("grpc", "cli"):
        found = results(
            tmp_path, [block(tasks, transport, fast_path=True)], controller={"api_host": host, "api_port": int(port)}
        )
        partitions, config, info, rejected = found
        assert len(partitions["partitions"][0]["ipuof"][0]["devices"]) == 4
        assert config["changed"] is (transport == "grpc"), "both write the same file"
        assert [item["id"] for item in info["partitions"]] == ["vision"]
        assert list(info["ipu_attributes"]) == ["ag01"]
        assert "offers only the public user API." in rejected["msg"]
