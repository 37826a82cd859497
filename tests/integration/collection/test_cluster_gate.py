# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate of cluster tests in playbooks, on machines of the twin whose cables are right, and then are not."""

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
from playbook import results
from recorder import READER, Recorder
from test_scenarios import task
from test_tasks import performer
from vipu_servers import InProcess, Machines, pod

ROOT = Path(__file__).resolve().parents[3]
FOUR = ("ag01", "ag02", "ag03", "ag04")
SIX = ["Sync-Link", "Cabling", "IPU-Link", "Traffic", "GW-Link", "Version"]

ways = pytest.mark.parametrize(
    ("transport", "fast_path"),
    [("grpc", True), ("grpc", False), ("cli", True)],
    ids=["grpc-action", "grpc-module", "cli-action"],
)


@pytest.fixture
def server(vipu_server: Callable[..., InProcess], machines: Machines) -> Iterator[InProcess]:
    """Four machines in a mesh, none of them allocated."""
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
    """Tasks for one controller, in one way."""

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


@ways
def test_a_gate_opens_once(
    recorder: Recorder, machines: Machines, tmp_path: Path, transport: str, fast_path: bool
) -> None:
    controller = Controller(tmp_path, recorder.port, transport, fast_path)
    looking, checked = controller.run(
        task("vipu_cluster_test_info"), {**GATE, "check_mode": True}, api_user_id=f"{READER}-1"
    )
    assert looking["run"] is None
    assert (checked["changed"], checked["would_run"]) == (True, SIX)
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
    again, as_before, other, told = controller.run(
        {**GATE, "check_mode": transport == "cli"},
        {**GATE, "check_mode": True},
        {**task("vipu_cluster_test", cluster="cl0", tests=["PFC-settings"]), "check_mode": True},
        task("vipu_cluster_test_info"),
        api_user_id=f"{READER}-2",
    )
    if transport == "grpc":
        assert (again["changed"], again["ok"]) == (False, True)
        assert again["skipped_reason"] == "Cluster 'cl0' passed these tests, and is the same since."
        assert (as_before["changed"], as_before["skipped_reason"]) == (False, again["skipped_reason"])
    else:  # the command does not tell what the cluster was like
        assert as_before["would_run"] == SIX
    assert (other["changed"], other["would_run"]) == (True, ["PFC-settings"])
    assert (told["run"]["state"], told["run"]["cluster"], told["failures"]) == ("finished", "cl0", [])
    assert not recorder.writes(f"{READER}-1") + recorder.writes(f"{READER}-2")

    # What stands on the cluster does not come into it, what it is made of does.
    (forced,) = controller.run({**GATE, GATE_MODULE: {"cluster": "cl0", "force": True, "tests": ["Version"]}})
    assert (forced["changed"], [item["test"] for item in forced["run"]["results"]]) == (True, ["Version"])
    (missing,) = controller.run({**GATE, "check_mode": True})
    assert missing["would_run"] == SIX


GATE_MODULE = "openipu.pod.vipu_cluster_test"


@ways
def test_a_gate_that_stays_shut_names_the_cables(
    recorder: Recorder, machines: Machines, tmp_path: Path, transport: str, fast_path: bool
) -> None:
    controller = Controller(tmp_path, recorder.port, transport, fast_path)
    wiring = machines.wiring
    wiring.unplug(wiring.place("ag01:7"))
    wiring.swap(wiring.place("ag03:1"), wiring.place("ag03:2"))
    shut, tolerant, info = controller.run(
        GATE,
        {**GATE, GATE_MODULE: {"cluster": "cl0", "fail_on_failure": False}},
        task("vipu_cluster_test_info"),
    )
    assert shut["failed"]
    assert shut["msg"] == (
        "Cluster 'cl0' did not pass its tests: Cabling 9/12 (ag01 port 7 <--> ag02 port 3: no cable, "
        "ag02 port 5 <--> ag03 port 1: wrong port, ag02 port 6 <--> ag03 port 2: wrong port)."
    )
    for result in (shut, tolerant, info):
        assert [(failure["test"], failure["kind"]) for failure in result["failures"]] == [
            ("Cabling", "no_cable"),
            ("Cabling", "wrong_port"),
            ("Cabling", "wrong_port"),
        ]
        skipped = {item["test"]: item["skipped_because"] for item in result["run"]["results"] if item["skipped"]}
        assert skipped == dict.fromkeys(("IPU-Link", "Traffic", "GW-Link"), "Cabling")
    assert (shut["changed"], shut["ok"], tolerant["failed"], tolerant["ok"]) == (True, False, False, False)
    if transport == "grpc":
        moved = shut["failures"][1]
        assert (moved["a"], moved["found"]) == (
            {"agent": "ag02", "kind": "IPU-Link", "port": 5},
            {"agent": "ag03", "kind": "IPU-Link", "port": 2},
        )
    wiring.repair(set(FOUR))
    (opened,) = controller.run(GATE)
    assert (opened["changed"], opened["ok"]) == (True, True)


