# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of all scenarios with check, apply, apply again and check again, on both paths and transports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.integration.collection.playbook import play, results
from tests.integration.collection.recorder import READER, VALIDATION, Recorder
from tests.integration.collection.tasks import AGENTS, ALLOCATION, CLUSTER, NOTEBOOK, VISION, task
from tests.integration.vipu_servers import InProcess, InstantLife

BULK = [
    task("vipu_pod", agents=AGENTS, clusters=[CLUSTER], allocations=[ALLOCATION], partitions=[VISION, NOTEBOOK]),
]
# The content of a configuration is unknown until its partition exists.
IPUOF_CONFIG = task("vipu_ipuof_config", id="notebook", dest="notebook.conf")
SINGLE = [
    task("vipu_agent", **AGENTS[0]),
    task("vipu_cluster", id="cl0", agents=["ag01"]),
    task("vipu_allocation", id="team-a", cluster="cl0", size=1),
    task("vipu_partition", **NOTEBOOK),
    task("vipu_user", id="alice", allocations=["team-a"], config_dest="alice.hcl"),
    IPUOF_CONFIG,
]
REMOVAL = [
    task("vipu_ipuof_config", id="notebook", dest="notebook.conf", state="absent"),
    task("vipu_user", id="alice", state="absent"),
    task("vipu_partition", id="notebook", state="absent"),
    task("vipu_allocation", id="team-a", state="absent"),
    task("vipu_cluster", id="cl0", state="absent"),
    task("vipu_agent", id="ag01", state="absent"),
]
KINDS = ["agents", "clusters", "allocations", "partitions"]
PRUNED = [task("vipu_pod", **{kind: [] for kind in KINDS}, prune=KINDS)]


@pytest.fixture
def recorder(vipu_server: Callable[..., InProcess]) -> Iterator[Recorder]:
    """Return the recording proxy of a controller."""
    proxy = Recorder(vipu_server(life=InstantLife).address)
    yield proxy
    proxy.stop()


@dataclass(frozen=True)
class Stage:
    """Tasks of a scenario in one of four modes, on one of two paths, with their own user name."""

    tasks: tuple[dict[str, Any], ...] = field(compare=False)
    part: int
    path: str
    mode: str

    @property
    def writes(self) -> bool:
        return self.mode == "apply"

    @property
    def caller(self) -> str:
        return f"{'writer' if self.writes else READER}-{self.path}-{self.part}-{self.mode}"

    @property
    def block(self) -> dict[str, Any]:
        as_caller = f"{{{{ controller | combine({{'api_user_id': '{self.caller}'}}) }}}}"
        return {
            "name": self.caller,
            "check_mode": self.mode.startswith("check"),
            "diff": True,
            "vars": {"openipu_fast_path": self.path == "action"},
            "module_defaults": {"group/openipu.pod.vipu": as_caller},
            "block": list(self.tasks),
        }


@pytest.mark.timeout(300)  # a hundred tasks, over the command lines with several processes each
@pytest.mark.parametrize("transport", ["grpc", "cli"])
@pytest.mark.parametrize("scenario", [(BULK, PRUNED), (SINGLE, REMOVAL)], ids=["bulk", "single"])
def test_scenarios_are_idempotent_in_all_modes(
    recorder: Recorder, tmp_path: Path, scenario: tuple[list[dict[str, Any]], ...], transport: str
) -> None:
    """Check, apply, apply again, check again; there and back; in place and as modules: all in one playbook.

    Over the command lines, which take a second for each task, modules apply only.
    """
    stages = [
        Stage(tuple(tasks), part, path, mode)
        for path, modes in (
            ("action", ["check", "apply", "again", "check-again"]),
            ("module", ["check", "apply", "again"] if transport == "grpc" else ["apply"]),
        )
        for part, tasks in enumerate(scenario)
        for mode in modes
    ]
    controller = {"api_host": "127.0.0.1", "api_port": recorder.port, "transport": transport}
    found = results(tmp_path, [stage.block for stage in stages], controller=controller)
    assert not found[-1]["failed"], found[-1]
    remaining = iter(found)
    done = {stage: [next(remaining) for _ in stage.tasks] for stage in stages}
    assert not list(remaining)
    for stage, outcomes in done.items():
        for outcome in outcomes:
            assert outcome["changed"] is (stage.mode in ("check", "apply")), (stage.caller, outcome)
        assert recorder.calls(stage.caller), f"{stage.caller} sent no request"
        assert bool(recorder.writes(stage.caller)) is stage.writes, (stage.caller, recorder.calls(stage.caller))
    for stage, outcomes in done.items():
        module = replace(stage, path="module")
        for step, actual, expected in zip(stage.tasks, outcomes, done.get(module, outcomes), strict=True):
            assert _comparable(actual) == _comparable(expected), step
        predicted = done.get(replace(stage, mode="check"))
        if stage.writes and predicted:
            for step, actual, expected in zip(stage.tasks, outcomes, predicted, strict=True):
                assert actual["diff"] == expected.get("diff", actual["diff"] if step is IPUOF_CONFIG else None), step


