# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks of single partitions and allocations, and the drift check, on a running POD."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from openipu.shared.vipu.client import Client, Connection
from openipu.shared.vipu.contract import virmgrpc
from tests.integration.bringup.conftest import deployed, own
from tests.integration.bringup.own_twin import OwnTwin, changed

__all__ = ["deployed", "own"]

NEW = {"partition_id": "small", "partition_allocation": "team-b", "partition_size": "4"}


@pytest.fixture(autouse=True)
def shown_stats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show the results of ``set_stats``, which AWX passes on to the following jobs."""
    monkeypatch.setenv("ANSIBLE_SHOW_CUSTOM_STATS", "true")
    monkeypatch.setenv("ANSIBLE_CALLBACK_RESULT_FORMAT", "json")


def run(
    pod: OwnTwin, playbook: str, *options: str, check: bool = True, **variables: Any
) -> subprocess.CompletedProcess[str]:
    return pod.playbook(playbook, "-e", json.dumps(variables), *options, check=check)


def stats(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return the results of ``set_stats``."""
    found: dict[str, Any] = json.loads(done.stdout.rpartition("RUN: ")[2])
    return found


def partitions(pod: OwnTwin) -> dict[str, str]:
    return {partition["id"]: partition["state"] for partition in pod.status()["partitions"]}


def message(done: subprocess.CompletedProcess[str]) -> str:
    """Return the output of a failed run in one line."""
    assert done.returncode == 2, done.stdout
    return " ".join(done.stdout.split())


def test_a_partition_is_created_reset_and_removed(deployed: OwnTwin) -> None:
    assert changed(run(deployed, "partition_create.yml", "--check", **NEW)) == 1
    assert "small" not in partitions(deployed)
    done = run(deployed, "partition_create.yml", **NEW)
    assert changed(done) == 1
    result = stats(done)["partition_result"]
    assert {key: result[key] for key in ("id", "allocation", "size", "state")} == {
        "id": "small",
        "allocation": "team-b",
        "size": 4,
        "state": "ACTIVE",
    }
    # AWX passes optional questions without an answer as empty strings.
    again = run(deployed, "partition_create.yml", **NEW, partition_gcds="", partition_relocatable="")
    assert changed(again) == 0
    done = run(deployed, "partition_reset.yml", partition_id="small")
    assert (changed(done), stats(done)["partition_result"]["state"]) == (1, "ACTIVE")
    assert changed(run(deployed, "partition_remove.yml", "--check", partition_id="small")) == 1
    assert partitions(deployed)["small"] == "ACTIVE"
    assert changed(run(deployed, "partition_remove.yml", partition_id="small")) == 1
    assert changed(run(deployed, "partition_remove.yml", partition_id="small")) == 0
    assert "small" not in partitions(deployed)
    failed = message(run(deployed, "partition_reset.yml", partition_id="small", check=False))
    assert "Cannot reset partition 'small': it does not exist" in failed


@pytest.mark.parametrize(
    ("playbook", "given", "expected"),
    [
        ("partition_create.yml", {"partition_id": "p"}, "partition_id, partition_allocation and partition_size"),
        ("partition_create.yml", {**NEW, "partition_size": "many"}, "partition_size (a number of IPUs) are required"),
        ("partition_reset.yml", {}, "Cannot reset a partition: partition_id is required"),
        ("partition_remove.yml", {"partition_id": ""}, "Cannot remove a partition: partition_id is required"),
        ("allocation_create.yml", {"allocation_id": "a"}, "allocation_id and allocation_size"),
        ("allocation_remove.yml", {}, "Cannot remove an allocation: allocation_id is required"),
        ("user_create.yml", {"user_id": "../x"}, "Cannot create a user: user_id"),
        ("user_remove.yml", {"user_id": "../x"}, "Cannot remove a user: user_id"),
    ],
)
def test_missing_settings_give_one_message(
    deployed: OwnTwin, playbook: str, given: dict[str, Any], expected: str
) -> None:
    failed = message(run(deployed, playbook, check=False, **given))
    assert expected in failed
    assert "undefined" not in failed


def test_an_allocation_is_resized_and_removed(deployed: OwnTwin) -> None:
    run(deployed, "partition_remove.yml", partition_id="vision")
    run(deployed, "allocation_create.yml", allocation_id="team-a", allocation_size="4")
    done = run(deployed, "allocation_create.yml", allocation_id="extra", allocation_size="4", allocation_cluster="")
    assert changed(done) == 1
    assert len(stats(done)["allocation_result"]["agents"]) == 4
    again = run(deployed, "allocation_create.yml", allocation_id="extra", allocation_size="4")
    assert changed(again) == 0
    run(deployed, "partition_create.yml", **{**NEW, "partition_allocation": "extra"})
    assert "partition" in message(run(deployed, "allocation_remove.yml", allocation_id="extra", check=False))
    assert changed(run(deployed, "allocation_remove.yml", allocation_id="extra", allocation_force="true")) == 1
    assert changed(run(deployed, "allocation_remove.yml", allocation_id="extra")) == 0


def test_drift_is_reported_and_not_repaired(deployed: OwnTwin) -> None:
    deployed.playbook("site.yml")
    done = run(deployed, "drift.yml")
    assert (changed(done), stats(done)["pod_drift"]) == (0, [])
    with Client(Connection(deployed.controller)) as client:
        client.call(client.user.RemovePartition, virmgrpc.RemovePartitionRequest(partition_id="language"))
    failed = run(deployed, "drift.yml", check=False)
    assert "POD 'twin' differs from its description: server1: partitions language." in message(failed)
    assert stats(failed)["pod_drift"] == ["server1: partitions language"]
    assert "language" not in partitions(deployed)
    done = run(deployed, "drift.yml", drift_fail="false")
    assert stats(done)["pod_drift"] == ["server1: partitions language"]
    done = run(deployed, "drift_report.yml", pod_drift=stats(done)["pod_drift"])
    assert stats(done)["pod_drift"] == ["server1: partitions language"]
    failed = run(deployed, "drift_report.yml", check=False)
    assert "Cannot report drift: the drift check failed before it compared all devices." in message(failed)


def test_a_device_that_was_not_compared_is_reported(deployed: OwnTwin) -> None:
    stranger = {"username": "stranger", "auth_key": "pass-phrase", "priv_key": "pass-phrase", "port": 1161}
    failed = run(deployed, "drift.yml", check=False, pdu_connection=stranger)
    found = stats(failed)
    assert [each.partition(": ")[0] for each in found["pod_drift_not_compared"]] == ["pdu1", "pdu2"]
    assert "Cannot compare all devices of POD 'twin': pdu1: " in message(failed)
    for drift in (["server1: partitions language"], []):
        done = run(deployed, "drift_report.yml", check=False, **{**found, "pod_drift": drift})
        assert "Cannot compare all devices: pdu1: " in message(done)
        assert " ".join(drift) in message(done)
        assert stats(done)["pod_drift"] == drift


def test_the_rack_report_is_copied_to_a_host(deployed: OwnTwin, tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    options = {"ansible_become": False, "rack_report_folder": str(folder)}
    done = run(deployed, "rack_report_publish.yml", **options)
    assert stats(done)["rack_report_file"] == f"server1:{folder}/twin.html"
    assert "<html" in (folder / "twin.html").read_text()
    (folder / "twin.html").unlink()
    failed = run(deployed, "rack_report_failure.yml", check=False, **options)
    assert failed.returncode == 2
    assert "Cannot complete the workflow: a job before this one failed" in message(failed)
    assert f"server1:{folder}/twin.html" in message(failed)
    assert "<html" in (folder / "twin.html").read_text()
