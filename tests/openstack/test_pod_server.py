# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers on the networks of a POD, started by a real Nova on the host that was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.server_task import OPENSTACK_POD_SERVER
from neutron_pod import Plan, run
from openstack.connection import Connection

from tools.openstack.site import HOSTS

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # of the SDK's releases to come
]


def servers(check: bool = False, **options: Any) -> dict[str, Any]:
    return run(task=OPENSTACK_POD_SERVER, check=check, diff=True, **options)


@pytest.fixture
def asked(admin: Connection, plan: Plan) -> Iterator[dict[str, Any]]:
    """A Poplar VM and a controller VM, with all that they need; nothing is left of them."""
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
    gone = servers(state="absent", **options)
    admin.image.delete_image(image)
    admin.compute.delete_flavor(flavor)
    assert not gone.get("failed"), gone
    assert not [server.name for server in admin.compute.servers() if server.name.startswith(name)]


def test_servers_come_and_go(admin: Connection, plan: Plan, asked: dict[str, Any]) -> None:
    name = plan.name
    foretold = servers(check=True, **asked)
    assert not list(admin.compute.servers(name=name))
    made = servers(**asked)
    assert not made.get("failed"), made
    assert (made["diff"], made["servers"], made["ports"]) == (foretold["diff"], foretold["servers"], foretold["ports"])
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
    assert made["details"][f"{name}-poplar"]["status"] == "ACTIVE"

    again = servers(**asked)
    assert not again["changed"], again
    assert again["servers"]["unchanged"] == [f"{name}-poplar", f"{name}-controller"]
    # To be on another host is to be another server.
    asked["servers"][0]["host"] = HOSTS[0]
    refused = servers(**asked)
    assert refused["msg"].startswith(f"Server '{name}-poplar' has host {HOSTS[1]} and cannot be changed to {HOSTS[0]}")
    moved = servers(recreate=True, **asked)
    assert moved["servers"]["recreated"] == [f"{name}-poplar"]
    assert admin.compute.find_server(f"{name}-poplar").hypervisor_hostname == HOSTS[0]
    assert plan.ports(admin)[f"{name}-poplar-data"].id == data.id
    # Somebody else's server of the same name is not ours to touch.
    assert "was not made for 'other'" in servers(**{**asked, "pod": "other", "state": "absent"})["msg"]


def test_the_servers_of_another_project(connect: Any, plan: Plan, asked: dict[str, Any]) -> None:
    """An administrator sees and removes them; starting them is for who is in that project."""
    tenant = connect("tenant-a")
    where = {**asked, "project": "tenant-a"}
    foretold = servers(check=True, **where)
    assert foretold["servers"]["created"] == [server["name"] for server in asked["servers"]]
    refused = servers(**where)
    assert refused["msg"].startswith(f"Port '{plan.name}-poplar-data' of project 'tenant-a' can be made or changed by ")
    assert not refused["changed"]
    flavor = next(flavor for flavor in tenant.compute.flavors() if flavor.name == plan.name)
    asked["servers"].pop()
    server = asked["servers"][0]
    for name in ("host", "user_data"):  # takes an administrator; is not read back
        del server[name]
    server["image"] = f"{plan.name}-own"
    image = tenant.create_image(server["image"], data=b"\0" * 1024, disk_format="raw", wait=True)
    try:
        made = servers(cloud="tenant-a", **asked)
        assert made["servers"]["created"] == [server["name"]], made
        assert flavor.name == tenant.compute.find_server(server["name"]).flavor["original_name"]
        seen = servers(check=True, **where)
        assert (seen["changed"], seen["details"][server["name"]]["status"]) == (False, "ACTIVE")
        assert not servers(**where)["changed"]
        assert servers(check=True, **asked)["servers"]["created"] == [server["name"]]  # the administrator has none
    finally:
        gone = servers(state="absent", **where)
        tenant.image.delete_image(image)
    assert gone["servers"]["removed"] == [server["name"]]
    assert sorted(gone["ports"]["removed"]) == [f"{server['name']}-data", f"{server['name']}-management"]
    assert not list(tenant.network.ports(name=f"{server['name']}-data"))
    assert "There is no project 'nowhere'" in servers(**{**asked, "project": "nowhere"})["msg"]


