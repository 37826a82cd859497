# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures for orders of vPODs on a real OpenStack and the controller of a twin."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load
from ansible_collections.openipu.pod.plugins.module_utils.pod.openstack_networks import networks, tenants
from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import Client, Connection
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import virmgrpc
from openstack.connection import Connection as Cloud

from tests.integration.bringup import own_twin
from tests.integration.bringup.own_twin import OwnTwin
from tests.openstack.neutron_pod import Plan, run
from tools.openstack.site import HOSTS


@pytest.fixture(scope="session")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnTwin]:
    """Twin of a rack with a cluster without allocations."""
    created = own_twin.make(tmp_path_factory.mktemp("vpod"))
    pod = yaml.safe_load(created.inventory.read_text())
    for name in ("allocations", "partitions"):
        del pod[name]
    created.inventory.write_text(yaml.safe_dump(pod))
    created.twin("up")
    created.playbook("vipu_objects.yml")
    yield created
    created.twin("down")


def inventory_vars(plan: Plan) -> dict[str, Any]:
    """Return the OpenStack variables of the inventory."""
    config = plan.options()["config"]
    model = load(str(plan.folder / "pod.yml"))
    assert model.cloud
    return {
        "pod_openstack_config": config,
        "pod_openstack_networks": networks(model),
        "pod_openstack_tenants": tenants(model, model.cloud),
    }


@pytest.fixture
def order(admin: Cloud, plan: Plan, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Order of 16 IPUs by tenant-a, with its image and flavor, which are removed afterwards."""
    plan.tenants = []
    assert not run(**plan.options()).get("failed")
    image = admin.create_image(plan.name, data=b"\0" * 1024, disk_format="raw", visibility="public", wait=True)
    flavor = admin.compute.create_flavor(name=plan.name, vcpus=1, ram=64, disk=1)
    yield {
        "pod_name": plan.name,
        **inventory_vars(plan),
        "openstack_connection": {"cloud": "openipu"},
        "vpod_name": f"{plan.name}v",
        "vpod_tenant": "tenant-a",
        "vpod_ipus": 16,
        "vpod_image": plan.name,
        "vpod_flavor": plan.name,
        "vpod_controller_flavor": plan.name,
        "vpod_controller_public_keys": ["ssh-ed25519 AAAA operator"],
        "vpod_controller_cloud_init": {"hostname": "control"},
        "vpod_poplar_server": HOSTS[0],
        "vpod_public_keys": ["ssh-ed25519 AAAA alice"],
    }
    admin.image.delete_image(image)
    admin.compute.delete_flavor(flavor)


@pytest.fixture
def flavor_without_host(admin: Cloud, order: dict[str, Any]) -> Iterator[str]:
    """Flavor that no host can serve. An order with it fails at its last step, the start of the Poplar VM."""
    flavor = admin.compute.create_flavor(name=f"{order['vpod_name']}-sgx", vcpus=1, ram=64, disk=1)
    admin.compute.create_flavor_extra_specs(flavor, {"trait:HW_CPU_X86_SGX": "required"})
    yield flavor.name
    admin.compute.delete_flavor(flavor)


@pytest.fixture
def play(twin: OwnTwin, order: dict[str, Any], tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Return a function that runs a playbook for the order. The vPOD is destroyed afterwards."""

    def play(name: str, *options: str, check: bool = True, **overrides: Any) -> Any:
        file = tmp_path / "order.json"
        file.write_text(json.dumps({**order, **overrides}))
        return twin.playbook(name, "-e", f"@{file}", *options, check=check, seconds=300)

    yield play
    play("vpod_destroy.yml")


def partitions(twin: OwnTwin) -> dict[str, int]:
    with Client(Connection(twin.controller)) as client:
        found = client.call(client.user.ListPartitions, virmgrpc.ListPartitionsRequest()).partitions
        return {partition.id: partition.ready_state for partition in found}


def roles(admin: Cloud, tenant: str) -> list[str]:
    """Return the roles of the provider in the project of the tenant."""
    project = admin.identity.find_project(tenant, ignore_missing=False)
    query = {"user_id": admin.current_user_id, "scope_project_id": project.id}
    return [assignment.role["id"] for assignment in admin.identity.role_assignments(**query)]


def servers(admin: Cloud, order: dict[str, Any]) -> dict[str, Any]:
    found = admin.compute.servers(all_projects=True)
    return {server.name: server for server in found if server.name.startswith(order["vpod_name"])}
