# SPDX-License-Identifier: GPL-3.0-or-later
"""Several PODs in one inventory."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from ansible.errors import AnsibleParserError
from ansible.inventory.data import InventoryData
from ansible_collections.openipu.pod.plugins.plugin_utils.pod_names import PodNames

from tests import ROOT
from tests.unit.collection.pod.conftest import PodFiles
from tests.unit.collection.pod.inventories import parse, rejection, run, sources, value

SHARED = "shared_inventory: true\n"
SERVERS = ", servers: [{name: s1, roles: [controller]}]"


def write(folder: Path, name: str, tail: str = SHARED) -> Path:
    folder = folder / name
    folder.mkdir()
    path = PodFiles(folder).write(rack_tail=SERVERS, tail=tail)
    path.write_text(path.read_text().replace("name: test\n", f"name: {name}\n"))
    return path


def in_lines(message: str, output: str) -> bool:
    """Return whether an output has a message, with line breaks at any place."""
    return "".join(message.split()) in "".join(output.split())


@pytest.fixture
def pods(tmp_path) -> tuple[Path, Path]:
    return write(tmp_path, "north"), write(tmp_path, "south")


def test_hosts_and_racks_of_two_pods_have_different_names(pods):
    inventory = parse(*pods)
    assert inventory.hosts("controllers") == ["north-s1", "south-s1"]
    assert inventory.hosts("pod_north") == inventory.hosts("north_rack1")
    assert set(inventory.hosts("pod_south")) == {"south-s1", *(f"south-m1.{unit}" for unit in range(1, 5))}
    machine = inventory.vars("south-m1.2")
    assert (machine["pod_device"], machine["pod_rack"], machine["pod_rack_group"]) == ("m1.2", "rack1", "south_rack1")
    assert (machine["pod_name"], machine["pod_file"], machine["pod_group"]) == ("south", str(pods[1]), "pod_south")


def test_the_order_of_the_pods_changes_nothing(pods):
    north, south = pods
    forth, back = parse(north, south), parse(south, north)
    assert forth.data["_meta"]["hostvars"] == back.data["_meta"]["hostvars"]


def test_lists_are_those_of_the_pod_of_the_host(pods, tmp_path):
    pods[1].write_text(pods[1].read_text() + "users: [{id: alice}]\n")
    folder = str(tmp_path)  # an inventory of both
    names = "vipu_pod_users | map(attribute='id') | list"
    assert [value(folder, host, names) for host in ("north-s1", "south-s1")] == [[], ["alice"]]
    # No POD is the one of localhost.
    assert value(folder, "localhost", "vipu_connection is defined") is False


def test_variables_of_a_pod_override_those_of_kinds(pods):
    folder = pods[0].parent / "group_vars"
    folder.mkdir()
    (folder / "pod_north.yml").write_text("eos_connection: {username: north}\n")
    for group in ("poplar_servers", "switches", "controllers"):
        (folder / f"{group}.yml").write_text("eos_connection: {username: all}\n")
    inventory = parse(*pods)
    found = [inventory.vars(host)["eos_connection"]["username"] for host in ("north-s1", "south-s1")]
    assert found == ["north", "all"]


@pytest.mark.parametrize("tails", [("", ""), (SHARED, ""), ("", SHARED)])
def test_pods_that_do_not_share_the_inventory_are_rejected(tmp_path, tails):
    north, south = (write(tmp_path, name, tail) for name, tail in zip(("north", "south"), tails, strict=True))
    expected = (
        f"Cannot add POD 'south' to the inventory: it already has the POD of {north}. "
        "Set shared_inventory to true in both files."
    )
    assert in_lines(expected, rejection(north, south))


def test_the_same_file_twice_is_one_pod(pods):
    north, _south = pods
    assert parse(north, north).data["_meta"] == parse(north).data["_meta"]


def test_pods_with_the_same_group_are_rejected(tmp_path):
    first, second = write(tmp_path, "a-b"), write(tmp_path, "a_b")
    expected = f"it already has the POD of {first} in the group 'pod_a_b'. Rename one POD."
    assert in_lines(expected, rejection(first, second))


def test_a_host_or_rack_of_another_pod_is_rejected(tmp_path):
    """Names with the separator: device 'b-c' of POD 'a' has the name of device 'c' of POD 'a-b'."""
    inventory = InventoryData()
    first = PodNames(inventory, "a", "/a/pod.yml", shared=True, sanitize=lambda name: name.replace("-", "_"))
    for group in (first.pod_group, first.rack("b_c")):
        inventory.add_group(group)
    inventory.set_variable(first.owner, "pod_file", "/a/pod.yml")
    inventory.add_host(first.host("b-c"))
    for group in (first.pod_group, "a_b_c"):
        inventory.add_child(group, "a-b-c")
    second = PodNames(inventory, "a-b", "/a-b/pod.yml", shared=True, sanitize=lambda name: name.replace("-", "_"))
    with pytest.raises(AnsibleParserError, match="device 'c' of POD 'a-b': another POD has the host 'a-b-c'"):
        second.host("c")
    with pytest.raises(AnsibleParserError, match="rack 'c': the name 'a_b_c' is reserved"):
        second.rack("c")
    assert (second.host("d"), second.rack("d")) == ("a-b-d", "a_b_d")


PLAY = """
- hosts: controllers
  connection: local
  gather_facts: false
  tasks:
    - openipu.pod.pod_preflight: {pod_file: "{{ pod_file }}", reach: false}
      run_once: ONCE
      register: checks
    - ansible.builtin.debug: {msg: "<{{ inventory_hostname }} {{ checks.report | last }}>"}
