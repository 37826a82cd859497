# SPDX-License-Identifier: GPL-3.0-or-later
"""Test settings, folders and restarts of the role ``etcd``, without systemd and etcd."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.unit.collection.pod.inventories import run

ROLE = ROOT / "roles/etcd"
NODES = ("n1", "n2", "n3")
SYSTEMCTL = """#!/bin/sh
# Keeps the state of each service in a file, and writes all changes to a log.
cd {folder} || exit
for unit; do :; done
unit=$(echo "$unit" | tr -d "'")
state=$(cat "$unit.state" 2>/dev/null || echo inactive)
case "$*" in
  *is-active*) echo "$state" ;;
  *is-enabled*) echo enabled ;;
  *show*) printf 'LoadState=loaded\\nActiveState=%s\\n' "$state" ;;
  *" start "*|start\\ *) echo "start $unit" >> log; echo active > "$unit.state" ;;
  *stop*) echo "stop $unit" >> log; echo inactive > "$unit.state" ;;
esac
"""


class Hosts:
    """Three hosts of which all files are in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.addresses = {name: f"10.1.1.{name[1]}" for name in NODES}
        self.settings: dict[str, dict[str, Any]] = {name: {} for name in NODES}  # further variables of the inventory
        self.variables: dict[str, Any] = {
            "ansible_python_interpreter": sys.executable,
            "ansible_managed": "test",
            "etcd_user": "root",
            "etcd_service": "{{ inventory_hostname }}",
            "etcd_unit": f"{folder}/{{{{ inventory_hostname }}}}.service",
            "etcd_configuration_folder": f"{folder}/{{{{ inventory_hostname }}}}/etcd",
            "etcd_folder": f"{folder}/{{{{ inventory_hostname }}}}-data/etcd",
            "etcd_certificates": {"ca": "~/pki/ca", "certificate": "~/pki/node", "key": "~/pki/key"},
            "etcd_start_timeout": 1,
            "etcd_health_command": ["sh", "-c", f"echo 'check {{{{ inventory_hostname }}}}' >> {self.log}"],
        }
        (folder / "pki").mkdir()
        for name in ("ca", "node", "key"):
            (folder / "pki" / name).write_text(name)
        (folder / "bin").mkdir()
        (folder / "bin/systemctl").write_text(SYSTEMCTL.format(folder=folder))
        (folder / "bin/systemctl").chmod(0o700)

    def apply(self, *files: str, options: tuple[str, ...] = (), **variables: Any) -> str:
        """Include files of tasks of the role. Return the output."""
        include = [
            {"ansible.builtin.include_role": {"name": str(ROLE), "tasks_from": file, "public": True}} for file in files
        ]
        play = {"hosts": "all", "connection": "local", "gather_facts": False, "tasks": include}
        hosts = {
            name: {"etcd_address": address} | self.settings.get(name, {}) for name, address in self.addresses.items()
        }
        inventory, file = self.folder / "hosts.json", self.folder / "play.json"
        inventory.write_text(json.dumps({"all": {"hosts": hosts}}))
        file.write_text(json.dumps([play]))
        values = json.dumps({**self.variables, **variables})
        environment = {
            "HOME": str(self.folder),
            "PATH": f"{self.folder}/bin:{Path(sys.executable).parent}:/usr/bin:/bin",
        }
        self.log.write_text("")
        done = run("ansible-playbook", "-i", inventory, "-e", values, *options, file, **environment)
        return done.stdout + done.stderr

    def actions(self) -> list[str]:
        """Return what the last run did, in its order."""
        return self.log.read_text().splitlines()

    def create_parts(self) -> None:
        """Create what the role does not replace when settings change: folders, certificates and keys of the nodes."""
        for name in NODES:
            settings, data = self.folder / name / "etcd", self.folder / f"{name}-data/etcd"
            for path in (settings.parent, settings, data.parent, data):
                path.mkdir()
                path.chmod(0o755)
            data.chmod(0o700)
            for source, file in (("node", "node.crt"), ("key", "node.key")):
                (settings / file).write_text((self.folder / "pki" / source).read_text())
                (settings / file).chmod(0o600)

    def read_settings(self, name: str) -> dict[str, str]:
        """Return the settings that the role wrote for a node."""
        return dict(re.findall(r'(?m)^(ETCD_\w+)="(.*)"$', (self.folder / name / "etcd/etcd.env").read_text()))

    def set_state(self, state: str, *nodes: str) -> None:
        for node in nodes:
            (self.folder / f"{node}.state").write_text(state)


