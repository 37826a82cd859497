# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables that the role vpod derives from the inventory and from the objects of a vPOD."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT
from tests.unit.collection.pod.conftest import PodFiles
from tests.unit.collection.pod.inventories import value

SERVER = ", servers: [{name: s1, roles: [controller]}]"
DEPLOY = "deploy: {controllers: [vipu_server]}\nopenstack: {}\n"
ORDER: dict[str, Any] = {
    "vpod_name": "v1",
    "vpod_tenant": "research",
    "vpod_controller_vm": True,
    "vpod_controller_services": True,
    "vpod_controller_addresses": [],
    "vpod_allocated": {"allocations": [{"id": "v1", "agents": ["m1.1", "m1.2"]}, {"id": "v2", "agents": ["m1.3"]}]},
}


def derive(folder: Path, host: str, expression: str, **variables: Any) -> Any:
    """Return the value of an expression with the variables of the role, on a host of the inventory in a folder."""
    (folder / "group_vars").mkdir(exist_ok=True)
    role = yaml.safe_load((ROOT / "roles/vpod/vars/main.yml").read_text())
    content = {**role, **ORDER, **variables}
    (folder / "group_vars" / "all.yml").write_text(yaml.safe_dump(content))
    return value(str(folder), host, expression)


@pytest.fixture
def pod(tmp_path: Path) -> Path:
    PodFiles(tmp_path).write(rack_tail=SERVER, tail=DEPLOY)
    return tmp_path


def test_machines_of_other_pods_with_the_same_agents_are_not_in_the_vpod(tmp_path: Path) -> None:
    for name in ("north", "south"):
        (tmp_path / name).mkdir()
        path = PodFiles(tmp_path / name).write(rack_tail=SERVER, tail="shared_inventory: true\n" + DEPLOY)
        path.write_text(path.read_text().replace("name: test\n", f"name: {name}\n"))
    for name in ("north", "south"):
        assert derive(tmp_path, f"{name}-s1", "vpod_machine_hosts") == [f"{name}-m1.1", f"{name}-m1.2"]


def test_the_controller_in_the_network_of_the_gateways_is_the_default(pod: Path) -> None:
    assert derive(pod, "s1", "vpod_gw_controllers") == ["10.2.1.101"]


@pytest.mark.parametrize(
    ("settings", "hosts"),
    [
        ({}, ["s1"]),
        ({"vipu_server_admin_on_both": False}, []),
        ({"vipu_server_admin_on_both": True, "vipu_server_admin_port": 8092}, ["s1"]),
        ({"vipu_server_admin_port": 8092}, []),
        ({"vipu_server_admin_host": "10.3.1.101"}, []),
        ({"vipu_server_admin_endpoint": False}, ["s1"]),
        ({"vipu_server_no_admin": True}, []),
        ({"vipu_server_bundle": "vipu.tar.gz"}, []),  # its settings are not known
    ],
)
def test_controllers_with_administrators_on_the_port_of_users(pod: Path, settings: Any, hosts: list[str]) -> None:
    assert derive(pod, "s1", "vpod_unrestricted_controllers", **settings) == hosts


def port(name: str, *groups: str) -> dict[str, Any]:
    return {"name": f"v1-controller-{name}", "security_groups": [f"test-{group}" for group in groups]}


NETWORKS = {"pod_openstack_networks": {"bmc": "test-bmc-gw", "gw": "test-bmc-gw"}}
CREATED = {"servers": {"created": ["v1-controller"], "recreated": []}}
PRESENT: dict[str, Any] = {"servers": {"created": [], "recreated": []}}
NARROW, WIDE = port("machines", "control-instance-bmc", "control-instance-gw"), port("machines", "controller-bmc")


@pytest.mark.parametrize(
    ("plan", "ports", "services", "instance", "addressed"),
    [
        (None, [], True, True, True),  # the plan of a new VM
        (CREATED, [], True, True, True),
        (CREATED, [WIDE], True, True, True),  # ports of a failed order
        (PRESENT, [NARROW], True, True, False),
        (PRESENT, [WIDE], True, False, False),  # services of the site run in this VM
        (CREATED, [], False, False, True),
    ],
)
def test_ports_of_controller_vms(
    pod: Path, plan: Any, ports: list[Any], services: bool, instance: bool, addressed: bool
) -> None:
    variables = {"vpod_own": {"ports": ports}, "vpod_controller_services": services}
    if plan:
        variables["vpod_controller_plan"] = plan
    found = derive(
        pod,
        "s1",
        "[vpod_control_instance, vpod_controller_ports]",
        vpod_controller_address="10.4.0.10",
        **NETWORKS,
        **variables,
    )
    assert found[0] is instance
    control, machines = found[1]
    empty = derive(pod, "s1", "vpod_controller_ports[0]", vpod_controller_address="", **variables, **NETWORKS)
    assert "addresses" not in empty  # an answer of AWX
    assert control.get("addresses") == (["10.4.0.10"] if addressed else None)
    kind = "control-instance" if instance else "controller"
    assert machines["security_groups"] == [f"test-{kind}-bmc", f"test-{kind}-gw"]


PROJECT = {"project_id": "5f0b", "project_name": "research"}


@pytest.mark.parametrize(
    ("connection", "expected"),
    [
        ({"cloud": "admin"}, {"cloud": "admin", "auth": PROJECT}),
        # Of both, Keystone uses the ID. A clouds.yaml with an ID would select the project of the provider.
        (
            {"auth": {"username": "a", "project_id": "0e1d"}, "region_name": "r"},
            {"auth": {"username": "a", **PROJECT}, "region_name": "r"},
        ),
        # The modules reject credentials in both options.
        ({"cloud": {"auth": {"username": "a"}}}, {"cloud": {"auth": {"username": "a", **PROJECT}}}),
        (
            {"cloud": {"verify": False}, "auth": {"username": "a"}},
            {"cloud": {"verify": False}, "auth": {"username": "a", **PROJECT}},
        ),
    ],
)
def test_the_provider_logs_in_to_the_project_of_the_tenant(
    pod: Path, connection: dict[str, Any], expected: dict[str, Any]
) -> None:
    record = {"ids": {"projects": {"research": "5f0b"}}}
    found = derive(pod, "s1", "vpod_tenant_options", vpod_openstack_connection=connection, vpod_record=record)
    assert found == expected


def test_credentials_of_the_tenant_are_unchanged(pod: Path) -> None:
    settings = {"vpod_openstack_connection": {"cloud": "admin"}, "vpod_tenant_connection": {"cloud": "tenant"}}
    assert derive(pod, "s1", "vpod_tenant_options", **settings) == {"cloud": "tenant"}