"""


def play(folder: Path, pods: tuple[Path, Path], once: bool, *options: str) -> str:
    file = folder / "play.yml"
    file.write_text(PLAY.replace("ONCE", str(once).lower()))
    done = run("ansible-playbook", *sources(pods), file, *options)
    return " ".join((done.stdout + done.stderr).split())


def test_a_task_that_runs_once_needs_a_limit_to_one_pod(pods, tmp_path):
    rejected = play(tmp_path, pods, True)
    expected = (
        "Cannot run a task once for several PODs: the play has hosts of pod_north, and others, such as south-s1. "
        "Limit it to one POD: --limit pod_north."
    )
    assert expected in rejected
    assert "failed=1" in rejected
    assert "<south-s1 ok POD south with 4 IPU-Machines" in play(tmp_path, pods, True, "--limit", "pod_south")
    both = play(tmp_path, pods, False)
    assert "<north-s1 ok POD north with" in both
    assert "<south-s1 ok POD south with" in both


def test_a_host_without_a_pod_is_not_another_pod(pods, tmp_path):
    static = tmp_path / "static.yml"
    static.write_text("controllers: {hosts: {console: {}}}\n")
    assert "Cannot run a task once for several PODs" in play(tmp_path, pods, True, "-i", str(static))
    one = play(tmp_path, pods, True, "-i", str(static), "--limit", "pod_north:console")
    assert "<north-s1 ok POD north with 4 IPU-Machines" in one
    assert "failed=1" not in one
    kubernetes = ("ansible-playbook", *sources((*pods, static)), ROOT / "playbooks/kubernetes.yml")
    several = run(*kubernetes)
    assert several.returncode != 0
    assert in_lines("for several PODs at once: south-s1 belong to others than 'north'. Nothing was", several.stdout)
    assert run(*kubernetes, "--limit", "pod_north:console").returncode == 0


def test_roles_use_only_the_hosts_of_their_own_pod(pods, tmp_path):
    vars_files = ("monitoring/defaults", "monitoring/vars", "log_receiver/vars", "virm_agent/vars/main/machines.yml")
    lists = {
        "scrapes": "monitoring_pod_targets['ipu-machine'] | map(attribute='labels') | map(attribute='host') | list",
        "nodes": "monitoring_pod_targets['node'] | map(attribute='labels') | map(attribute='host') | list",
        "logs": "log_receiver_pod_sources | map(attribute='host') | unique | list",
        "agents": "virm_agent_names.values() | list",
    }
    expressions = ", ".join(f"'{name}': {expression}" for name, expression in lists.items())
    names = [name if name.endswith(".yml") else f"{name}/main.yml" for name in vars_files]
    content = f"{{{{ {{{expressions}}} | to_json }}}}"
    copy = {"content": content, "dest": f"{tmp_path}/{{{{ pod_name }}}}.json", "mode": "0600"}
    play = {
        "hosts": "controllers",
        "connection": "local",
        "gather_facts": False,
        "vars": {"ansible_python_interpreter": sys.executable},
        "vars_files": [str(ROOT / "roles" / name) for name in names],
        "tasks": [{"ansible.builtin.copy": copy}],
    }
    file = tmp_path / "play.yml"
    file.write_text(json.dumps([play]))
    done = run("ansible-playbook", *sources(pods), file)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("north", "south"):
        machines = [f"{name}-m1.{unit}" for unit in range(1, 5)]
        assert json.loads((tmp_path / f"{name}.json").read_text()) == {
            "scrapes": machines,
            "nodes": [f"{name}-s1"],
            "logs": [*machines, f"{name}-s1"],
            "agents": machines,
        }
