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

PLAYBOOK = ROOT / "playbooks/openstack_bare_metal.yml"
NAMES = ["ipum01", "ipum02", "ipum03", "ipum04"]


def play(server: InProcess, folder: Path, *machines: str, **variables: Any) -> str:
    """Run the playbook, without a cloud, and return its output in one line. The inventory has four machines.

    ``machines``: those that Ironic may switch off, unless ``variables`` contain them.
    """
    write_inventory(folder, server.address)
    given = {"openstack_power_off_machines": machines, "openstack_connection": {"cloud": "absent"}, **variables}
    return run(folder, PLAYBOOK, given, 2)


def nodes(folder: Path, groups: dict[str, Any], **variables: Any) -> dict[str, dict[str, Any]]:
    """Return the nodes that the playbook registers with variables of groups and extra variables."""
    write_inventory(folder, "127.0.0.1:9")
    (folder / "group_vars").mkdir(exist_ok=True)
    for name, content in groups.items():
        (folder / "group_vars" / f"{name}.yml").write_text(yaml.safe_dump(content))
    (content,) = yaml.safe_load(PLAYBOOK.read_text())
    (task,) = (task for task in content["tasks"] if task["name"] == "Register the nodes")
    value = task.pop("openipu.pod.openstack_pod_bare_metal")["nodes"]
    task["ansible.builtin.copy"] = {
        "content": "{{ nodes | to_json }}",
        "dest": str(folder / "nodes.json"),
        "mode": "0600",
    }
    task["vars"] = {"nodes": value, "omit": []}
    (folder / "playbook.yml").write_text(yaml.safe_dump([content]))
    run(folder, folder / "playbook.yml", variables, 0)
    return {node["name"]: node for node in json.loads((folder / "nodes.json").read_text())}


def write_inventory(folder: Path, controller: str) -> None:
    """Write a POD with four machines and a Poplar server for deployments."""
    host, _, port = controller.rpartition(":")
    servers = [{"name": "server1", "bare_metal": True, "addresses": {"idrac": "10.3.1.201"}}]
    switches = [{"name": "tor1", "kind": "data"}, {"name": "mgmt1", "kind": "management"}]
    rack = {"name": "rack1", "number": 1, "switches": switches, "servers": servers}
    content = {
        "plugin": "openipu.pod.pod",
        "name": "pod4",
        "controller": {"host": host, "port": int(port)},
        "racks": [rack],
        "openstack": {},
    }
    (folder / "pod.yml").write_text(yaml.safe_dump(content))
    rows = [f"{name},{n},ag0{n},{_mac(1, n)},{_mac(2, n)},{_mac(3, n)}" for n, name in enumerate(NAMES, 1)]
    (folder / "machines.csv").write_text("name,unit,agent,bmc_mac,gw_mac,rnic_mac\n" + "\n".join(rows) + "\n")


def run(folder: Path, playbook: Path, variables: dict[str, Any], expected: int, *options: str) -> str:
    """Run a playbook with the inventory of the folder, and return its output in one line."""
    program = Path(sys.executable).with_name("ansible-playbook")
    line = [program, "-i", folder / "pod.yml", *options, playbook, "-e", json.dumps(variables)]
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "HOME": str(folder)}
    done = subprocess.run(line, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == expected, done.stdout + done.stderr
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


@pytest.mark.parametrize("options", [[], ["--limit", "!host9"]])
def test_machines_that_are_not_in_the_pod_are_rejected(server: InProcess, tmp_path: Path, options: list[str]) -> None:
    """The power check examines all machines, also those that the limit excludes."""
    write_inventory(tmp_path, server.address)
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"machines": {"hosts": {"host9": {}}}}))
    variables = {"openstack_power_off_machines": ["ipum02"], "openstack_connection": {"cloud": "absent"}}
    output = run(tmp_path, PLAYBOOK, variables, 2, "-i", str(tmp_path / "hosts.yml"), *options)
    assert "Cannot find the node of host 'host9': it has no variable pod_device." in output
    assert "Set pod_device, or remove the host from the group machines." in output
    assert "Register the nodes" not in output


