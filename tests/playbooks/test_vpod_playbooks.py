# SPDX-License-Identifier: GPL-3.0-or-later
"""Orders of vPODs with mistakes that the role finds without a cloud, and addresses of their controller VMs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import UserError
from ansible_collections.openipu.pod.plugins.module_utils.vipu.object_rules import ID_RULE

from tests import ROOT
from tests.integration.bringup.own_twin import BIN
from tests.integration.collection.playbook import results
from tests.playbooks.test_vpod_checks import ROLE, VARIABLES
from tests.unit.collection.awx.content import load, named
from tests.unit.collection.openstack import neutron_raw

ORDER = {
    "vpod_name": "v1",
    "vpod_tenant": "research",
    "vpod_ipus": 4,
    "vpod_poplar_server": "server2",
    "vpod_image": "poplar",
    "vpod_flavor": "poplar.1of2",
}
# Variables that the inventory plugin sets for a POD with OpenStack.
POD = {
    "pod_name": "pod",
    "pod_openstack_config": {
        "networks": [],
        "subnets": [],
        "security_groups": [
            {
                "name": "pod-control-instance-gw",
                "rules": [
                    {"direction": "ingress", "port": 9090, "remote": "10.1.2.101/32"},
                    {"direction": "egress", "port": 2112, "remote": "10.1.2.0/24"},
                    {"direction": "egress", "port": 8090, "remote": "10.1.2.101/32"},
                ],
            }
        ],
    },
    "pod_openstack_tenants": {"*": {"control_network": "pod-control", "common_networks": ["pod-management"]}},
    "vipu_api_host": "10.1.3.101",
    "vipu_connection": {"api_host": "127.0.0.1", "api_port": 1},
    "openstack_connection": {"cloud": "none"},
}


def play(folder: Path, playbook: str, inventory: dict[str, Any], **variables: Any) -> str:
    """Run a playbook that must fail, and return its output in one line."""
    hosts = {"all": {"vars": inventory, "children": {"controllers": {"hosts": {"localhost": {}}}}}}
    file = folder / "hosts.yml"
    file.write_text(yaml.safe_dump(hosts))
    done = subprocess.run(
        [BIN / "ansible-playbook", ROOT / "playbooks" / playbook, "-i", file, "-e", json.dumps(variables)],
        env={"PATH": f"{BIN}:/usr/bin:/bin", "HOME": str(folder), "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode != 0, done.stdout
    return " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize(
    ("playbook", "names"),
    [
        ("vpod_create.yml", sorted(ORDER)),
        ("vpod_info.yml", ["vpod_name", "vpod_tenant"]),
        ("vpod_destroy.yml", ["vpod_name", "vpod_tenant"]),
    ],
)
def test_all_missing_variables_are_listed(tmp_path: Path, playbook: str, names: list[str]) -> None:
    for inventory in ({}, POD):
        output = play(tmp_path, playbook, inventory)
        assert f"missing required arguments: {', '.join(names)}" in output
        assert "is undefined" not in output


@pytest.mark.parametrize("playbook", ["vpod_create.yml", "vpod_info.yml", "vpod_destroy.yml"])
def test_an_inventory_without_openstack_is_rejected(tmp_path: Path, playbook: str) -> None:
    inventory = {name: value for name, value in POD.items() if not name.startswith("pod_openstack")}
    output = play(tmp_path, playbook, inventory, **ORDER)
    assert "Cannot use vPOD 'v1': the inventory has no OpenStack networks. Nothing was changed. Add openstack" in output


@pytest.mark.parametrize("ipus", [12, 0, -4])
def test_a_size_that_no_partition_can_have_is_rejected(tmp_path: Path, ipus: int) -> None:
    output = play(tmp_path, "vpod_create.yml", POD, **{**ORDER, "vpod_ipus": ipus})
    assert f"Cannot create vPOD 'v1': vpod_ipus must be a power of two (1, 2, 4, 8, …), not {ipus}." in output
    assert "Read the tenants of the data network" not in output


@pytest.mark.parametrize("name", ["../v1", "v 1", "v1,v2", ".v1", "v" * 64])
def test_a_name_that_the_controller_rejects_is_rejected_first(tmp_path: Path, name: str) -> None:
    output = play(tmp_path, "vpod_create.yml", POD, **{**ORDER, "vpod_name": name})
    assert f"Cannot create vPOD '{name}': its name must have {ID_RULE}. Set vpod_name to another name." in output
    assert "Read the tenants of the data network" not in output


@pytest.mark.parametrize("name", ["production.v1", "production.x.y"])
def test_the_name_of_an_order_of_a_team_is_rejected(tmp_path: Path, name: str) -> None:
    """The team could return the vPOD, which would count against its quota."""
    pod = {**POD, "pod_teams": {"production": {"ipus": 16}}}
    output = play(tmp_path, "vpod_create.yml", pod, **{**ORDER, "vpod_name": name})
    assert (
        f"Cannot create vPOD '{name}': names with 'production.' are those of orders of team 'production'. "
        "Set vpod_name to another name." in output
    )
    assert "Read the tenants of the data network" not in output


@pytest.mark.parametrize("name", ["production", "v.1", "_v1", "v" * 63])
def test_other_names_are_accepted(tmp_path: Path, name: str) -> None:
    pod = {**POD, "pod_teams": {"production": {"ipus": 16}}}
    output = play(tmp_path, "vpod_create.yml", pod, **{**ORDER, "vpod_name": name}, vpod_controller_vm=False)
    assert "Read the tenants of the data network" in output  # fails without a cloud


@pytest.mark.parametrize("empty", [{}, {"vpod_controller_vm": True, "vpod_controller_public_keys": " \n"}])
def test_a_controller_vm_without_a_login_is_rejected(tmp_path: Path, empty: dict[str, Any]) -> None:
    output = play(tmp_path, "vpod_create.yml", POD, **ORDER, **empty)
    assert "Cannot create controller VM 'v1-controller': no user could log in to it" in output
    assert "TASK [openipu.pod.vpod : Read the tenants of the data network]" not in output


@pytest.mark.parametrize(
    "settings",
    [
        {"vpod_controller_vm": False},
        {"vpod_controller_public_keys": "ssh-ed25519 AAAA operator"},
        {"vpod_controller_public_keys": ["ssh-ed25519 AAAA operator"]},
        {"vpod_controller_cloud_init": {"packages": ["vipu-server"]}},
    ],
)
def test_a_controller_vm_with_a_login_or_none_is_accepted(tmp_path: Path, settings: dict[str, Any]) -> None:
    output = play(tmp_path, "vpod_create.yml", POD, **ORDER, **settings)
    assert "Cannot create controller VM" not in output
    assert "Read the tenants of the data network" in output  # fails without a cloud


KEYS = {"vpod_controller_public_keys": ["ssh-ed25519 AAAA operator"]}


@pytest.mark.parametrize(("login", "validated"), [({}, False), (KEYS, True)])
def test_awx_creates_a_controller_vm_if_its_inventory_has_the_keys(
    tmp_path: Path, login: dict[str, Any], validated: bool
) -> None:
    awx = named(load().templates)["Create a vPOD"]["extra_vars"]["vpod_controller_vm"]
    answers = {"vpod_share_size": 0, "vpod_controller_address": ""}  # those of an unchanged form
    output = play(tmp_path, "vpod_create.yml", {**POD, **login}, **ORDER, **answers, vpod_controller_vm=awx)
    assert ("TASK [openipu.pod.vpod : Validate the access to the controller VM]" in output) is validated
    assert "Cannot create controller VM" not in output
    assert "Read the tenants of the data network" in output  # fails without a cloud


@pytest.mark.parametrize("upstream", ["10.1.3.101", "192.0.2.9", "vipu.example", ""])
def test_a_controller_that_the_vm_cannot_reach_is_rejected(tmp_path: Path, upstream: str) -> None:
    output = play(tmp_path, "vpod_create.yml", POD, **ORDER, **KEYS, vpod_controller_upstream=upstream)
    assert "Cannot create controller VM 'v1-controller': security group 'pod-control-instance-gw' does not" in output
    assert f"vpod_controller_upstream '{upstream}'. Nothing was changed. Set it to" in output
    assert "such as 10.1.2.101" in output
    assert "Read the tenants of the data network" not in output


def test_the_management_network_reaches_every_address_of_the_controller(tmp_path: Path) -> None:
    tenants = {"*": {"control_network": "pod-management", "common_networks": ["pod-management"]}}
    pod = {**POD, "pod_openstack_tenants": tenants}
    output = play(tmp_path, "vpod_create.yml", pod, **ORDER, **KEYS, vpod_controller_upstream="10.1.3.101")
    assert "Read the tenants of the data network" in output  # fails without a cloud
    output = play(tmp_path, "vpod_create.yml", pod, **ORDER, **KEYS, vpod_controller_upstream="vipu.example")
    assert "vpod_controller_upstream 'vipu.example'" in output


def test_the_address_without_services_is_not_checked(tmp_path: Path) -> None:
    settings = {"vpod_controller_services": False, "vpod_controller_upstream": "vipu.example"}
    output = play(tmp_path, "vpod_create.yml", POD, **ORDER, **KEYS, **settings)
    assert "Read the tenants of the data network" in output  # fails without a cloud


LISTED = {"vpod_controller_addresses": ["10.4.0.10", "10.4.0.11"]}
GIVEN = {"vpod_controller_address": "10.4.0.77"}
PORT = {"name": "red-controller-control", "addresses": ["10.4.0.151"]}
MAC = "0c:42:a1:00:05:02"


def no_free_address() -> str:
    """Return the message of the module."""
    port = {"name": "red-controller-control", "network": "data", "address_choices": ["10.5.0.10"]}
    with pytest.raises(UserError) as failure:
        neutron_raw.plan({"ports": [port]}, neutron_raw.state_with(neutron_raw.port("blue", MAC, "10.5.0.10")))
    return failure.value.message


@pytest.mark.parametrize(
    ("file", "name", "effect"),
    [
        ("plan_controller_vm.yml", "Plan the controller VM", "Nothing was changed."),
        ("main.yml", "Create the controller VM", "This run has created a part of the vPOD."),
    ],
)
def test_an_order_without_a_free_address_is_rejected(tmp_path: Path, file: str, name: str, effect: str) -> None:
    tasks = yaml.safe_load((ROLE / file).read_text())
    tasks = tasks[0].get("block", tasks)
    index = [task["name"] for task in tasks].index(name)
    task, reject = tasks[index : index + 2]
    reject["ansible.builtin.include_tasks"]["file"] = str(ROLE / reject["ansible.builtin.include_tasks"]["file"])
    messages = []
    for cause in (no_free_address(), "Cannot reach the cloud."):
        module = {"ansible.builtin.fail": {"msg": cause}, "register": task["register"]}
        done = results(
            tmp_path,
            [{**module, "failed_when": task["failed_when"]}, reject],
            **{
                **yaml.safe_load((ROLE.parent / "vars/main.yml").read_text()),
                **VARIABLES,
                **LISTED,
                "vpod_control_network": "control",
                "vpod_controller": {"name": "red-controller"},
                "vpod_controller_vm": True,
            },
        )
        messages += [result["msg"] for result in done if result["failed"]]
    assert messages == [
        "Cannot create controller VM 'red-controller': all addresses of vpod_controller_addresses are in use in "
        f"network 'control' (10.4.0.10, 10.4.0.11). {effect} Destroy a vPOD, or add an address to "
        "vpod_controller_addresses and to the certificate of the V-IPU controller (vipu_server_tls_names). Then run "
        "the playbook again.",
        "Cannot reach the cloud.",
    ]


@pytest.mark.parametrize(
    ("settings", "addresses"),
    [
        ({}, {}),  # Neutron chooses it
        (LISTED, {"address_choices": ["10.4.0.10", "10.4.0.11"]}),
        ({**LISTED, "vpod_controller_address": ""}, {"address_choices": ["10.4.0.10", "10.4.0.11"]}),  # as in AWX
        ({**LISTED, **GIVEN}, {"addresses": ["10.4.0.77"]}),
        ({**GIVEN, "vpod_own": {"ports": [PORT]}}, {}),  # an existing VM keeps its address
        (
            {
                **GIVEN,
                "vpod_own": {"ports": [PORT]},
                "vpod_controller_plan": {"servers": {"created": ["red-controller"]}},
            },
            {"addresses": ["10.4.0.77"]},  # a port of a failed run
        ),
    ],
)
def test_the_controller_vm_gets_an_address_of_the_certificate(
    tmp_path: Path, settings: dict[str, Any], addresses: dict[str, Any]
) -> None:
    """The module chooses the first free one, also while other orders do so."""
    [result] = results(
        tmp_path,
        [{"ansible.builtin.debug": {"msg": "{{ vpod_controller_ports[0] }}"}}],
        **{
            **yaml.safe_load((ROLE.parent / "defaults/main.yml").read_text()),
            **yaml.safe_load((ROLE.parent / "vars/main.yml").read_text()),
            **VARIABLES,
            "vpod_tenant_settings": {"control_network": "control", "common_networks": []},
            "vpod_own": {"ports": []},
            "pod_name": "pod",
            "pod_openstack_config": {"subnets": []},
            "pod_openstack_networks": {"bmc": "pod-bmc-gw", "gw": "pod-bmc-gw"},
            **settings,
        },
    )
    assert {key: value for key, value in result["msg"].items() if key.startswith("address")} == addresses
