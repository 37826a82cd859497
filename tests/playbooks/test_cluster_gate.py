# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the gate of cluster tests on machines of the twin, with and without cabling faults."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin

from tests import ROOT
from tests.integration.collection.playbook import results
from tests.integration.collection.recorder import READER, Recorder
from tests.integration.collection.tasks import performer, task
from tests.integration.vipu_servers import InProcess, Machines, pod

FOUR = ("ag01", "ag02", "ag03", "ag04")
SIX = ["Sync-Link", "Cabling", "IPU-Link", "Traffic", "GW-Link", "Version"]

transports = pytest.mark.parametrize(
    ("transport", "fast_path"),
    [("grpc", True), ("grpc", False), ("cli", True)],
    ids=["grpc-action", "grpc-module", "cli-action"],
)


@pytest.fixture
def server(vipu_server: Callable[..., InProcess], machines: Machines) -> Iterator[InProcess]:
    """Return a server with four machines in a mesh and no allocations."""
    server = vipu_server()
    pod(server, machines, allocations={})
    server.admin.Apply(admin.ApplyRequest(removals=[admin.ObjectRef(kind=admin.KIND_CLUSTER, id="cl0", force=True)]))
    cluster = admin.ClusterSpec(id="cl0", agent_ids=FOUR)
    allocation = admin.AllocationSpec(id="a0", cluster_id="cl0", size=4)
    assert server.admin.Apply(admin.ApplyRequest(clusters=[cluster], allocations=[allocation])).applied
    yield server
    machines.wiring.repair(set(FOUR))


@pytest.fixture
def recorder(server: InProcess) -> Iterator[Recorder]:
    proxy = Recorder(server.address)
    yield proxy
    proxy.stop()


