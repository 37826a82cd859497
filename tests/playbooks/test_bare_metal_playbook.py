# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the playbook for bare-metal nodes before it allows Ironic to switch machines off."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT
from tests.integration.vipu_servers import InProcess, partition, pod

NAMES = ["ipum01", "ipum02", "ipum03", "ipum04"]


def play(server: InProcess, folder: Path, *machines: str, **variables: Any) -> str:
    """Run the playbook, without a cloud, and return its output in one line. The inventory has four machines.

    ``machines``: those that Ironic may switch off, unless ``variables`` contain them.
    """
    host, _, port = server.address.rpartition(":")
    content = {
        "plugin": "openipu.pod.pod",
        "name": "pod4",
        "controller": {"host": host, "port": int(port)},
        "racks": [{"name": "rack1", "number": 1, "switches": [{"name": "tor1", "kind": "data"}]}],
        "openstack": {},
    }
    (folder / "pod.yml").write_text(yaml.safe_dump(content))
    rows = [f"{name},{n},ag0{n},{_mac(1, n)},{_mac(2, n)},{_mac(3, n)}" for n, name in enumerate(NAMES, 1)]
    (folder / "machines.csv").write_text("name,unit,agent,bmc_mac,gw_mac,rnic_mac\n" + "\n".join(rows) + "\n")
    given = {"openstack_power_off_machines": machines, "openstack_connection": {"cloud": "absent"}, **variables}
    program = Path(sys.executable).with_name("ansible-playbook")
    line = [program, "-i", folder / "pod.yml", ROOT / "playbooks/openstack_bare_metal.yml", "-e", json.dumps(given)]
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "HOME": str(folder)}
    done = subprocess.run(line, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stdout + done.stderr
    return " ".join(done.stdout.split())


def _mac(kind: int, number: int) -> str:
    return f"02:00:00:00:{kind:02x}:{number:02x}"


@pytest.fixture
def server(instant_server: InProcess) -> InProcess:
    """Return a controller with two partitions on the first machine of the allocation of all machines."""
    pod(instant_server, 4)
    for name in ("p1", "p2"):
        instant_server.user.CreatePartition(partition(name, 2))
    return instant_server


def test_a_machine_with_partitions_is_rejected(server: InProcess, tmp_path: Path) -> None:
    output = play(server, tmp_path, "ipum01", "ipum02")
    assert "Cannot allow Ironic to switch off ipum01 (p1, p2): it has partitions. Drain the machine" in output
    assert "Register the nodes" not in output


def test_a_drained_machine_of_an_allocation_with_partitions_is_allowed(server: InProcess, tmp_path: Path) -> None:
    output = play(server, tmp_path, "ipum02", "ipum04")
    assert "Cannot allow" not in output
    assert "TASK [Register the nodes]" in output  # it fails, because there is no cloud


def test_unknown_machines_are_rejected(server: InProcess, tmp_path: Path) -> None:
    output = play(server, tmp_path, "ipum02", "ipum99", "tor1")
    assert "Cannot allow Ironic to switch off ipum99, tor1: the POD has no such IPU-Machine." in output
    assert "Register the nodes" not in output


@pytest.mark.parametrize("text", ["ipum01", "ipum02\nipum01\n"])
def test_machines_may_be_text(server: InProcess, tmp_path: Path, text: str) -> None:
    output = play(server, tmp_path, openstack_power_off_machines=text)
    assert "Cannot allow Ironic to switch off ipum01 (p1, p2): it has partitions." in output


# Credentials as AWX provides them: settings that are not given are empty.
MACHINES = {"username": "root", "password": "secret-of-machines", "ca_path": ""}
SERVERS = {"username": "", "password": "", "ca_path": ""}


def test_a_credential_replaces_the_bmc_of_the_inventory(server: InProcess, tmp_path: Path) -> None:
    skipped = "ipum01, ipum02, ipum03, ipum04: skipped, because openstack_bmc is not set."
    given = {"openstack_machine_bmc": MACHINES, "openstack_server_bmc": SERVERS}
    assert skipped in play(server, tmp_path)
    assert skipped in play(server, tmp_path, openstack_machine_bmc=SERVERS, openstack_server_bmc=MACHINES)
    output = play(server, tmp_path, **given, openstack_bmc="{{ undef('the inventory is rendered') }}")
    assert "TASK [Register the nodes]" in output  # it fails, because there is no cloud
    assert "the inventory is rendered" not in output
    assert "skipped, because" not in output
    assert "secret-of-machines" not in output