@pytest.fixture
def hosts(tmp_path: Path) -> Hosts:
    return Hosts(tmp_path)


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Hosts:
    """Return new hosts that the role configured. Only n1 had the parent of its data. Tests must not change them."""
    hosts = Hosts(tmp_path_factory.mktemp("configured"))
    hosts.addresses = {"n1": "fd00::1", "n2": "fd00::2", "n3": "10.1.1.3"}
    hosts.settings["n1"] = {"pod_addresses": {"p2": "fd01::1"}}
    hosts.settings["n3"] = {"etcd_metrics_address": ""}
    parent = hosts.folder / "n1-data"
    parent.mkdir()
    parent.chmod(0o751)
    output = hosts.apply("validate", "configure")
    assert output.count("failed=0") == 3, output
    return hosts


@pytest.fixture
def running(hosts: Hosts) -> Hosts:
    """Return hosts whose nodes run, with other settings than the role writes."""
    hosts.create_parts()
    hosts.set_state("active", *NODES)
    return hosts


def test_changed_nodes_restart_one_after_the_other(running: Hosts) -> None:
    running.apply("configure", "start")
    assert running.actions() == [f"{verb} {node}" for node in NODES for verb in ("stop", "start", "check")]
    running.set_state("activating", "n2")
    running.apply("configure", "start")
    assert sorted(running.actions()) == [f"check {node}" for node in NODES]


def test_a_failed_restart_keeps_the_other_nodes_until_the_next_run(running: Hosts) -> None:
    output = running.apply("configure", "start", etcd_health_command=["sh", "-c", "exit 1"])
    assert running.actions() == ["stop n1", "start n1"]
    assert "Cannot start etcd on n1: it is not healthy" in output
    assert "Cannot restart etcd on n2: the role failed on n1" in output
    running.apply("configure", "start")
    assert [action for action in running.actions() if "stop" in action] == ["stop n1", "stop n2", "stop n3"]


def test_a_starting_node_gets_changed_settings_first(running: Hosts) -> None:
    running.set_state("activating", "n2")
    running.apply("configure", "start")
    assert running.actions() == [f"{verb} {node}" for node in ("n2", "n1", "n3") for verb in ("stop", "start", "check")]


def test_check_mode_compares_external_certificates(hosts: Hosts) -> None:
    output = hosts.apply("configure", options=("--check", "-v"))
    assert output.count("failed=0") == 3, output
    assert not (hosts.folder / "n1").exists()
    for name in ("node.crt", "ca.crt"):
        assert re.search(rf'"created": \[[^]]*n1/etcd/{name}"', output), output


def test_addresses_must_be_ip_addresses(hosts: Hosts) -> None:
    hosts.addresses = {"n1": "n1.example", "n2": "10.1.1", "n3": "10.1.1.1:2379"}
    output = hosts.apply("validate")
    assert "the address of n1 is 'n1.example', of n2 is '10.1.1', of n3 is '10.1.1.1:2379', but" in output, output
    assert output.count("failed=1") == 3, output


def test_metrics_are_not_on_all_addresses(hosts: Hosts) -> None:
    wrong = {"n1": "0.0.0.0", "n2": "::", "n3": "n3.example"}
    hosts.settings = {name: {"etcd_metrics_address": address} for name, address in wrong.items()}
    output = hosts.apply("validate")
    for name, address in wrong.items():
        assert f"Cannot set up etcd on {name}: etcd_metrics_address is '{address}'." in output, output
    assert output.count("failed=1") == 3, output


def test_metrics_are_on_the_management_network_or_on_loopback(configured: Hosts) -> None:
    found = {name: configured.read_settings(name).get("ETCD_LISTEN_METRICS_URLS") for name in NODES}
    assert found == {"n1": "http://[fd01::1]:2381", "n2": "http://127.0.0.1:2381", "n3": None}


def test_parents_of_the_data_are_created_and_existing_ones_stay(configured: Hosts) -> None:
    for name, mode in (("n1", 0o751), ("n2", 0o755)):
        data = configured.folder / f"{name}-data/etcd"
        assert data.parent.stat().st_mode & 0o777 == mode
        assert data.stat().st_mode & 0o777 == 0o700


def test_urls_have_brackets_around_ipv6_addresses(configured: Hosts) -> None:
    settings = configured.read_settings("n1")
    for kind, port in (("CLIENT", 2379), ("PEER", 2380)):
        assert settings[f"ETCD_LISTEN_{kind}_URLS"] == f"https://[fd00::1]:{port}"
    nodes = "n1=https://[fd00::1]:2380,n2=https://[fd00::2]:2380,n3=https://10.1.1.3:2380"
    assert settings["ETCD_INITIAL_CLUSTER"] == nodes


@pytest.mark.parametrize(("count", "accepted"), [(7, True), (9, False)])
def test_the_number_of_nodes_is_limited(hosts: Hosts, count: int, accepted: bool) -> None:
    hosts.addresses = {f"n{number}": f"10.1.1.{number}" for number in range(1, count + 1)}
    output = hosts.apply("validate")
    assert output.count("failed=0") == (count if accepted else 0), output
    assert ("must contain this host, and 1, 3, 5 or 7 hosts." in output) is not accepted