@pytest.mark.parametrize("text", ["ipum01", "ipum02\nipum01\n"])
def test_machines_may_be_text(server: InProcess, tmp_path: Path, text: str) -> None:
    output = play(server, tmp_path, openstack_power_off_machines=text)
    assert "Cannot allow Ironic to switch off ipum01 (p1, p2): it has partitions." in output


# Credentials as AWX provides them: settings that are not given are empty.
MACHINES = {"username": "root", "password": "secret-of-machines", "ca_path": ""}
SERVERS = {"username": "", "password": "", "ca_path": ""}
AWX = {"openstack_machine_bmc": MACHINES, "openstack_server_bmc": SERVERS}
SKIPPED = (
    "skipped. To register them, set openstack_bmc. If openstack_machine_bmc or openstack_server_bmc is set, such as by "
    "the credential in AWX, set its user name."
)


def inventory(**settings: Any) -> dict[str, Any]:
    """Return the variables of groups as in the documentation. The settings replace those of the machines."""
    servers = {"username": "root", "password": "secret-of-servers", "ca_path": "/etc/servers.pem"}
    machines = {"username": "own", "password": "secret-of-inventory", **settings}
    return {"machines": {"openstack_bmc": machines}, "poplar_servers": {"openstack_bmc": servers}}


def test_devices_without_settings_of_a_bmc_are_reported(server: InProcess, tmp_path: Path) -> None:
    assert f"ipum01, ipum02, ipum03, ipum04, server1: {SKIPPED}" in play(server, tmp_path)
    exchanged = {"openstack_machine_bmc": SERVERS, "openstack_server_bmc": MACHINES}
    assert f"ipum01, ipum02, ipum03, ipum04: {SKIPPED}" in play(server, tmp_path, **exchanged)
    output = play(server, tmp_path, **AWX)
    assert f"server1: {SKIPPED}" in output
    assert "TASK [Register the nodes]" in output  # it fails, because there is no cloud
    assert "secret-of-machines" not in output


def test_a_credential_without_user_skips_servers_with_a_bmc_in_the_inventory(tmp_path: Path) -> None:
    assert list(nodes(tmp_path, inventory())) == [*NAMES, "server1"]
    assert list(nodes(tmp_path, inventory(), **AWX)) == NAMES
    assert list(nodes(tmp_path, inventory(), openstack_machine_bmc=SERVERS)) == ["server1"]


def test_settings_of_a_device_complete_a_credential(tmp_path: Path) -> None:
    """The users of the inventory are not rendered, because jobs of AWX do not have the vault of the inventory."""
    machines = {
        "username": "{{ vault_user }}",
        "password": "{{ vault_password }}",
        "system_id": "/S/{{ pod_device }}",
        "validate_certs": "{{ pod_device != 'ipum02' }}",
    }
    credential = {**MACHINES, "ca_path": "/etc/machines.pem"}
    found = nodes(tmp_path, inventory(**machines), openstack_machine_bmc=credential, openstack_server_bmc=MACHINES)
    assert {name: found[name]["bmc"]["system_id"] for name in NAMES} == {name: f"/S/{name}" for name in NAMES}
    users = {(node["bmc"]["username"], node["bmc"]["password"]) for node in found.values()}
    assert users == {("root", "secret-of-machines")}
    assert found["ipum01"]["bmc"]["ca_path"] == "/etc/machines.pem"
    assert "ca_path" not in found["ipum02"]["bmc"]  # its certificate is not verified
    assert found["server1"]["bmc"]["ca_path"] == "/etc/servers.pem"  # the path of the credential is empty


