# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of ``site.yml`` and its phases on a running POD."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

from openipu.shared.vipu.client import Client, Connection
from openipu.shared.vipu.contract import virmgrpc
from tests.integration.bringup.conftest import deployed, own
from tests.integration.bringup.own_twin import BIN, ROOT, changed, run

__all__ = ["deployed", "own"]


def test_the_collection_contains_the_playbooks(deployed):
    done = run(BIN / "ansible-playbook", "openipu.pod.site", "-i", deployed.inventory, state=deployed.state)
    assert changed(done) == 0


def test_a_manually_removed_partition_is_created_again(deployed):
    with Client(Connection(deployed.controller)) as client:
        client.call(client.user.RemovePartition, virmgrpc.RemovePartitionRequest(partition_id="language"))
    assert {p["id"] for p in deployed.status()["partitions"]} == {"vision", "notebook"}
    assert changed(deployed.playbook("partitions.yml", "--check")) == 1
    assert {p["id"] for p in deployed.status()["partitions"]} == {"vision", "notebook"}
    assert changed(deployed.playbook("partitions.yml")) == 1
    assert {p["id"]: p["state"] for p in deployed.status()["partitions"]}["language"] == "ACTIVE"


def test_a_run_for_one_tenant_creates_only_its_partitions(deployed):
    with Client(Connection(deployed.controller)) as client:
        for id in ("vision", "notebook"):
            client.call(client.user.RemovePartition, virmgrpc.RemovePartitionRequest(partition_id=id))
    deployed.playbook("partitions.yml", "-e", '{"vipu_allocations": ["team-b"]}')
    assert {p["id"] for p in deployed.status()["partitions"]} == {"language", "notebook"}
    assert changed(deployed.playbook("partitions.yml")) == 1


def test_a_second_run_with_modules_changes_nothing(deployed):
    done = deployed.playbook("site.yml", "-e", "openipu_fast_path=false")
    assert changed(done) == 0


def test_a_stopped_machine_gives_one_message(deployed):
    deployed.twin("stop-machine", "ag03")
    try:
        done = deployed.playbook("site.yml", check=False)
        assert done.returncode == 2
        message = (
            "Cannot start a bring-up: preflight checks failed. "
            f"Agent ag03 (127.{2 + deployed.octet}.1.3:8080, connection refused) "
            "does not respond: check that the IPU-Machine is on and connected."
        )
        assert message.lower() in " ".join(done.stdout.split()).lower()
        assert "ag03: has no power." in deployed.twin("status").stdout
    finally:
        deployed.twin("start-machine", "ag03")
    assert changed(deployed.playbook("site.yml", "--tags", "preflight")) == 0


def test_a_preflight_without_a_controller_reports_every_problem(own):
    own.twin("down")
    done = own.playbook("site.yml", "--tags", "preflight", check=False)
    text = " ".join(done.stdout.split())
    assert done.returncode == 2
    assert f"the V-IPU controller at {own.controller}:8090 does not respond (connection refused). Check host" in text
    assert "and 12 more do not respond: check that the IPU-Machines are on and connected." in text


def test_an_inventory_without_a_pod_is_rejected():
    playbook = ROOT / "playbooks/site.yml"
    done = run(BIN / "ansible-playbook", playbook, "-i", "localhost,", check=False)
    assert done.returncode == 2
    assert "the inventory has no POD with a controller" in " ".join(done.stdout.split())


def test_the_syntax_of_the_pod64_inventory():
    playbook = ROOT / "playbooks/site.yml"
    run(BIN / "ansible-playbook", playbook, "-i", ROOT / "inventory/pod64/pod.yml", "--syntax-check")


@pytest.mark.parametrize("connections", [True, False])
def test_devices_without_a_connection_need_no_vault(tmp_path: Path, connections: bool) -> None:
    """``group_vars`` of the POD refers to undefined ``vault_…`` variables, also outside of the connections."""
    pod = shutil.copytree(ROOT / "inventory/pod64", tmp_path / "pod64")
    for group, name in (("switches", "eos_connection"), ("pdus", "pdu_connection")):
        file = pod / "group_vars" / f"{group}.yml"
        variables = yaml.safe_load(file.read_text())
        if not connections:
            del variables[name]
        file.write_text(yaml.safe_dump(variables))
    playbook = ROOT / "playbooks/preflight.yml"
    done = run(BIN / "ansible-playbook", playbook, "-i", pod / "pod.yml", "-e", "pod_check_reach=false", check=False)
    text = " ".join(done.stdout.split())
    names = {
        "vault_switch_password": "eos_connection",
        "vault_pdu_auth_key": "pdu_connection",
        "vault_pdu_priv_key": "pdu_connection",
        "vault_pdu_trap_community": "pdu_config",
    }
    message = "these variables are undefined: " + ", ".join(
        f"{name} (used in {place})" for name, place in names.items()
    )
    # The log of a run has the message of a failed task at most twice.
    assert text.count(message) in ((1, 2) if connections else (0,)), done.stdout
    failed = sum(map(int, re.findall(r" failed=(\d)", done.stdout)))
    assert (done.returncode, failed) == ((2, 1) if connections else (0, 0)), done.stdout
