# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup plugin for bare-metal nodes, which evaluates variables of hosts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openipu.pod.plugins.lookup import bare_metal

from tests.unit.collection.pod.inventories import run, value

ACCOUNT = {"username": "root", "password": "s3cret"}
NODES = {name: {"name": name, "bmc": {"address": name}} for name in ("ipum01", "ipum02", "server1")}


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """Return an inventory with two machines, a server and a server that is no node. Its hosts have other names."""
    bmc = {**ACCOUNT, "system_id": "/S/{{ serial }}", "ca_path": "{{ site_ca | default(omit) }}"}
    machines = {f"host{n}": {"pod_device": f"ipum0{n}", "serial": n, "pod_agent_id": f"ag0{n}"} for n in (1, 2)}
    servers = {f"server{n}": {"pod_device": f"server{n}", "openstack_server_state": "{{ state }}"} for n in (1, 2)}
    servers["server1"]["state"] = "available"
    groups = {
        "machines": {"hosts": machines, "vars": {"openstack_bmc": bmc}},
        "poplar_servers": {"hosts": servers, "vars": {"openstack_server_bmc": ACCOUNT}},
    }
    content = {"all": {"children": groups, "vars": {"pod_openstack_nodes": NODES, "pod_name": "pod64"}}}
    path = tmp_path / "hosts.json"
    path.write_text(json.dumps(content))
    return path


def find(inventory: Path, name: str, **options: Any) -> Any:
    given = ", ".join(f"{option}={each!r}" for option, each in options.items())
    return value(inventory, "host1", f"lookup('openipu.pod.bare_metal', '{name}', hosts=groups.all, {given})")


def fails(inventory: Path, expression: str) -> str:
    """Return the output of a failed lookup in one line."""
    message = json.dumps({"msg": f"{{{{ {expression} }}}}"})
    done = run("ansible", "-i", inventory, "host1", "-m", "ansible.builtin.debug", "-a", message)
    assert done.returncode != 0, done.stdout
    assert "Traceback" not in done.stderr
    assert "s3cret" not in done.stdout + done.stderr
    return " ".join((done.stdout + done.stderr).split())


def test_nodes_have_the_variables_of_their_hosts(inventory):
    first, second, server = find(inventory, "nodes", nodes=NODES, power_off=["ipum02"])
    assert first["bmc"] == {"address": "ipum01", **ACCOUNT, "system_id": "/S/1"}
    assert second["bmc"] == {"address": "ipum02", **ACCOUNT, "system_id": "/S/2"}
    assert (first["disable_power_off"], second["disable_power_off"]) == (True, False)
    assert server == {"name": "server1", "bmc": {"address": "server1", **ACCOUNT}, "state": "available"}


def test_undefined_variables_are_texts(inventory):
    assert find(inventory, "undefined", nodes=NODES) == []
    content = json.loads(inventory.read_text())
    groups = content["all"]["children"]
    groups["machines"]["vars"]["openstack_bmc"]["password"] = "{{ vault_bmc }}"
    groups["poplar_servers"]["vars"]["openstack_server_bmc"]["password"] = "{{ vault_idrac }}"
    inventory.write_text(json.dumps(content))
    nodes = {**NODES, "server2": {}}
    assert find(inventory, "undefined", nodes=nodes) == [
        "vault_bmc (used in openstack_bmc of host1, host2)",
        "vault_idrac (used in openstack_server_bmc of server1, server2)",
        "state (used in openstack_server_state of server2)",
    ]


OMITTED = "{{ not_defined | default(omit) }}"


@pytest.mark.parametrize(
    ("variables", "bmc"),
    [
        ({"openstack_server_bmc": OMITTED}, None),
        ({"openstack_server_bmc": OMITTED, "openstack_bmc": OMITTED}, None),
        ({"openstack_server_bmc": OMITTED, "openstack_bmc": {**ACCOUNT, "system_id": OMITTED}}, ACCOUNT),
        ({"openstack_bmc": OMITTED}, ACCOUNT),
        ({"openstack_bmc": "{{ {'address': omit, 'system_id': 1} }}"}, {**ACCOUNT, "system_id": 1}),
        ({"openstack_server_bmc": {**ACCOUNT, "username": OMITTED}}, None),
        (
            {"openstack_server_bmc": {**ACCOUNT, "ca_path": "/ca"}, "openstack_bmc": {"validate_certs": OMITTED}},
            {**ACCOUNT, "ca_path": "/ca"},
        ),
    ],
)
def test_omitted_settings_are_not_set(inventory, variables, bmc):
    content = json.loads(inventory.read_text())
    server = content["all"]["children"]["poplar_servers"]["hosts"]["server1"]
    server.update(variables, openstack_server_state=OMITTED)
    inventory.write_text(json.dumps(content))
    pod_nodes = {"server1": NODES["server1"]}
    assert find(inventory, "undefined", nodes=pod_nodes) == []
    assert find(inventory, "skipped", nodes=pod_nodes) == ([] if bmc else ["server1"])
    found = [(node["bmc"], node["state"]) for node in find(inventory, "nodes", nodes=pod_nodes)]
    assert found == ([({"address": "server1", **bmc}, "manageable")] if bmc else [])


