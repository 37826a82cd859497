# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the inventory plugin, loaded by Ansible."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod import spec
from ansible_collections.openipu.pod.plugins.module_utils.vipu.resources import OPTIONS

from tests import ROOT
from tests.unit.collection.pod.inventories import BIN, parse, rejection, value


def test_groups_and_variables_of_the_twin():
    inventory = parse(ROOT / "inventory/twin/pod.yml")
    assert inventory.hosts("machines") == [f"ag{number:02}" for number in range(1, 17)]
    assert inventory.hosts("controllers") == inventory.hosts("poplar_servers") == ["server1"]
    assert set(inventory.hosts("switches")) == {"tor1", "mgmt1"}
    assert inventory.hosts("data_switches") == ["tor1"]
    assert inventory.hosts("pdus") == ["pdu1", "pdu2"]
    assert len(inventory.hosts("rack1")) == 16 + 1 + 2 + 2
    machine = inventory.vars("ag07")
    assert machine["ansible_host"] == "127.2.1.7"
    assert machine["pod_addresses"]["rnic"] == "127.5.1.7"
    assert (machine["pod_unit"], machine["pod_rack_number"], machine["pod_agent_id"]) == (7, 1, "ag07")
    assert {port["switch"]: port["port"] for port in machine["pod_ports"]} == {
        "tor1": "Ethernet15/1",
        "mgmt1": "Ethernet7",
    }
    assert {cable["device"] for cable in inventory.vars("tor1")["pod_cables"]} >= {"ag01", "server1"}
    shared = inventory.vars("ag01")
    assert shared["vipu_connection"] == {"api_host": "127.3.1.101", "api_port": 8090}
    agents = value(ROOT / "inventory/twin/pod.yml", "ag01", "vipu_pod_agents")
    assert [agent["id"] for agent in agents] == inventory.hosts("machines") == inventory.hosts("pod_twin")[:16]
    assert (machine["pod_device"], machine["pod_rack_group"], shared["pod_group"]) == ("ag07", "rack1", "all")


@pytest.mark.parametrize("name", ["twin", "pod64"])
def test_desired_objects_are_valid_options_of_the_modules(name):
    kinds = ("agent", "cluster", "allocation", "partition", "user")
    lists = ", ".join(f"vipu_pod_{kind}s" for kind in kinds)
    desired = value(ROOT / "inventory" / name / "pod.yml", "localhost", f"[{lists}]")
    assert desired[0]
    for kind, rows in zip(kinds, desired, strict=True):
        for row in rows:
            assert set(row) <= set(OPTIONS[kind])


def test_model_has_every_option_of_a_partition():
    known = {name: option.get("choices") for name, option in spec.PARTITION.spec.items()}
    assert known == {name: option.get("choices") for name, option in OPTIONS["partition"].items()}
    ipu = OPTIONS["partition"]["ipus"]["options"]
    assert {name: option.get("default") for name, option in spec.IPU.spec.items()} == {
        name: option.get("default") for name, option in ipu.items()
    }


def test_documented_options_are_those_of_the_model():
    command = [str(BIN / "ansible-doc"), "--json", "--type", "inventory", "openipu.pod.pod"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    documented = json.loads(done.stdout)["openipu.pod.pod"]["doc"]["options"]
    assert set(documented) == set(spec.POD.spec)


def test_roles_for_hosts_are_groups(pod):
    path = pod.write(
        rack_tail=", servers: [{name: s1, roles: [controller, poplar]}, {name: s2}]",
        tail=(
            "deploy:\n  controllers: [common, vipu_server]\n  poplar_servers: [common, vipu_client]\n"
            "  machines: [virm_agent]\n"
        ),
    )
    inventory = parse(path)
    assert inventory.hosts("deploy_common") == inventory.hosts("deploy_vipu_client") == ["s1", "s2"]
    assert inventory.hosts("deploy_vipu_server") == ["s1"]
    assert inventory.hosts("deploy_virm_agent") == inventory.hosts("machines")
    assert not inventory.hosts("deploy_monitoring")


def test_other_files_are_not_accepted(pod, tmp_path):
    text = pod.write().read_text()
    (tmp_path / "north.pod.yml").write_text(text)
    assert len(parse(tmp_path / "north.pod.yml").hosts("machines")) == 4
    (tmp_path / "machines.yml").write_text(text)
    rejection(tmp_path / "machines.yml")


def test_constructed_groups_and_variables(pod):
    path = pod.write(
        tail="compose: {bmc_url: \"'https://' ~ pod_addresses.bmc\"}\n"
        "groups: {lower: pod_unit <= 2}\nkeyed_groups: [{key: pod_kind, prefix: kind}]\nstrict: true\n"
    )
    inventory = parse(path)
    assert inventory.hosts("lower") == ["m1.1", "m1.2"]
    assert len(inventory.hosts("kind_machine")) == 4
    assert inventory.vars("m1.1")["bmc_url"] == "https://10.1.1.1"


def test_errors_have_file_and_line(pod):
    path = pod.write(tail="partitions:\n  - {id: p, allocation: a, size: 3}\n")
    assert f"{path}, line 10: partition 'p': unknown allocation 'a'" in rejection(path)
    path.write_text("plugin: openipu.pod.pod\nname: x\n")
    assert f"{path}, line 1: pod 'x': 'racks' is missing: add it" in rejection(path)


def test_rack_with_the_name_of_a_group_is_rejected(pod):
    path = pod.write(cluster=None)
    for file in (pod.pod_yml, pod.machines_csv):
        file.write_text(file.read_text().replace("rack1", "machines"))
    assert "Cannot create the group of rack 'machines': the name 'machines' is reserved." in rejection(path)


def test_cache_is_used_until_a_file_changes(pod, tmp_path):
    store = tmp_path / "cache"
    path = pod.write(tail=f"cache: true\ncache_plugin: ansible.builtin.jsonfile\ncache_connection: {store}\n")
    assert len(parse(path).hosts("machines")) == 4
    (entry,) = store.iterdir()
    # The cache is used: a host that only the cache has appears, except with --flush-cache.
    entry.write_text(entry.read_text().replace("m1.4", "m1.9"))
    assert "m1.9" in parse(path).hosts("machines")
    assert "m1.9" not in parse(path, options=["--flush-cache"]).hosts("machines")
    # A change of either file creates another entry.
    rows = pod.machines_csv.read_text().splitlines()
    pod.machines_csv.write_text("\n".join(rows[:-1]) + "\n")
    assert len(parse(path).hosts("machines")) == 3


@pytest.mark.parametrize("name", ["MANIFEST.json", "galaxy.yml"])
def test_cache_of_another_release_is_not_used(pod, tmp_path, name):
    store, site = tmp_path / "cache", tmp_path / "site"
    collection = site / "ansible_collections/openipu/pod"
    collection.mkdir(parents=True)
    for folder in ("plugins", "meta"):
        (collection / folder).symlink_to(ROOT / folder)
    # Python resolves no links in the path of a plugin.
    (collection / name).write_text("version: 1\n")
    path = pod.write(tail=f"cache: true\ncache_plugin: ansible.builtin.jsonfile\ncache_connection: {store}\n")

    def entries():
        environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(site), "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
        command = [str(BIN / "ansible-inventory"), "-i", str(path), "--list"]
        subprocess.run(command, env=environment, capture_output=True, timeout=60, check=True)
        return len(list(store.iterdir()))

    assert entries() == 1
    assert entries() == 1
    (collection / name).write_text("version: 2\n")
    assert entries() == 2
