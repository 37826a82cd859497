# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers on the networks of a POD, started by a real Nova on the requested host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.server.task import OPENSTACK_POD_SERVER
from openstack.connection import Connection

from tests.openstack.neutron_pod import Plan, run
from tools.openstack.site import HOSTS

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]


def run_servers(check: bool = False, **options: Any) -> dict[str, Any]:
    return run(task=OPENSTACK_POD_SERVER, check=check, diff=True, **options)


@pytest.fixture
def options(admin: Connection, plan: Plan) -> Iterator[dict[str, Any]]:
    """Options with a Poplar VM and a controller VM, which are removed afterwards."""
    assert not run(**plan.options()).get("failed")
    name = plan.name
    image = admin.create_image(name, data=b"\0" * 1024, disk_format="raw", wait=True)
    flavor = admin.compute.create_flavor(name=name, vcpus=1, ram=64, disk=1)
    admin.compute.create_flavor_extra_specs(flavor, {"hw:cpu_policy": "dedicated"})
    options = {
        "pod": f"{name}-vpod",
        "servers": [
            {
                "name": f"{name}-poplar",
                "image": name,
                "flavor": name,
                "host": HOSTS[1],
                "user_data": "#cloud-config\n{}\n",
                "networks": [
                    {"network": f"{name}-data", "name": "data", "vnic_type": "direct"},
                    {
                        "network": f"{name}-management",
                        "name": "management",
                        "security_groups": [f"{name}-poplar-management"],
                    },
                ],
            },
            {
                "name": f"{name}-controller",
                "image": name,
                "flavor": name,
                "networks": [
                    {
                        "network": f"{name}-bmc-gw",
                        "name": "machines",
                        "addresses": ["10.1.2.240"],
                        "subnets": [f"{name}-bmc"],
                        "security_groups": [f"{name}-controller-bmc", f"{name}-controller-gw"],
                    }
                ],
            },
        ],
    }
    yield options
    deleted = run_servers(state="absent", **options)
    admin.image.delete_image(image)
    admin.compute.delete_flavor(flavor)
    assert not deleted.get("failed"), deleted
    assert not [server.name for server in admin.compute.servers() if server.name.startswith(name)]


def test_servers_are_created_and_removed(admin: Connection, plan: Plan, options: dict[str, Any]) -> None:
    name = plan.name
    predicted = run_servers(check=True, **options)
    assert not list(admin.compute.servers(name=name))
    created = run_servers(**options)
    assert not created.get("failed"), created
    assert (created["diff"], created["servers"], created["ports"]) == (
        predicted["diff"],
        predicted["servers"],
        predicted["ports"],
    )
    poplar = admin.compute.find_server(f"{name}-poplar", ignore_missing=False)
    assert (poplar.status, poplar.hypervisor_hostname) == ("ACTIVE", HOSTS[1])
    ports = plan.ports(admin)
    data = ports[f"{name}-poplar-data"]
    assert (data.binding_vnic_type, data.binding_vif_type, data.device_id) == ("direct", "hw_veb", poplar.id)
    assert data.is_port_security_enabled is False
    machines = ports[f"{name}-controller-machines"]
    addresses = sorted(fixed["ip_address"] for fixed in machines.fixed_ips)
    assert addresses[1] == "10.1.2.240"
    assert addresses[0].startswith("10.1.1.")
    assert len(machines.security_group_ids) == 2
    assert created["details"][f"{name}-poplar"]["status"] == "ACTIVE"
    assert created["ids"]["servers"][f"{name}-poplar"] == poplar.id
    assert created["ids"]["ports"] == {port: ports[port].id for port in created["ports"]["created"]}

    second = run_servers(**options)
    assert not second["changed"], second
    assert (predicted["ids"], second["ids"]) == ({}, created["ids"])
    assert second["servers"]["unchanged"] == [f"{name}-poplar", f"{name}-controller"]
    # The host is immutable.
    options["servers"][0]["host"] = HOSTS[0]
    rejected = run_servers(**options)
    assert rejected["msg"].startswith(f"Cannot change host of server '{name}-poplar' from {HOSTS[1]} to {HOSTS[0]}")
    recreated = run_servers(recreate=True, **options)
    assert recreated["servers"]["recreated"] == [f"{name}-poplar"]
    assert admin.compute.find_server(f"{name}-poplar").hypervisor_hostname == HOSTS[0]
    assert plan.ports(admin)[f"{name}-poplar-data"].id == data.id
    # A server of the same name of another owner is rejected.
    assert "it does not belong to 'other'" in run_servers(**{**options, "pod": "other", "state": "absent"})["msg"]