def _with_a_loose_cable(machines: Machines, run: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    machines.wiring.unplug(machines.wiring.place("ag01:7"))
    try:
        return run()
    finally:
        machines.wiring.repair(set(FOUR))


def test_a_forced_gate_says_what_it_could_not_test(server: InProcess) -> None:
    perform = performer(server)
    assert "warnings" not in perform("vipu_cluster_test", cluster="cl0")
    perform("vipu_partition", id="p1", allocation="a0", size=4)
    forced = perform("vipu_cluster_test", cluster="cl0", force=True)
    assert (forced["ok"], forced["warnings"]) == (
        True,
        [
            "Not tested, since it would disturb partitions of cluster 'cl0' (p1): Sync-Link, IPU-Link, Traffic, "
            "GW-Link. Choose one of these tests alone to run it in any case."
        ],
    )


@ways
def test_partitions_keep_the_gate_open(
    recorder: Recorder, machines: Machines, tmp_path: Path, transport: str, fast_path: bool
) -> None:
    controller = Controller(tmp_path, recorder.port, transport, fast_path)
    made, gate, forced = controller.run(
        task("vipu_partition", id="p1", allocation="a0", size=4),
        GATE,
        {**GATE, GATE_MODULE: {"cluster": "cl0", "force": True}},
    )
    assert made["changed"]
    assert (gate["changed"], gate["ok"], gate["skipped_reason"]) == (
        False,
        None,
        "Cluster 'cl0' has partitions already ('p1'): set force to test it all the same.",
    )
    assert (forced["changed"], forced["ok"]) == (True, True)
    # What disturbs nobody is tested whenever it is not known, and so is a cluster that was found wrong.
    settings, cabling = (
        {**GATE, GATE_MODULE: {"cluster": "cl0", "tests": [test, "Version"]}} for test in ("PFC-settings", "Cabling")
    )
    asked, wrong, still, mended, calm = (
        *controller.run(settings),
        *_with_a_loose_cable(machines, lambda: controller.run({**cabling, "check_mode": False}, GATE)),
        *controller.run(GATE, GATE),
    )
    assert (asked["changed"], asked["ok"]) == (True, True)
    assert wrong["failed"] and still["failed"]
    assert "ag01 port 7 <--> ag02 port 3: no cable" in still["msg"]
    assert (mended["changed"], mended["ok"], calm["changed"]) == (True, True, False)
    disturbed = [item["test"] for item in forced["run"]["results"] if item["disturbs"] == ["p1"]]
    assert disturbed == ["Sync-Link", "IPU-Link", "Traffic", "GW-Link"]


@ways
def test_starting_stopping_and_waiting(
    recorder: Recorder, machines: Machines, tmp_path: Path, transport: str, fast_path: bool
) -> None:
    controller = Controller(tmp_path, recorder.port, transport, fast_path)
    controller.run(GATE)  # from now on all agents are known to be up
    machines.slow("ag02", 30.0)
    try:
        started, busy, impatient, checked, stopped, again, missing = controller.run(
            task("vipu_cluster_test", cluster="cl0", state="started", force=True),
            task("vipu_cluster_test", cluster="cl0", force=True),
            task("vipu_cluster_test_info"),
            {**task("vipu_cluster_test", state="stopped"), "check_mode": True},
            task("vipu_cluster_test", state="stopped", cluster="cl0"),
            task("vipu_cluster_test", state="stopped"),
            task("vipu_cluster_test", cluster="nope"),
        )
        (late,) = controller.run(task("vipu_cluster_test", cluster="cl0", force=True, wait_timeout=1))
        controller.run(task("vipu_cluster_test", state="stopped"))
    finally:
        machines.slow("ag02", 0.0)
    assert (started["changed"], started["run"]["state"]) == (True, "running")
    assert busy["failed"]
    assert "the test of cluster 'cl0' is in progress, and there is one at a time" in busy["msg"]
    assert impatient["run"]["state"] == "running"
    assert (checked["changed"], checked["run"]["state"]) == (True, "running")
    assert (stopped["changed"], stopped["run"]["state"]) == (True, "stopped")
    assert (again["changed"], again["run"]["state"]) == (False, "stopped")
    assert missing["msg"] == "Cannot test cluster 'nope': it does not exist."
    assert late["failed"]
    assert late["msg"] == (
        "The test of cluster 'cl0' is not over after 1 seconds, and goes on: look at it with "
        "vipu_cluster_test_info, or allow more with wait_timeout."
    )


def test_the_gate_leaves_a_picture_though_the_controller_went_away(
    server: InProcess, machines: Machines, tmp_path: Path
) -> None:
    """Of what it found, and with the sentence that names the cables; that also when there is no place for a picture."""
    host, port = server.address.rsplit(":", 1)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nowhere = closed.getsockname()[1]
    variables = {
        # From the end of the test on, nobody answers.
        "vipu_connection": {
            "api_host": host,
            "api_port": f"{{{{ {nowhere} if cluster_tests is defined else {port} }}}}",
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

    shut, blind = _with_a_loose_cable(machines, lambda: [gate(), gate("-e", "pod_report_dest=/proc/none/rack.html")])
    picture = tmp_path / "rack-report.html"
    for told in (shut, blind):
        assert "Cluster 'cl0' did not pass its tests: Cabling 11/12 (ag01 port 7 <--> ag02 port 3: no cable)." in told
    assert f"The picture is in {picture}." in shut
    assert "The picture is in" not in blind
    assert "Connect ag01 IPU-Link port 7 and ag02 IPU-Link port 3 with a cable." in picture.read_text()
