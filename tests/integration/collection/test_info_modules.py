# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules that only look: the same on both paths and in check mode, as much as each transport can tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin
from playbook import results
from recorder import Recorder
from test_scenarios import task
from vipu_servers import InProcess, InstantLife, partition, pod, wait_active

from openipu.vipu.ports import DiscoveredAgent

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
    """Four IPU-Machines, two partitions, a user, and an agent that nobody has registered."""
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
    server.life.found = [DiscoveredAgent("127.2.1.1", 8080, "lo", 0.25), DiscoveredAgent("127.2.1.9", 8080, "lo", 1.5)]
    return server


@pytest.fixture
def recorder(server: InProcess) -> Iterator[Recorder]:
    """That controller behind a proxy that writes down the calls."""
    proxy = Recorder(server.address)
    yield proxy
    proxy.stop()


def block(tasks: list[dict[str, Any]], transport: str, fast_path: bool, check: bool = False) -> dict[str, Any]:
    """Tasks over a transport, on a path."""
    return {
        "name": "Look",
        "vars": {"openipu_fast_path": fast_path},
        "check_mode": check,
        "module_defaults": {
            "group/openipu.pod.vipu": f"{{{{ controller | combine({{'transport': '{transport}'}}) }}}}"
        },
        "block": tasks,
    }


def told(result: dict[str, Any]) -> dict[str, Any]:
    """A result without how it was asked for."""
    return {name: value for name, value in result.items() if name != "invocation" and not name.startswith("_")}


def known(value: Any, fuller: Any) -> Any:
    """The part of what one transport tells that the other tells too, as the other tells it."""
    if isinstance(value, dict) and isinstance(fuller, dict):
        return {name: known(part, fuller[name]) for name, part in value.items()}
    if isinstance(value, list) and isinstance(fuller, list) and len(value) == len(fuller):
        return [known(part, other) for part, other in zip(value, fuller, strict=True)]
    return value if value is None and fuller is not None else fuller


def test_what_is_told(recorder: Recorder, tmp_path: Path) -> None:
    blocks = [
        block([*INFOS, FITS], "grpc", fast_path=True),
        block([*INFOS, FITS], "grpc", fast_path=False),
        block(INFOS, "grpc", fast_path=True, check=True),
        block(INFOS, "cli", fast_path=True),
        block(INFOS[:2], "cli", fast_path=False),
    ]
    found = results(tmp_path, blocks, controller={"api_host": "127.0.0.1", "api_port": recorder.port})
    outcomes = iter(found)
    done = [[told(next(outcomes)) for _ in each["block"]] for each in blocks]
    assert not list(outcomes)
    assert {result["changed"] for results in done for result in results} == {False}, found
    assert recorder.writes() == []
    fast, module, checked, cli, cli_module = done
    assert fast == module
    assert fast[: len(INFOS)] == checked
    assert cli[:2] == cli_module
    for ours, theirs in zip(cli, fast, strict=False):
        assert ours == known(ours, theirs)

    info, more, partitions, vision, nothing, heard, fits = fast
    assert [agent["id"] for agent in info["agents"]] == ["ag01", "ag02", "ag03", "ag04"]
    assert info["agents"][0] == {
        "id": "ag01",
        "host": "127.2.1.1",
        "port": 8080,
        "state": "Up",
        "reason": None,
        "cluster": "cl0",
        "allocation": "team-a",
        "versions": {},  # these machines have not answered
    }
    assert [(item["id"], item["free_ipus"]) for item in info["allocations"]] == [("team-a", 3), ("team-b", 8)]
    assert info["clusters"][0]["topology"] == "torus"
    assert {item["id"] for item in info["partitions"]} == {"vision", "notebook"}
    assert "users" not in info and "fits" not in info
    assert more["users"] == [{"id": "alice", "role": "user", "allocations": ["team-a", "team-b"]}]
    assert more["ipu_attributes"]["ag04"]["3"]["clock"] == "1330MHz"
    assert fits["fits"] == {"team-a": {"1": 3, "4": 0, "8": 0}, "team-b": {"1": 8, "4": 2, "8": 1}}
    assert {item["id"]: item["operation"] for item in partitions["partitions"]} == {
        "vision": "IDLE",
        "notebook": "IDLE",
    }
    assert [len(gcd["devices"]) for gcd in vision["partitions"][0]["ipuof"]] == [2, 2]
    assert nothing["partitions"] == []
    assert [(agent["agent"], agent["age"]) for agent in heard["agents"]] == [("ag01", 0.25), (None, 1.5)]


def test_the_command_line_is_asked_no_more_than_it_has_to_be(recorder: Recorder, tmp_path: Path) -> None:
    controller = {"api_host": "127.0.0.1", "api_port": recorder.port}
    results(tmp_path, [block([task("vipu_partition_info")], "cli", fast_path=True)], controller=controller)
    assert recorder.calls() == ["ListPartitions", "ListPartitions"]  # what they are, and how they are


def test_a_controller_with_nothing_but_the_public_api(vipu_server: Callable[..., InProcess], tmp_path: Path) -> None:
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
        partitions, config, info, refused = found
        assert len(partitions["partitions"][0]["ipuof"][0]["devices"]) == 4
        assert config["changed"] is (transport == "grpc"), "both write the same file"
        assert [item["id"] for item in info["partitions"]] == ["vision"]
        assert list(info["ipu_attributes"]) == ["ag01"]
        assert "offers only the public user API, which cannot list" in refused["msg"]