def test_settings_for_all_machines_are_rendered_for_each(tmp_path: Path) -> None:
    found = nodes(tmp_path, {"all": {"openstack_machine_bmc": {**MACHINES, "system_id": "/S/{{ pod_device }}"}}})
    assert {name: found[name]["bmc"]["system_id"] for name in NAMES} == {name: f"/S/{name}" for name in NAMES}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (
            {"openstack_bmc": {"username": "root", "password": "{{ vault_password }}"}},
            "vault_password (used in openstack_bmc of ipum01, ipum02, ipum03, ipum04, server1)",
        ),
        (
            {"openstack_bmc": "{{ vault_bmc if pod_device == 'ipum02' else {} }}"},
            "vault_bmc (used in openstack_bmc of ipum02)",
        ),
        (
            {"openstack_machine_bmc": {**MACHINES, "password": "{{ vault_machines }}"}},
            "vault_machines (used in openstack_machine_bmc of ipum01, ipum02, ipum03, ipum04)",
        ),
        (
            {**AWX, "openstack_bmc": {"system_id": "/S/{{ serial }}"}},
            "serial (used in openstack_bmc.system_id of ipum01, ipum02, ipum03, ipum04)",
        ),
        (
            {"openstack_bmc": MACHINES, "openstack_server_state": "{{ vault_state }}"},
            "vault_state (used in openstack_server_state of server1)",
        ),
    ],
)
def test_undefined_variables_end_the_playbook(
    server: InProcess, tmp_path: Path, variables: dict[str, Any], expected: str
) -> None:
    output = play(server, tmp_path, "ipum02", **variables)
    assert f"Cannot register nodes: these variables are undefined: {expected}. Set them" in output
    assert "Nothing was changed." in output
    assert "Register the nodes" not in output


def test_removals_need_no_settings_of_bmcs(server: InProcess, tmp_path: Path) -> None:
    variables = {"openstack_bmc": {"password": "{{ vault_password }}"}, "openstack_node_state": "absent"}
    output = play(server, tmp_path, **variables)
    assert "TASK [Register the nodes]" in output  # it fails, because there is no cloud
    assert "skipped. To register" not in output
    assert "vault_password" not in output


def test_a_pod_without_openstack_is_skipped(tmp_path: Path) -> None:
    write_inventory(tmp_path, "127.0.0.1:9")
    content = yaml.safe_load((tmp_path / "pod.yml").read_text())
    del content["openstack"]
    (tmp_path / "pod.yml").write_text(yaml.safe_dump(content))
    assert "Ironic is skipped, because pod.yml has no key openstack." in run(tmp_path, PLAYBOOK, {}, 0)


def test_answers_of_the_survey_keep_the_inventory(tmp_path: Path) -> None:
    groups = inventory()
    groups["poplar_servers"]["openstack_server_state"] = "available"

    def states(**answers: str) -> tuple[str, str]:
        survey = {f"openstack_survey_{name}": answer for name, answer in answers.items()}
        found = nodes(tmp_path, groups, **survey)
        return found["server1"]["state"], " ".join(name for name in NAMES if not found[name]["disable_power_off"])

    assert states() == ("available", "")
    assert states(server_state="inventory", power_off_machines="") == ("available", "")
    assert states(server_state="manageable") == ("manageable", "")


@pytest.mark.parametrize(("answer", "rejected"), [("", "ipum98"), ("ipum99\n", "ipum99"), ("none", None)])
def test_the_survey_replaces_machines_of_the_inventory(
    server: InProcess, tmp_path: Path, answer: str, rejected: str | None
) -> None:
    output = play(server, tmp_path, "ipum98", openstack_survey_power_off_machines=answer)
    assert ("Cannot allow" in output) is (rejected is not None)
    assert rejected is None or f"Cannot allow Ironic to switch off {rejected}: the POD has no such" in output


def test_the_survey_asks_for_variables_that_the_inventory_does_not_have() -> None:
    """An answer is an extra variable, which would replace a variable of the inventory."""
    content = yaml.safe_load((ROOT / "extensions/awx/job_templates/bare_metal.yml").read_text())
    asked = {each["variable"] for each in content["controller_templates"][0]["survey_spec"]["spec"]}
    assert not asked & {"openstack_server_state", "openstack_power_off_machines"}