class Controller:
    """Runner of tasks for one controller, on one path and transport."""

    def __init__(self, folder: Path, port: int, transport: str, fast_path: bool) -> None:
        self._folder, self._fast_path = folder, fast_path
        self._options = {"api_host": "127.0.0.1", "api_port": port, "transport": transport}

    def run(self, *tasks: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
        return results(
            self._folder,
            [{"ignore_errors": True, **each} for each in tasks],
            controller={**self._options, **options},
            openipu_fast_path=self._fast_path,
        )


GATE = task("vipu_cluster_test", cluster="cl0")


@transports
def test_a_passed_test_is_not_repeated(
    recorder: Recorder, machines: Machines, tmp_path: Path, transport: str, fast_path: bool
) -> None:
    controller = Controller(tmp_path, recorder.port, transport, fast_path)
    info, planned = controller.run(
        task("vipu_cluster_test_info"), {**GATE, "check_mode": True}, api_user_id=f"{READER}-1"
    )
    assert info["run"] is None
    assert (planned["changed"], planned["would_run"]) == (True, SIX)
    (opened,) = controller.run(GATE)
    assert (opened["changed"], opened["ok"], opened["failures"]) == (True, True, [])
    assert [(item["test"], item["passed"], item["total"]) for item in opened["run"]["results"]] == [
        ("Sync-Link", 6, 6),
        ("Cabling", 12, 12),
        ("IPU-Link", 76, 76),
        ("Traffic", 1, 1),
        ("GW-Link", 0, 0),
        ("Version", 6, 6),
    ]
    first, second, other, last_run = controller.run(
        {**GATE, "check_mode": transport == "cli"},
        {**GATE, "check_mode": True},
        {**task("vipu_cluster_test", cluster="cl0", tests=["PFC-settings"]), "check_mode": True},
        task("vipu_cluster_test_info"),
        api_user_id=f"{READER}-2",
    )
    if transport == "grpc":
        assert (first["changed"], first["ok"]) == (False, True)
        assert first["skipped_reason"] == "Cluster 'cl0' passed these tests and has not changed since."
        assert (second["changed"], second["skipped_reason"]) == (False, first["skipped_reason"])
    else:  # the command does not print the former state of the cluster
        assert second["would_run"] == SIX
    assert (other["changed"], other["would_run"]) == (True, ["PFC-settings"])
    assert (last_run["run"]["state"], last_run["run"]["cluster"], last_run["failures"]) == ("finished", "cl0", [])
    assert not recorder.writes(f"{READER}-1") + recorder.writes(f"{READER}-2")

    # Allocations do not count as a change of the cluster, agents do.
    (forced,) = controller.run({**GATE, GATE_MODULE: {"cluster": "cl0", "force": True, "tests": ["Version"]}})
    assert (forced["changed"], [item["test"] for item in forced["run"]["results"]]) == (True, ["Version"])
    (missing,) = controller.run({**GATE, "check_mode": True})
    assert missing["would_run"] == SIX


GATE_MODULE = "openipu.pod.vipu_cluster_test"


@transports
def test_a_failed_test_names_the_cables(
    recorder: Recorder, machines: Machines, tmp_path: Path, transport: str, fast_path: bool
) -> None:
    controller = Controller(tmp_path, recorder.port, transport, fast_path)
    wiring = machines.wiring
    wiring.unplug(wiring.place("ag01:7"))
    wiring.swap(wiring.place("ag03:1"), wiring.place("ag03:2"))
    failed, tolerated, info = controller.run(
        GATE,
        {**GATE, GATE_MODULE: {"cluster": "cl0", "fail_on_failure": False}},
        task("vipu_cluster_test_info"),
    )
    assert failed["failed"]
    assert failed["msg"] == (
        "Cluster 'cl0' did not pass its tests: Cabling 9/12 (ag01:7 <--> ag02:3: no cable, "
        "ag02:5 <--> ag03:1: wrong port, ag02:6 <--> ag03:2: wrong port)."
    )
    assert tolerated["msg"] == failed["msg"]
    for result in (failed, tolerated, info):
        assert [(failure["test"], failure["kind"]) for failure in result["failures"]] == [
            ("Cabling", "no_cable"),
            ("Cabling", "wrong_port"),
            ("Cabling", "wrong_port"),
        ]
        skipped = {item["test"]: item["skipped_because"] for item in result["run"]["results"] if item["skipped"]}
        assert skipped == dict.fromkeys(("IPU-Link", "Traffic", "GW-Link"), "Cabling")
    assert (failed["changed"], failed["ok"], tolerated["failed"], tolerated["ok"]) == (True, False, False, False)
    if transport == "grpc":
        wrong_port = failed["failures"][1]
        assert (wrong_port["a"], wrong_port["found"]) == (
            {"agent": "ag02", "kind": "IPU-Link", "port": 5},
            {"agent": "ag03", "kind": "IPU-Link", "port": 2},
        )
    wiring.repair(set(FOUR))
    (passed,) = controller.run(GATE)
    assert (passed["changed"], passed["ok"]) == (True, True)


def _with_an_unplugged_cable(machines: Machines, run: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    machines.wiring.unplug(machines.wiring.place("ag01:7"))
    try:
        return run()
    finally:
        machines.wiring.repair(set(FOUR))


def test_a_forced_test_warns_about_skipped_tests(server: InProcess) -> None:
    perform = performer(server)
    assert "warnings" not in perform("vipu_cluster_test", cluster="cl0")
    perform("vipu_partition", id="p1", allocation="a0", size=4)
    forced = perform("vipu_cluster_test", cluster="cl0", force=True)
    assert (forced["ok"], forced["warnings"]) == (
        True,
        [
            "Skipped tests that would interrupt partitions of cluster 'cl0' (p1): Sync-Link, IPU-Link, Traffic, "
            "GW-Link. To run such a test anyway, select it alone."
        ],
    )


@transports
def test_partitions_are_tested_by_force_or_after_a_failure(
    recorder: Recorder, machines: Machines, tmp_path: Path, transport: str, fast_path: bool
) -> None:
    controller = Controller(tmp_path, recorder.port, transport, fast_path)
    created, skipped, forced = controller.run(
        task("vipu_partition", id="p1", allocation="a0", size=4),
        GATE,
        {**GATE, GATE_MODULE: {"cluster": "cl0", "force": True}},
    )
    assert created["changed"]
    assert (skipped["changed"], skipped["ok"], skipped["skipped_reason"]) == (
        False,
        None,
        "Cluster 'cl0' has partitions ('p1'). Set force to test it anyway.",
    )
    assert (forced["changed"], forced["ok"]) == (True, True)
    # Tests without interruptions run when their result is unknown, and all tests run after a failure.
    settings, cabling = (
        {**GATE, GATE_MODULE: {"cluster": "cl0", "tests": [test, "Version"]}} for test in ("PFC-settings", "Cabling")
    )
    settings_run, failed_cabling, failed_gate, repaired, unchanged = (
        *controller.run(settings),
        *_with_an_unplugged_cable(machines, lambda: controller.run({**cabling, "check_mode": False}, GATE)),
        *controller.run(GATE, GATE),
    )
    assert (settings_run["changed"], settings_run["ok"]) == (True, True)
    assert failed_cabling["failed"] and failed_gate["failed"]
    assert "ag01:7 <--> ag02:3: no cable" in failed_gate["msg"]
    assert (repaired["changed"], repaired["ok"], unchanged["changed"]) == (True, True, False)
    disturbed = [item["test"] for item in forced["run"]["results"] if item["disturbs"] == ["p1"]]
    assert disturbed == ["Sync-Link", "IPU-Link", "Traffic", "GW-Link"]


@transports
def test_starting_stopping_and_waiting(
    recorder: Recorder, machines: Machines, tmp_path: Path, transport: str, fast_path: bool
) -> None:
    controller = Controller(tmp_path, recorder.port, transport, fast_path)
    controller.run(GATE)  # from now on all agents are known to be up
    machines.slow("ag02", 30.0)
    try:
        started, rejected, running, planned_stop, stopped, second_stop, missing = controller.run(
            task("vipu_cluster_test", cluster="cl0", state="started", force=True),
            task("vipu_cluster_test", cluster="cl0", force=True),
            task("vipu_cluster_test_info"),
            {**task("vipu_cluster_test", state="stopped"), "check_mode": True},
            task("vipu_cluster_test", state="stopped", cluster="cl0"),
            task("vipu_cluster_test", state="stopped"),
            task("vipu_cluster_test", cluster="nope"),
        )
        (timed_out,) = controller.run(task("vipu_cluster_test", cluster="cl0", force=True, wait_timeout=1))
        controller.run(task("vipu_cluster_test", state="stopped"))
    finally:
        machines.slow("ag02", 0.0)
    assert (started["changed"], started["run"]["state"]) == (True, "running")
    assert rejected["failed"]
    assert "a test of cluster 'cl0' is in progress, and only one can run at a time" in rejected["msg"]
    assert running["run"]["state"] == "running"
    assert (planned_stop["changed"], planned_stop["run"]["state"]) == (True, "running")
    assert (stopped["changed"], stopped["run"]["state"]) == (True, "stopped")
    assert (second_stop["changed"], second_stop["run"]["state"]) == (False, "stopped")
    assert missing["msg"] == "Cannot test cluster 'nope': it does not exist. Check its id, or create it first."
    assert timed_out["failed"]
    assert timed_out["msg"] == (
        "Cannot wait for the test of cluster 'cl0': it is still running after 1 seconds. Check it with "
        "vipu_cluster_test_info, or increase wait_timeout."
    )


def test_the_playbook_writes_a_report_without_the_controller(
    server: InProcess, machines: Machines, tmp_path: Path
) -> None:
    """Write the report and fail with the names of the cables, even when the report cannot be written."""
    host, port = server.address.rsplit(":", 1)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        closed_port = closed.getsockname()[1]
    variables = {
        # The server does not respond after the end of the test.
        "vipu_connection": {
            "api_host": host,
            "api_port": f"{{{{ {closed_port} if cluster_tests is defined else {port} }}}}",
        },
        "vipu_pod_clusters": [{"id": "cl0"}],
        "pod_file": str(ROOT / "inventory/twin/pod.yml"),
    }
    (tmp_path / "hosts.json").write_text(json.dumps({"controllers": {"hosts": {"server1": variables}}}))

    command = [Path(sys.executable).parent / "ansible-playbook", "-i", tmp_path / "hosts.json"]

    def gate(*options: str) -> str:
        done = subprocess.run(
            [*command, ROOT / "playbooks/cluster_test.yml", *options],
            env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 2, done.stdout + done.stderr
        return " ".join(done.stdout.split())

    with_report, without_report = _with_an_unplugged_cable(
        machines, lambda: [gate(), gate("-e", "pod_report_dest=/proc/none/rack.html")]
    )
    report = tmp_path / "rack-report.html"
    for output in (with_report, without_report):
        assert "Cluster 'cl0' did not pass its tests: Cabling 11/12 (ag01:7 <--> ag02:3: no cable)." in output
    assert f"The rack report is in '{report}'." in with_report
    assert "The rack report is in" not in without_report
    assert "Connect ag01:7 and ag02:3 with a cable." in report.read_text()