def test_a_server_that_fits_nowhere_says_so_and_is_made_anew(
    admin: Connection, plan: Plan, asked: dict[str, Any]
) -> None:
    name = plan.name
    asked["servers"].pop()
    huge = admin.compute.create_flavor(name=f"{name}-huge", vcpus=1, ram=64, disk=1)
    admin.compute.create_flavor_extra_specs(huge, {"trait:HW_CPU_X86_SGX": "required"})
    try:
        asked["servers"][0]["flavor"] = f"{name}-huge"
        result = servers(**asked)
        assert result["msg"].startswith(f"Cannot create server '{name}-poplar': it could not be started: ")
        assert result["ports"]["created"] == [f"{name}-poplar-data", f"{name}-poplar-management"]
        assert result["changed"]
        asked["servers"][0]["flavor"] = name
        again = servers(**asked)
        assert again["servers"]["recreated"] == [f"{name}-poplar"], again
        assert admin.compute.find_server(f"{name}-poplar").status == "ACTIVE"
    finally:
        admin.compute.delete_flavor(huge)


def test_one_that_took_too_long_is_waited_for_the_next_time(
    admin: Connection, plan: Plan, asked: dict[str, Any]
) -> None:
    asked["servers"].pop()
    name = asked["servers"][0]["name"]
    late = servers(wait_timeout=0, **asked)
    assert late["msg"] == f"Cannot create server '{name}': it took longer than 0 seconds: look at it, and run again."
    assert late["changed"]
    again = servers(**asked)
    assert (again["changed"], again["servers"]["unchanged"]) == (False, [name]), again
    assert again["details"][name]["status"] == admin.compute.find_server(name).status == "ACTIVE"


def test_ports_of_a_server_go_with_it_whatever_the_task_names(
    admin: Connection, plan: Plan, asked: dict[str, Any]
) -> None:
    asked["servers"].pop()
    server = asked["servers"][0]
    # One of an order that failed, on a network that is not ours, and one of another server.
    own = {"project_id": admin.current_project_id, "tags": [f"openipu.pod={asked['pod']}"]}
    foreign = admin.network.create_network(name=f"{plan.name}-foreign", is_shared=False)
    names = [f"{server['name']}-old", f"{plan.name}-other-data"]
    try:
        for name in names:
            port = admin.network.create_port(network_id=foreign.id, name=name, project_id=own["project_id"])
            admin.network.set_tags(port, own["tags"])
        assert not servers(**asked).get("failed")
        del server["networks"][1]
        foretold = servers(state="absent", check=True, **asked)
        gone = servers(state="absent", **asked)
        assert (gone["ports"], gone["diff"]) == (foretold["ports"], foretold["diff"])
        assert sorted(gone["ports"]["removed"]) == [
            f"{server['name']}-{name}" for name in ("data", "management", "old")
        ]
        left = [port.name for port in admin.network.ports(**own) if port.name.startswith(plan.name)]
        assert left == names[1:]
        assert not servers(state="absent", **asked)["changed"]
    finally:
        for port in admin.network.ports(network_id=foreign.id):
            admin.network.delete_port(port)
        admin.network.delete_network(foreign)


def test_a_server_without_networks(admin: Connection, plan: Plan, asked: dict[str, Any]) -> None:
    asked["servers"].pop()
    del asked["servers"][0]["networks"]
    made = servers(**asked)
    assert not made.get("failed"), made
    assert made["details"][asked["servers"][0]["name"]]["addresses"] == {}
    assert not servers(**asked)["changed"]


def test_what_it_takes_is_told(admin: Connection, plan: Plan, asked: dict[str, Any]) -> None:
    server = asked["servers"][0]
    server["flavor"] = "none-such"
    assert "There is no flavor 'none-such' for this project" in servers(**asked)["msg"]
    server.update(flavor=plan.name, image="none-such")
    assert "There are 0 images named 'none-such'" in servers(**asked)["msg"]
    del server["image"]
    assert servers(**asked)["msg"] == f"Server '{server['name']}' cannot be started: a new server needs image."
    assert not [name for name in plan.ports(admin) if name.startswith(server["name"])]
    server["networks"][0]["network"] = "none-such"
    assert "names network 'none-such', which does not exist" in servers(**asked)["msg"]
    server["networks"][0]["network"] = f"{plan.name}-data"
    server["image"] = plan.name