def test_a_template_of_settings_is_reported_once(inventory):
    """All of it is evaluated, also the settings that are replaced."""
    content = json.loads(inventory.read_text())
    common = {"username": "{{ vault_user }}", "password": "{{ vault_password }}", "system_id": "/S/{{ serial }}"}
    variables = {"openstack_bmc": "{{ common_bmc }}", "common_bmc": common, "openstack_machine_bmc": ACCOUNT}
    content["all"]["children"]["machines"]["vars"].update(variables)
    inventory.write_text(json.dumps(content))
    assert find(inventory, "undefined", nodes=NODES) == [
        "vault_password (used in openstack_bmc of host1, host2)",
        "vault_user (used in openstack_bmc of host1, host2)",
    ]
    assert "vault_" in fails(inventory, "lookup('openipu.pod.bare_metal', 'nodes', nodes=pod_openstack_nodes)")


def test_devices_without_a_node_are_ignored(inventory):
    assert find(inventory, "removed", nodes=NODES) == [{"name": "ipum01"}, {"name": "ipum02"}, {"name": "server1"}]
    assert find(inventory, "skipped", nodes=NODES) == []
    assert find(inventory, "nodes", nodes={}) == []


def test_busy_machines_need_no_nodes(inventory):
    options = {"power_off": ["ipum01", "ipum02"], "partitions": {"ag01": [], "ag02": ["p1", "p2"]}}
    assert find(inventory, "busy", **options) == ["ipum02 (p1, p2)"]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("'node'", "Cannot look up 'node': the name is unknown. Choose from undefined, skipped, nodes, removed, busy."),
        ("'nodes', hosts=['none']", "Cannot read the variables of host 'none': it is not in the inventory."),
        (
            "'nodes', hosts=['localhost']",
            "Cannot find the node of host 'localhost': it has no variable pod_device. "
            "Set pod_device, or exclude the host with --limit.",
        ),
    ],
)
def test_errors_name_the_cause(inventory, expression, message):
    assert message in fails(inventory, f"lookup('openipu.pod.bare_metal', {expression})")


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("pod_device", "Cannot find the node of host 'host2': it has no variable pod_device. Set pod_device"),
        (
            "pod_agent_id",
            "Cannot check the partitions of host 'host2': it has no variable pod_agent_id. Set pod_agent_id",
        ),
    ],
)
def test_machines_need_the_variables_of_the_inventory_plugin(inventory, variable, message):
    content = json.loads(inventory.read_text())
    del content["all"]["children"]["machines"]["hosts"]["host2"][variable]
    inventory.write_text(json.dumps(content))
    options = "hosts=groups.machines, power_off=['ipum02'], partitions={'ag01': ['p1']}"
    output = fails(inventory, f"lookup('openipu.pod.bare_metal', 'busy', {options})")
    assert f"{message}, or remove the host from the group machines." in output
    assert "--limit" not in output


def test_settings_that_are_no_dictionary_are_not_shown(inventory):
    content = json.loads(inventory.read_text())
    content["all"]["children"]["machines"]["vars"]["openstack_bmc"] = "s3cret"
    inventory.write_text(json.dumps(content))
    output = fails(inventory, "lookup('openipu.pod.bare_metal', 'nodes', nodes=pod_openstack_nodes)")
    assert "Cannot read the BMC of host 'host1': openstack_bmc is not a dictionary." in output


def test_examples_run(inventory, tmp_path):
    """The last one requires a cloud."""
    tasks = yaml.safe_load(bare_metal.EXAMPLES)
    play = {"hosts": "machines:poplar_servers", "connection": "local", "gather_facts": False, "tasks": tasks}
    (tmp_path / "play.yml").write_text(json.dumps([play]))
    done = run("ansible-playbook", "-i", inventory, tmp_path / "play.yml", HOME=str(tmp_path))
    output = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 2, output
    assert "All assertions passed" in output
    assert "TASK [Register the nodes]" in output
    assert "Cloud admin was not found" in output
    assert "s3cret" not in output