def test_servers_of_another_project(connect: Any, plan: Plan, options: dict[str, Any]) -> None:
    """An administrator reads and removes them. Only users of the project create them."""
    tenant = connect("tenant-a")
    tenant_options = {**options, "project": "tenant-a"}
    predicted = run_servers(check=True, **tenant_options)
    assert predicted["servers"]["created"] == [server["name"] for server in options["servers"]]
    rejected = run_servers(**tenant_options)
    assert rejected["msg"].startswith(
        f"Cannot create or change port '{plan.name}-poplar-data': the credentials are not"
    )
    assert not rejected["changed"]
    flavor = next(flavor for flavor in tenant.compute.flavors() if flavor.name == plan.name)
    options["servers"].pop()
    server = options["servers"][0]
    for name in ("host", "user_data"):  # needs an administrator; cannot be read back
        del server[name]
    # Tenants do not see the management network.
    server["networks"][1] = {"network": f"{plan.name}-control", "name": "control"}
    server["image"] = f"{plan.name}-own"
    image = tenant.create_image(server["image"], data=b"\0" * 1024, disk_format="raw", wait=True)
    try:
        created = run_servers(cloud="tenant-a", **options)
        assert not created.get("failed"), created
        assert created["servers"]["created"] == [server["name"]]
        assert flavor.name == tenant.compute.find_server(server["name"]).flavor["original_name"]
        second = run_servers(check=True, **tenant_options)
        assert (second["changed"], second["details"][server["name"]]["status"]) == (False, "ACTIVE")
        assert not run_servers(**tenant_options)["changed"]
        assert run_servers(check=True, **options)["servers"]["created"] == [
            server["name"]
        ]  # the project of the administrator has none
    finally:
        deleted = run_servers(state="absent", **tenant_options)
        tenant.image.delete_image(image)
    assert deleted["servers"]["removed"] == [server["name"]]
    assert sorted(deleted["ports"]["removed"]) == [f"{server['name']}-control", f"{server['name']}-data"]
    assert not list(tenant.network.ports(name=f"{server['name']}-data"))
    assert "Cannot find project 'nowhere'" in run_servers(**{**options, "project": "nowhere"})["msg"]


def test_a_server_that_failed_to_start_is_recreated(admin: Connection, plan: Plan, options: dict[str, Any]) -> None:
    name = plan.name
    options["servers"].pop()
    huge = admin.compute.create_flavor(name=f"{name}-huge", vcpus=1, ram=64, disk=1)
    admin.compute.create_flavor_extra_specs(huge, {"trait:HW_CPU_X86_SGX": "required"})
    try:
        options["servers"][0]["flavor"] = f"{name}-huge"
        result = run_servers(**options)
        assert result["msg"].startswith(f"Cannot create server '{name}-poplar': it failed to start: ")
        assert result["ports"]["created"] == [f"{name}-poplar-data", f"{name}-poplar-management"]
        assert result["changed"]
        options["servers"][0]["flavor"] = name
        second = run_servers(**options)
        assert second["servers"]["recreated"] == [f"{name}-poplar"], second
        assert admin.compute.find_server(f"{name}-poplar").status == "ACTIVE"
    finally:
        admin.compute.delete_flavor(huge)


def test_the_next_run_waits_for_a_starting_server(admin: Connection, plan: Plan, options: dict[str, Any]) -> None:
    options["servers"].pop()
    name = options["servers"][0]["name"]
    first = run_servers(wait_timeout=0, **options)
    assert (
        first["msg"]
        == f"Cannot create server '{name}': timeout after 0 seconds. Check its state, and run the task again."
    )
    assert first["changed"]
    second = run_servers(**options)
    assert (second["changed"], second["servers"]["unchanged"]) == (False, [name]), second
    assert second["details"][name]["status"] == admin.compute.find_server(name).status == "ACTIVE"


def test_removal_of_a_server_removes_all_its_ports(admin: Connection, plan: Plan, options: dict[str, Any]) -> None:
    options["servers"].pop()
    server = options["servers"][0]
    # A port of a failed order on a foreign network, and a port of another server.
    owner = {"project_id": admin.current_project_id, "tags": [f"openipu.pod={options['pod']}"]}
    foreign = admin.network.create_network(name=f"{plan.name}-foreign", is_shared=False)
    names = [f"{server['name']}-old", f"{plan.name}-other-data"]
    try:
        for name in names:
            port = admin.network.create_port(network_id=foreign.id, name=name, project_id=owner["project_id"])
            admin.network.set_tags(port, owner["tags"])
        assert not run_servers(**options).get("failed")
        del server["networks"][1]
        predicted = run_servers(state="absent", check=True, **options)
        deleted = run_servers(state="absent", **options)
        assert (deleted["ports"], deleted["diff"]) == (predicted["ports"], predicted["diff"])
        assert sorted(deleted["ports"]["removed"]) == [
            f"{server['name']}-{name}" for name in ("data", "management", "old")
        ]
        remaining = [port.name for port in admin.network.ports(**owner) if port.name.startswith(plan.name)]
        assert remaining == names[1:]
        assert not run_servers(state="absent", **options)["changed"]
    finally:
        for port in admin.network.ports(network_id=foreign.id):
            admin.network.delete_port(port)
        admin.network.delete_network(foreign)


def test_a_server_without_networks(admin: Connection, plan: Plan, options: dict[str, Any]) -> None:
    options["servers"].pop()
    del options["servers"][0]["networks"]
    created = run_servers(**options)
    assert not created.get("failed"), created
    assert created["details"][options["servers"][0]["name"]]["addresses"] == {}
    assert not run_servers(**options)["changed"]


def test_missing_requirements_are_reported(admin: Connection, plan: Plan, options: dict[str, Any]) -> None:
    server = options["servers"][0]
    server["flavor"] = "none-such"
    assert "Cannot use flavor 'none-such' for server" in run_servers(**options)["msg"]
    server.update(flavor=plan.name, image="none-such")
    assert "Cannot use image 'none-such' for server" in run_servers(**options)["msg"]
    del server["image"]
    assert run_servers(**options)["msg"] == (
        f"Cannot start server '{server['name']}': a new server needs image. Set the missing options."
    )
    assert not [name for name in plan.ports(admin) if name.startswith(server["name"])]
    server["networks"][0]["network"] = "none-such"
    assert "Cannot find network 'none-such' of port" in run_servers(**options)["msg"]
    server["networks"][0]["network"] = f"{plan.name}-data"
    server["image"] = plan.name
