# SPDX-License-Identifier: GPL-3.0-or-later
"""Every scenario four ways (check, apply, apply again, check again) on both paths and both transports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playbook import play
from recorder import Recorder
from vipu_servers import InProcess, InstantLife

AGENTS = [{"id": f"ag{n:02}", "host": f"127.2.1.{n}"} for n in range(1, 3)]
NAMES = [agent["id"] for agent in AGENTS]
CLUSTER = {"id": "cl0", "agents": NAMES, "topology": "torus"}
ALLOCATION = {"id": "team-a", "cluster": "cl0", "size": 2}
VISION = {"id": "vision", "allocation": "team-a", "size": 4, "reconfigurable": True}
NOTEBOOK = {"id": "notebook", "allocation": "team-a", "size": 1}


def task(module: str, **options: Any) -> dict[str, Any]:
    """One task of the collection."""
    return {"name": module, f"openipu.pod.{module}": options}


BULK = [
    task("vipu_pod", agents=AGENTS, clusters=[CLUSTER], allocations=[ALLOCATION], partitions=[VISION, NOTEBOOK]),
]
SINGLE = [
    *(task("vipu_agent", **agent) for agent in AGENTS),
    task("vipu_cluster", **CLUSTER),
    task("vipu_allocation", **ALLOCATION),
    task("vipu_partition", **VISION),
    task("vipu_partition", **NOTEBOOK),
    task("vipu_user", id="alice", allocations=["team-a"], config_dest="alice.hcl"),
    task("vipu_ipuof_config", id="vision", dest="vision.conf"),
]
GONE = [
    task("vipu_ipuof_config", id="vision", dest="vision.conf", state="absent"),
    task("vipu_user", id="alice", state="absent"),
    task("vipu_partition", id="vision", state="absent"),
    task("vipu_partition", id="notebook", state="absent"),
    task("vipu_allocation", id="team-a", state="absent"),
    task("vipu_cluster", id="cl0", state="absent"),
    *(task("vipu_agent", id=name, state="absent") for name in NAMES),
]
PRUNED = [task("vipu_pod", prune=["agents", "clusters", "allocations", "partitions"])]


@pytest.fixture
def recorder(vipu_server: Callable[..., InProcess]) -> Iterator[Recorder]:
    """A controller behind a proxy that writes down the calls."""
    proxy = Recorder(vipu_server(life=InstantLife).address)
    yield proxy
    proxy.stop()


@pytest.mark.parametrize(
    ("scenario", "transport", "fast_path"),
    [
        pytest.param(BULK, "grpc", True, id="bulk-grpc-action"),
        pytest.param(BULK, "grpc", False, id="bulk-grpc-module"),
        pytest.param(BULK, "cli", True, id="bulk-cli-action"),
        pytest.param(BULK, "cli", False, id="bulk-cli-module"),
        pytest.param(SINGLE, "grpc", True, id="single-grpc-action"),
        pytest.param(SINGLE, "grpc", False, id="single-grpc-module"),
        pytest.param(SINGLE, "cli", True, id="single-cli-action"),
        pytest.param(SINGLE, "cli", False, id="single-cli-module"),
    ],
)
def test_four_ways(
    recorder: Recorder, tmp_path: Path, scenario: list[dict[str, Any]], transport: str, fast_path: bool
) -> None:
    variables = {
        "controller": {"api_host": "127.0.0.1", "api_port": recorder.port, "transport": transport},
        "openipu_fast_path": fast_path,
    }

    def run(tasks: list[dict[str, Any]], *options: str, read_only: bool) -> tuple[int, str]:
        recorder.clear(read_only)
        played = play(tmp_path, tasks, "--diff", *options, **variables)
        assert played.failed == 0, played.output
        assert played.ok == len(tasks), played.output
        assert bool(recorder.writes) == (not read_only), recorder.calls
        return played.changed, played.output

    for tasks in (scenario, GONE if scenario is SINGLE else PRUNED):
        assert run(tasks, "--check", read_only=True)[0] == len(tasks)
        assert run(tasks, read_only=False)[0] == len(tasks)
        assert run(tasks, read_only=True)[0] == 0
        assert run(tasks, "--check", read_only=True)[0] == 0


def test_calls_of_a_bulk_run(recorder: Recorder, tmp_path: Path) -> None:
    connection = {"api_host": "127.0.0.1", "api_port": recorder.port}
    play(tmp_path, BULK, controller=connection)
    assert recorder.calls[:5] == ["ListAgents", "ListClusters", "ListAllocations", "ListPartitions", "Apply"]
    assert set(recorder.calls[5:]) == {"ListPartitions"}  # waiting
    recorder.clear(read_only=True)
    assert play(tmp_path, BULK, controller=connection).changed == 0
    assert recorder.calls == ["ListAgents", "ListClusters", "ListAllocations", "ListPartitions"]


def test_an_access_key_stands_in_its_file_and_nowhere_else(recorder: Recorder, tmp_path: Path) -> None:
    tasks = [
        task("vipu_pod", agents=AGENTS, clusters=[CLUSTER], allocations=[ALLOCATION]),
        {**task("vipu_user", id="alice", allocations=["team-a"], config_dest="alice.hcl"), "register": "user"},
        {"name": "Show", "ansible.builtin.debug": {"var": "user"}},
    ]
    played = play(tmp_path, tasks, "--diff", "-vvv", controller={"api_host": "127.0.0.1", "api_port": recorder.port})
    file = tmp_path / "alice.hcl"
    assert file.stat().st_mode & 0o777 == 0o600
    key = file.read_text().split('api-access-key="')[1].split('"')[0]
    assert len(key) == 11
    assert key not in played.output


@pytest.mark.parametrize("fast_path", [True, False], ids=["action", "module"])
def test_failures_are_sentences(recorder: Recorder, tmp_path: Path, fast_path: bool) -> None:
    connection = {"api_host": "127.0.0.1", "api_port": recorder.port}
    tasks = [
        *BULK,
        task("vipu_partition", id="big", allocation="team-a", size=8),
        task("vipu_partition", **{**VISION, "size": 2}),
        task("vipu_partition", **{**VISION, "size": 2}, recreate=True),
        task("vipu_allocation", id="team-a", state="absent"),
        task("vipu_pod", partitions=[NOTEBOOK, NOTEBOOK]),
        task("vipu_pod", agents=[{"id": "../etc", "host": "127.2.1.9"}]),
        task("vipu_info", api_port=1),
        task("vipu_info", gather_subset=["version"], transport="cli", vipu_path="/nonexistent/vipu"),
        task("vipu_agent", id="ag09"),
    ]
    tasks = [{**each, "ignore_errors": True} for each in tasks]
    played = play(tmp_path, tasks, controller=connection, openipu_fast_path=fast_path)
    text = " ".join(played.output.split())
    for sentence in (
        "Cannot create partition 'big': allocation 'team-a' has 3 free IPUs in blocks of at most 2.",
        "Partition 'vision' has size 4 and cannot be changed to 2: set recreate",
        "Cannot remove allocation 'team-a': partitions 'notebook', 'vision' are in it",
        "Partition 'notebook' stands twice, at partitions[0] and partitions[1]",
        "the id of an agent is 1 to 63 letters",
        "The V-IPU controller at 127.0.0.1:1 does not answer (connection refused)",
        "The command '/nonexistent/vipu' was not found",
        "state is present but all of the following are missing: host",
    ):
        assert sentence in text.replace("''", "'"), sentence
    assert "Traceback" not in text
