# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects that a failed creation of a vPOD reports. The controller is real; OpenStack is not needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from openipu.vipu.domain.model import Operation, Put, ReadyState
from openipu.vipu.domain.state import State
from tests import ROOT
from tests.integration.collection.playbook import results
from tests.integration.vipu_servers import InProcess, InstantLife, pod

ROLE = ROOT / "roles/vpod/tasks"
VARIABLES: dict[str, Any] = {
    "vpod_name": "red",
    "vpod_tenant": "research",
    "vpod_partition": "red",
    "vpod_allocation": "red",
    "vpod_ipus": 4,
    "vpod_machines": 1,
    "vpod_wait_timeout": 0.2,
    "vpod_tenant_settings": {},
    "vipu_pod_clusters": [{"id": "cl0"}],
}
RECORDED = {"vpod_recorded": {"changed": True, "tags": {"created": ["red"]}}}
RECORD = "its record in project 'research'"


def named(tasks: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield tasks and those in their blocks by name."""
    for task in tasks:
        yield task["name"], task
        for part in ("block", "always"):
            yield from named(task.get(part, []))


MAIN = dict(named(yaml.safe_load((ROLE / "main.yml").read_text())))
ALLOCATE, PARTITION = (
    {**MAIN[name], "ignore_errors": True} for name in ("Allocate IPU-Machines", "Create the partition")
)
END = {"ansible.builtin.include_tasks": str(ROLE / "run_end.yml")}


def reports(server: InProcess, folder: Path, *tasks: dict[str, Any]) -> list[str]:
    """Return the messages at the ends of runs that have recorded the vPOD, ``tasks`` with END for each end."""
    host, port = server.address.rsplit(":", 1)
    recorded = {"ansible.builtin.set_fact": RECORDED}
    steps = [step for task in tasks for step in ([task, recorded] if task is END else [task])]
    found = results(folder, [recorded, *steps], controller={"api_host": host, "api_port": int(port)}, **VARIABLES)
    return [each["msg"] for each in found if str(each.get("msg")).startswith("The run for vPOD")]


def result(**values: Any) -> dict[str, Any]:
    return {"ansible.builtin.set_fact": values}


@pytest.fixture
def server(vipu_server: Callable[..., InProcess]) -> InProcess:
    """Two machines, one of them free. Partitions do not become ACTIVE."""
    server = vipu_server(life=InstantLife)
    pod(server, machines=2, allocations={"team-a": 1})
    server.life.configures = False
    return server


def objects(message: str) -> str:
    """Return the list of objects in a message."""
    return message.split("The vPOD has at least ")[1].split(". vpod_info.yml ")[0]


def test_a_partition_that_is_not_active_in_time_is_reported(server: InProcess, tmp_path: Path) -> None:
    [message] = reports(server, tmp_path, ALLOCATE, PARTITION, END)
    assert message == (
        f"The run for vPOD 'red' is incomplete. The vPOD has at least {RECORD}, allocation red, partition red. "
        "vpod_info.yml shows its allocation, partition and VMs. Correct the error above. Then run vpod_create.yml "
        "again to create the missing objects, or vpod_destroy.yml to delete the vPOD. In AWX, the workflow "
        "'Order a vPOD' deletes a new vPOD itself. Then order it again."
    )

    def fail(state: State) -> tuple[list[Put], None]:
        changes = {"ready": ReadyState.ERROR, "operation": Operation.FAILED, "errors": ("Agent 'ag02' is down.",)}
        return [Put(replace(state.partitions["red"], **changes))], None

    server.life.records.submit(fail).result(15)
    [message] = reports(server, tmp_path, ALLOCATE, PARTITION, END)
    assert objects(message) == f"{RECORD}, allocation red, partition red"


def test_only_existing_objects_are_reported(server: InProcess, tmp_path: Path) -> None:
    removed = {"partitions": {"red": {"state": "REMOVED"}}}
    found = reports(
        server,
        tmp_path,
        {**PARTITION, "vars": {"vpod_allocation": "none"}},  # the controller rejects it
        END,
        result(vpod_partitioned={"failed": True, "changed": True, **removed}),
        END,
        result(
            vpod_assigned={"changed": False, "skipped": True},
            vpod_share={"failed": True, "changed": True, "ids": {"shares": {"red": "5f0b"}}},
            vpod_started={"failed": True, "changed": True, "ids": {"servers": {"red-poplar": "6a1c"}}},
        ),
        END,
        result(vpod_share={"changed": False, "skipped": True}),
        END,
    )
    assert list(map(objects, found)) == [RECORD, RECORD, f"{RECORD}, share red, VM red-poplar", RECORD]
