# SPDX-License-Identifier: GPL-3.0-or-later
"""vPODs of several tenants, and of none: each gets its own, and what is another's stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.tenant_task import OPENSTACK_POD_TENANT
from cli_support import Cli
from neutron_pod import Plan, run
from openstack.connection import Connection as Cloud
from own_twin import OwnTwin
from vpod_order import partitions, servers, told

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # of the SDK's releases to come
]

Play = Callable[..., Any]


@pytest.fixture
def vipu(twin: OwnTwin, tmp_path: Path) -> Cli:
    return Cli(tmp_path, f"{twin.controller}:8090")


def allocations(vipu: Cli) -> list[str]:
    return [found["id"] for found in vipu.json("vipu-admin list allocations")]


def shared_with(admin: Cloud, plan: Plan, project: Any) -> set[str]:
    """The networks of the POD that a project may use."""
    names = {net.id: net.name for net in admin.network.networks() if net.name.startswith(plan.name)}
    policies = admin.network.rbac_policies(object_type="network", target_project_id=project.id)
    return {names[policy.object_id].removeprefix(f"{plan.name}-") for policy in policies if policy.object_id in names}


def said(done: Any) -> str:
    return " ".join((done.stdout + done.stderr).split())


@pytest.fixture
def team(admin: Cloud, plan: Plan) -> Iterator[Any]:
    """A project whose name ends like a network of the POD that no tenant may see."""
    made = admin.identity.create_project(name=f"{plan.name}-gw")
    yield made
    admin.identity.delete_project(made)


@pytest.fixture
def with_own_network(plan: Plan, order: dict[str, Any], team: Any, vipu: Cli) -> Iterator[dict[str, Any]]:
    """The order of the team, which has a data network of its own and the machines in it."""
    plan.tenants = [{"project": team.name, "vlan": plan.vlan + 4, "allocation": "upper"}]
    assert not run(prune=True, **plan.options()).get("failed")
    vipu.out("vipu-admin create allocation upper --cluster cl0 --size 2")
    order.update(told(plan), vpod_tenant=team.name, vpod_ipus=8)
    yield order
    vipu.out("vipu-admin remove allocation upper")


def test_a_tenant_with_a_data_network_of_its_own(
    admin: Cloud, plan: Plan, with_own_network: dict[str, Any], play: Play, vipu: Cli, team: Any
) -> None:
    name = with_own_network["vpod_name"]
    play("vpod_create.yml")
    ports, networks = plan.ports(admin), {net.id: net.name for net in admin.network.networks()}
    where = {port: networks[found.network_id].removeprefix(f"{plan.name}-") for port, found in ports.items()}
    assert {port: net for port, net in where.items() if port.startswith(name)} == {
        f"{name}-poplar-data": f"data-{team.name}",
        f"{name}-poplar-management": "management",
        f"{name}-poplar-storage": "storage",
        f"{name}-controller-management": "management",
        f"{name}-controller-{plan.name}-bmc-gw": "bmc-gw",
    }
    # Its machines are those whose RNICs are in that network.
    assert allocations(vipu) == ["upper"]
    assert [found["allocation"] for found in vipu.json("vipu-admin list partitions")] == ["upper"]
    # The POD's own data network is another tenant's to have.
    assert "changed" in play("vpod_create.yml", "--check", vpod_name=f"{name}2", vpod_tenant="tenant-a").stdout
    play("vpod_destroy.yml")
    assert (allocations(vipu), servers(admin, with_own_network)) == (["upper"], {})
    assert shared_with(admin, plan, team) == {f"data-{team.name}", "management", "storage"}  # pod.yml says so


def test_a_tenant_that_there_is_not(admin: Cloud, order: dict[str, Any], play: Play, vipu: Cli, twin: OwnTwin) -> None:
    refused = play("vpod_create.yml", check=False, vpod_tenant="nowhere")
    assert "There is no project 'nowhere': make it first, or correct the name." in said(refused)
    assert allocations(vipu) == []
    # Nor is one that has gone since in the way of what it had.
    name = order["vpod_name"]
    vipu.out(f"vipu-admin create allocation {name} --cluster cl0 --size 1")
    vipu.out(f"vipu-admin create partition {name} --size 4 --allocation {name}")
    play("vpod_destroy.yml", vpod_tenant="nowhere")
    assert (allocations(vipu), partitions(twin)) == ([], {})


def test_who_comes_second_to_the_data_network_gives_way(
    admin: Cloud, plan: Plan, order: dict[str, Any], play: Play, vipu: Cli, team: Any
) -> None:
    """The other one shared it after this one looked."""
    tenant = admin.identity.find_project("tenant-a")
    share = {"name": f"{plan.name}-data", "project": team.name}
    assert not run(pod=plan.name, config={"shares": [share]}).get("failed")
    vipu.out(f"vipu-admin create allocation {order['vpod_name']} --cluster cl0 --size 4")
    refused = play("vpod_create.yml", "--start-at-task", "Let the tenant see its networks", check=False)
    assert f"Network {plan.name}-data was given to {team.name} at the same time" in said(refused)
    assert (shared_with(admin, plan, tenant), shared_with(admin, plan, team)) == (set(), {"data"})
    assert allocations(vipu) == []
    # And what is released takes nobody else's along.
    play("vpod_destroy.yml")
    assert shared_with(admin, plan, team) == {"data"}


def test_what_is_left_is_told_and_what_another_vpod_needs_stays(
    admin: Cloud, plan: Plan, order: dict[str, Any], play: Play
) -> None:
    tenant = admin.identity.find_project("tenant-a")
    # That the tenant gets to a network that it may not see comes out in the end.
    secret = plan.network(admin, "bmc-gw")
    leak = admin.network.create_rbac_policy(
        object_type="network", object_id=secret.id, action="access_as_shared", target_project_id=tenant.id
    )
    try:
        leaking = play("vpod_create.yml", check=False, vpod_controller_vm=False)
    finally:
        admin.network.delete_rbac_policy(leak)
    assert f"may make ports on network '{secret.name}': remove its share." in said(leaking)
    left = admin.network.create_port(network_id=plan.network(admin, "data").id, project_id=tenant.id, name="own")
    try:
        # Another vPOD has its share, and nothing of it is taken back.
        other = {"pod": f"{order['vpod_name']}2", "project": "tenant-a"}
        assert not run(task=OPENSTACK_POD_TENANT, **other).get("failed")
        play("vpod_destroy.yml")
        assert shared_with(admin, plan, tenant) == {"data", "management", "storage"}
        # The last one releases all, but for what somebody still holds on to, and says so.
        assert not run(task=OPENSTACK_POD_TENANT, state="absent", **other).get("failed")
        failed = play("vpod_destroy.yml", check=False)
        assert failed.returncode != 0
        assert f"network/{plan.name}-data/tenant-a" in said(failed)
    finally:
        admin.network.delete_port(left)
    play("vpod_destroy.yml")
    assert shared_with(admin, plan, tenant) == set()
