# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of tasks of two plays that create, change or remove the same objects at the same time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.vipu.transport.command_line import CliTransport
from ansible_collections.openipu.pod.plugins.module_utils.vipu.transport.grpc_api import GrpcTransport

from tests.integration.collection.tasks import performer
from tests.integration.vipu_servers import InProcess, InstantLife

BIN = Path(sys.executable).parent
Result = dict[str, Any]
Together = Callable[..., list[Result]]
PARTITION = {"id": "p", "allocation": "team-a", "size": 4}
AGENT = {"id": "ag09", "host": "127.0.9.9"}


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> Together:
    """Return a function that runs tasks in threads. All of them read before the first one writes."""

    def together(*tasks: Callable[[], Result]) -> list[Result]:
        barrier, local = threading.Barrier(len(tasks)), threading.local()

        def waiting(write: Callable[..., Any]) -> Callable[..., Any]:
            def write_together(*arguments: Any) -> Any:
                if not hasattr(local, "waited"):
                    local.waited = True
                    barrier.wait(30)
                return write(*arguments)

            return write_together

        with monkeypatch.context() as patch:
            for transport in (CliTransport, GrpcTransport):
                patch.setattr(transport, "write", waiting(transport.write))
            return perform_all(tasks)

    def perform_all(tasks: tuple[Callable[[], Result], ...]) -> list[Result]:
        with ThreadPoolExecutor(len(tasks)) as pool:
            return [future.result(60) for future in [pool.submit(task) for task in tasks]]

    return together


def outcome(results: list[Result]) -> tuple[list[str], list[bool]]:
    return [result["msg"] for result in results if "msg" in result], sorted(result["changed"] for result in results)


@pytest.mark.parametrize("public_only", [False, True])
def test_both_create_and_remove_a_partition(
    server: InProcess, vipu_server: Callable[..., InProcess], together: Together, public_only: bool
) -> None:
    if public_only:
        server.stop()
        server = vipu_server(life=InstantLife, public_only=True)
    task = partial(performer(server), "vipu_partition", **PARTITION)
    created = together(task, task)
    assert outcome(created) == ([], [False, True])
    assert [result["partition"]["state"] for result in created] == ["ACTIVE", "ACTIVE"]
    absent = partial(performer(server), "vipu_partition", id="p", state="absent")
    assert outcome(together(absent, absent)) == ([], [False, True])


@pytest.mark.parametrize(
    ("module", "options"),
    [
        ("vipu_agent", AGENT),
        ("vipu_pod", {"agents": [AGENT], "partitions": [PARTITION]}),
        ("vipu_pod", {"partitions": [PARTITION, {**PARTITION, "id": "q"}]}),
    ],
)
def test_both_create_and_remove_objects(
    server: InProcess, together: Together, module: str, options: dict[str, Any]
) -> None:
    task = partial(performer(server), module, **options)
    assert outcome(together(task, task)) == ([], [False, True])
    prune = {name: [] for name in ("agents", "partitions") if name in options}
    if module == "vipu_agent":
        task = partial(performer(server), module, id=AGENT["id"], state="absent")
    else:
        task = partial(performer(server), module, **{**prune, "agents": None}, prune=["partitions"])
    assert outcome(together(task, task)) == ([], [False, True])


def test_both_create_a_user_and_one_receives_the_access_key(
    server: InProcess, together: Together, tmp_path: Path
) -> None:
    files = [tmp_path / "one.hcl", tmp_path / "two.hcl"]
    perform = performer(server)
    results = together(
        *(partial(perform, "vipu_user", id="alice", allocations=["team-a"], config_dest=str(file)) for file in files)
    )
    assert outcome(results) == ([], [False, True])
    assert [file.exists() for file in files] == [result["changed"] for result in results]


def test_different_objects_of_one_id_are_an_error(server: InProcess, together: Together) -> None:
    perform = performer(server)
    sizes = (partial(perform, "vipu_partition", **{**PARTITION, "size": size}) for size in (2, 4))
    messages, changed = outcome(together(*sizes))
    assert changed == [False, True]
    (message,) = messages
    assert message.startswith("Cannot change size of partition 'p' from ")
    assert "the field is immutable" in message


def test_an_object_that_both_change_gets_the_last_value(server: InProcess, together: Together) -> None:
    perform = performer(server)
    hosts = [partial(perform, "vipu_agent", id="ag09", host=f"127.0.9.{number}") for number in (9, 10)]
    assert outcome(together(*hosts)) == ([], [True, True])


def test_an_id_of_another_tenant_stays_an_error(server: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    perform = performer(server)
    perform("vipu_partition", **PARTITION)
    reads: list[str] = []
    monkeypatch.setattr(GrpcTransport, "read", lambda _transport, kind: reads.append(kind) or [])
    result = perform("vipu_partition", **PARTITION)
    assert result["msg"] == "Cannot create partition 'p': a partition with this id already exists. Choose another id."
    assert reads == ["partition"] * 2


def over_commands(server: InProcess) -> Callable[..., Result]:
    """Return a performer of tasks over the command lines."""
    paths = {f"{name}_path": str(BIN / name.replace("_", "-")) for name in ("vipu", "vipu_admin")}
    return partial(performer(server), transport="cli", **paths)


def test_both_create_and_remove_over_the_command_lines(server: InProcess, together: Together) -> None:
    agents = [{"id": f"ag{number:02}", "host": f"127.0.9.{number}"} for number in range(6, 10)]
    task = partial(over_commands(server), "vipu_pod", agents=agents, partitions=[PARTITION])
    results = together(task, task)
    assert [result.get("msg") for result in results] == [None, None]
    for kind, names in (("agents", [agent["id"] for agent in agents]), ("partitions", ["p"])):
        assert sorted(name for result in results for name in result[kind]["created"]) == names
    task = partial(over_commands(server), "vipu_pod", partitions=[], prune=["partitions"])
    assert outcome(together(task, task)) == ([], [False, True])


def test_a_change_before_a_different_object_is_reported(server: InProcess, together: Together) -> None:
    tasks = (
        partial(
            over_commands(server),
            "vipu_pod",
            agents=[{"id": id, "host": host}],
            partitions=[{**PARTITION, "size": size}],
        )
        for id, host, size in (("ag08", "127.0.9.8", 2), ("ag09", "127.0.9.9", 4))
    )
    messages, changed = outcome(together(*tasks))
    assert (len(messages), changed) == (1, [True, True]), messages
    assert messages[0].startswith("Cannot change size of partition 'p' from ")
