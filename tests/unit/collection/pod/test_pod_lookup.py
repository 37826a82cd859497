# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup plugin for POD-wide data."""

from __future__ import annotations

import json
import sys

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load
from ansible_collections.openipu.pod.plugins.plugin_utils import pod_data

from tests.unit.collection.pod.inventories import run, value


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch):
    monkeypatch.setattr(pod_data, "_data", {})


def test_data_are_those_of_the_files(pod):
    servers = ", servers: [{name: server1, roles: [controller, poplar]}]"
    file = str(pod.write(tail="users: [{id: alice}]\nopenstack: {}\nkubernetes: {}\n", rack_tail=servers))
    desired = load(file).desired()
    assert pod_data.recall(file, desired) == list(desired.values())
    services, config, tenants = pod_data.recall(file, ("services", "openstack_config", "openstack_tenants"))
    assert len(services["hosts"]) == 15
    assert config["networks"]
    assert "*" in tenants
    assert set(pod_data.describe(load(file))) == set(pod_data.VARIABLES.values())


def test_files_are_read_once_and_callers_cannot_change_the_data(pod):
    file = str(pod.write())
    pod_data.recall(file, ["agents"])[0].clear()
    pod.pod_yml.unlink()
    assert len(pod_data.recall(file, ["agents"])[0]) == 4


@pytest.mark.parametrize(
    ("name", "file", "message"),
    [
        ("agent", "pod.yml", "Cannot look up 'agent': the name is unknown. Choose from services, agents,"),
        ("openstack_config", "pod.yml", "Cannot look up 'openstack_config' of FILE: the POD has no OpenStack."),
        ("kubernetes_controllers", "pod.yml", "of FILE: the POD has no Kubernetes. Add the key kubernetes."),
        ("agents", "invalid.pod.yml", "FILE, line 9: pod 'test': 'users' must be a list: its items are mappings"),
        ("agents", "missing.pod.yml", "FILE: the file does not exist"),
    ],
)
def test_errors_name_the_cause(pod, tmp_path, name, file, message):
    path = pod.write()
    (tmp_path / "invalid.pod.yml").write_text(path.read_text() + "users: 1\n")
    expression = f"{{{{ lookup('openipu.pod.pod', '{name}', file='{tmp_path / file}') }}}}"
    done = run("ansible", "-i", path, "m1.1", "-m", "ansible.builtin.debug", "-a", json.dumps({"msg": expression}))
    assert done.returncode != 0
    assert message.replace("FILE", str(tmp_path / file)) in " ".join((done.stdout + done.stderr).split())


def test_variables_of_openstack_need_openstack(pod):
    assert value(pod.write(), "m1.1", "pod_openstack_config is defined or pod_openstack_tenants is defined") is False
    assert value(pod.write(tail="openstack: {}\n"), "m1.1", "pod_openstack_config.networks | length > 0") is True


def test_a_play_uses_the_files_as_the_inventory_read_them(pod, tmp_path):
    path = pod.write()
    play = tmp_path / "play.yml"
    tasks = [
        {"ansible.builtin.command": {"argv": ["rm", str(path)]}},
        {"ansible.builtin.debug": {"msg": "<{{ vipu_pod_agents | length }}>"}},
    ]
    play.write_text(
        json.dumps([{"hosts": "m1.1", "connection": "local", "gather_facts": False, "tasks": tasks}]),
    )
    done = run("ansible-playbook", "-i", path, play, "-e", f"ansible_python_interpreter={sys.executable}")
    assert "<4>" in done.stdout, done.stdout + done.stderr


def test_an_exported_inventory_has_the_data(pod, tmp_path):
    """AWX stores the output of ``ansible-inventory --list --export`` and runs jobs with a script that returns it."""
    path = pod.write(tail="users: [{id: alice}]\n")
    exported = run("ansible-inventory", "-i", path, "--list", "--export").stdout
    (tmp_path / "exported.json").write_text(exported)
    script = tmp_path / "inventory.sh"
    script.write_text(f"#!/bin/sh\ncat {tmp_path}/exported.json\n")
    script.chmod(0o755)
    found = value(
        script,
        "m1.2",
        "[vipu_pod_users, vipu_pod_agents | length, vipu_connection.api_host]",
        ANSIBLE_INVENTORY_ENABLED="script",
    )
    assert found == [[{"id": "alice", "role": "user", "allocations": []}], 4, "10.3.1.101"]