def _comparable(result: dict[str, Any]) -> dict[str, Any]:
    """Return the result without values that only AnsibleModule adds to results with ``dest``."""
    added = {"invocation", *(("gid", "group", "mode", "owner", "size", "state", "uid") if "dest" in result else ())}
    return {name: value for name, value in result.items() if name not in added}


def test_calls_of_a_bulk_run(recorder: Recorder, tmp_path: Path) -> None:
    controller = {"api_host": "127.0.0.1", "api_port": recorder.port}
    reads = ["ListAgents", "ListClusters", "ListAllocations", "ListPartitions"]
    assert play(tmp_path, BULK, "--check", controller={**controller, "api_user_id": "reader-1"}).changed == 1
    assert recorder.calls("reader-1") == [*reads, VALIDATION]
    play(tmp_path, BULK, controller=controller)
    assert recorder.calls()[:5] == [*reads, "Apply"]
    assert set(recorder.calls()[5:]) == {"ListPartitions"}  # waiting
    assert play(tmp_path, BULK, controller={**controller, "api_user_id": "reader-2"}).changed == 0
    assert recorder.calls("reader-2") == reads


def test_access_key_appears_only_in_its_file(recorder: Recorder, tmp_path: Path) -> None:
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
def test_messages_of_failures(recorder: Recorder, tmp_path: Path, fast_path: bool) -> None:
    connection = {"api_host": "127.0.0.1", "api_port": recorder.port}
    tasks = [
        *BULK,
        task("vipu_partition", id="big", allocation="team-a", size=8),
        task("vipu_partition", **{**VISION, "size": 2}),
        task("vipu_partition", **{**VISION, "size": 2}, recreate=True),
        task("vipu_allocation", id="team-a", state="absent"),
        task("vipu_pod", partitions=[NOTEBOOK, NOTEBOOK]),
        task("vipu_pod", agents=[{"id": "../etc", "host": "127.0.9.9"}]),
        task("vipu_info", api_port=1),
        task("vipu_info", gather_subset=["version"], transport="cli", vipu_path="/nonexistent/vipu"),
        task("vipu_agent", id="ag09"),
    ]
    tasks = [{**each, "ignore_errors": True} for each in tasks]
    played = play(tmp_path, tasks, controller=connection, openipu_fast_path=fast_path)
    text = " ".join(played.output.split())
    for message in (
        (
            "Cannot create partition 'big': allocation 'team-a' has 3 free IPUs in blocks of at most 2. "
            "Request at most 2, or remove a partition."
        ),
        "Cannot change size of partition 'vision' from 4 to 2: the field is immutable. Set recreate",
        "Cannot remove allocation 'team-a': partitions 'notebook', 'vision' are in it",
        "Cannot plan partition 'notebook': it is listed twice, at partitions[0] and partitions[1]",
        "the id of an agent must have 1 to 63 letters",
        "the V-IPU controller at 127.0.0.1:1 does not respond (connection refused)",
        "Cannot run command '/nonexistent/vipu': it was not found",
        "state is present but all of the following are missing: host",
    ):
        assert message in text.replace("''", "'"), message
    assert "Traceback" not in text
