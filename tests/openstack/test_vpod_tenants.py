# SPDX-License-Identifier: GPL-3.0-or-later
"""vPODs of several tenants and of a missing one: the objects of other tenants are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.tenant.task import OPENSTACK_POD_TENANT
from openstack.connection import Connection as Cloud

from tests.integration.bringup.own_twin import OwnTwin
from tests.integration.cli.cli_support import Cli
from tests.openstack.neutron_pod import Plan, run
from tests.openstack.vpod_order import inventory_vars, partitions, servers

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]

Play = Callable[..., Any]


@pytest.fixture
def vipu(twin: OwnTwin, tmp_path: Path) -> Cli:
    return Cli(tmp_path, f"{twin.controller}:8090")


def allocations(vipu: Cli) -> list[str]:
    return [allocation["id"] for allocation in vipu.json("vipu-admin list allocations")]


def shared_with(admin: Cloud, plan: Plan, project: Any) -> set[str]:
    """Return the networks of the POD that a project may use."""
    names = {net.id: net.name for net in admin.network.networks() if net.name.startswith(plan.name)}
    policies = admin.network.rbac_policies(object_type="network", target_project_id=project.id)
    return {names[policy.object_id].removeprefix(f"{plan.name}-") for policy in policies if policy.object_id in names}


def output(result: Any) -> str:
    return " ".join((result.stdout + result.stderr).split())


@pytest.fixture
def team(admin: Cloud, plan: Plan) -> Iterator[Any]:
    """Project whose name ends like a network of the POD that tenants have no access to."""
    created = admin.identity.create_project(name=f"{plan.name}-gw")
    yield created
    admin.identity.delete_project(created)


@pytest.fixture
def with_own_network(plan: Plan, order: dict[str, Any], team: Any, vipu: Cli) -> Iterator[dict[str, Any]]:
    """Order of the team, which has its own data network with machines."""
    plan.tenants = [{"project": team.name, "vlan": plan.vlan + 4, "allocation": "upper"}]
    assert not run(prune=True, **plan.options()).get("failed")
    vipu.out("vipu-admin create allocation upper --cluster cl0 --size 2")
    order.update(inventory_vars(plan), vpod_tenant=team.name, vpod_ipus=8)
    yield order
    vipu.out("vipu-admin remove allocation upper")


def test_a_tenant_with_its_own_data_network(
    admin: Cloud, plan: Plan, with_own_network: dict[str, Any], play: Play, vipu: Cli, team: Any
) -> None:
    name = with_own_network["vpod_name"]
    # Its allocation exists, so the run needs no cluster for a new one.
    play("vpod_create.yml", vipu_pod_clusters="{{ undef('the clusters of the POD are rendered') }}")
    ports, networks = plan.ports(admin), {net.id: net.name for net in admin.network.networks()}
    network_of = {
        port: networks[port_details.network_id].removeprefix(f"{plan.name}-") for port, port_details in ports.items()
    }
    assert {port: net for port, net in network_of.items() if port.startswith(name)} == {
        f"{name}-poplar-data": f"data-{team.name}",
        f"{name}-poplar-control": f"control-{team.name}",
        f"{name}-controller-control": f"control-{team.name}",
        f"{name}-controller-{plan.name}-bmc-gw": "bmc-gw",
    }
    # Its machines are those with RNICs in that network.
    assert allocations(vipu) == ["upper"]
    assert [partition["allocation"] for partition in vipu.json("vipu-admin list partitions")] == ["upper"]
    # The controller is open, so another tenant could change the partitions of this one.
    rejected = play("vpod_create.yml", "--check", check=False, vpod_name=f"{name}2", vpod_tenant="tenant-a")
    assert f"on an open V-IPU controller: {team.name} also use this POD. Start the controller with --secure" in output(
        rejected
    )
    play("vpod_destroy.yml")
    assert (allocations(vipu), servers(admin, with_own_network)) == (["upper"], {})
    assert shared_with(admin, plan, team) == {f"{net}-{team.name}" for net in ("control", "data")}  # shared by pod.yml


def test_a_missing_tenant(admin: Cloud, order: dict[str, Any], play: Play, vipu: Cli, twin: OwnTwin) -> None:
    rejected = play("vpod_create.yml", check=False, vpod_tenant="nowhere")
    assert "Cannot find project 'nowhere'. Create it first, or correct the name." in output(rejected)
    assert allocations(vipu) == []
    # The objects of a project that was removed can be destroyed.
    name = order["vpod_name"]
    vipu.out(f"vipu-admin create allocation {name} --cluster cl0 --size 1")
    vipu.out(f"vipu-admin create partition {name} --size 4 --allocation {name}")
    rejected = play("vpod_destroy.yml", check=False, vpod_tenant="nowhere")
    assert "To destroy the vPOD of a removed project, set vpod_orphaned." in output(rejected)
    assert allocations(vipu) == [name]
    play("vpod_destroy.yml", vpod_tenant="nowhere", vpod_orphaned=True)
    assert (allocations(vipu), partitions(twin)) == ([], {})


@pytest.fixture
def namesake(admin: Cloud, plan: Plan) -> Iterator[Any]:
    """Project of another domain with the name of the project of the tenant."""
    domain = admin.identity.create_domain(name=f"{plan.name}-domain")
    created = admin.identity.create_project(name="tenant-a", domain_id=domain.id)
    yield created
    admin.identity.delete_project(created, ignore_missing=True)
    admin.identity.update_domain(domain, is_enabled=False)
    admin.identity.delete_domain(domain)


def test_an_order_of_another_project_of_the_same_name_changes_nothing(
    admin: Cloud, order: dict[str, Any], play: Play, vipu: Cli, namesake: Any
) -> None:
    name, project = order["vpod_name"], admin.identity.find_project("tenant-a", domain_id="default")

    def rejected(playbook: str, id: str) -> str:
        result = play(playbook, check=False, vpod_tenant_id=id)
        assert result.returncode != 0
        assert (allocations(vipu), servers(admin, order)) == ([], {})
        assert [admin.identity.get_project(each.id).tags for each in (project, namesake)] == before
        return output(result)

    before = [list(each.tags) for each in (project, namesake)]
    for playbook in ("vpod_create.yml", "vpod_destroy.yml"):
        for id in (project.id, namesake.id):
            assert "Cannot select project 'tenant-a': 2 projects have this name." in rejected(playbook, id)
    # A new project may have the name of a removed one.
    removed = namesake.id
    admin.identity.delete_project(namesake)
    namesake = project
    for playbook in ("vpod_create.yml", "vpod_destroy.yml"):
        message = rejected(playbook, removed)
        assert f"Cannot use project 'tenant-a' for vPOD '{name}': the order is for the project with the ID" in message
        assert f"ID {removed}, and this one has {project.id}. Nothing was changed." in message
    for id in (project.id, ""):  # AWX passes the empty answer of an optional question
        play("vpod_create.yml", "--check", vpod_tenant_id=id)


def test_objects_of_others_with_the_same_name_are_kept(
    order: dict[str, Any], play: Play, vipu: Cli, twin: OwnTwin
) -> None:
    name = order["vpod_name"]
    vipu.out(f"vipu-admin create allocation {name} --cluster cl0 --size 4")
    vipu.out(f"vipu-admin create partition {name} --size 16 --allocation {name}")
    before = partitions(twin)
    for playbook in ("vpod_create.yml", "vpod_destroy.yml"):
        rejected = output(play(playbook, check=False))
        assert f"allocation {name} and partition {name} of others exist" in rejected
    assert (allocations(vipu), partitions(twin)) == ([name], before)
    vipu.out(f"vipu-admin remove partition {name}")
    vipu.out(f"vipu-admin remove allocation {name}")


def test_the_second_tenant_of_the_data_network_is_rejected(
    admin: Cloud, plan: Plan, order: dict[str, Any], play: Play, vipu: Cli, team: Any
) -> None:
    """The other tenant shared the network after this run read the shares."""
    tenant = admin.identity.find_project("tenant-a")
    share = {"name": f"{plan.name}-data", "project": team.name}
    assert not run(pod=plan.name, config={"shares": [share]}).get("failed")
    vipu.out(f"vipu-admin create allocation {order['vpod_name']} --cluster cl0 --size 4")
    rejected = play("vpod_create.yml", "--start-at-task", "Share networks with the tenant", check=False)
    assert f"Cannot use network '{plan.name}-data': a concurrent run shared it with {team.name}." in output(rejected)
    assert (shared_with(admin, plan, tenant), shared_with(admin, plan, team)) == (set(), {"data"})
    assert allocations(vipu) == []
    # Destruction keeps the shares of others.
    play("vpod_destroy.yml")
    assert shared_with(admin, plan, team) == {"data"}


def test_remaining_shares_are_reported_and_those_of_other_vpods_are_kept(
    admin: Cloud, plan: Plan, order: dict[str, Any], play: Play
) -> None:
    tenant = admin.identity.find_project("tenant-a")
    # The final check reports a network that the tenant may not reach.
    secret = plan.network(admin, "bmc-gw")
    leak = admin.network.create_rbac_policy(
        object_type="network", object_id=secret.id, action="access_as_shared", target_project_id=tenant.id
    )
    try:
        rejected = play("vpod_create.yml", check=False, vpod_controller_vm=False)
    finally:
        admin.network.delete_rbac_policy(leak)
    assert f"can create ports on network '{secret.name}'. Remove the share of the network." in output(rejected)
    tenant_port = admin.network.create_port(network_id=plan.network(admin, "data").id, project_id=tenant.id, name="own")
    try:
        # Another vPOD needs the shares, so they stay.
        other = {"pod": f"{order['vpod_name']}2", "project": "tenant-a"}
        assert not run(task=OPENSTACK_POD_TENANT, **other).get("failed")
        play("vpod_destroy.yml")
        assert shared_with(admin, plan, tenant) == {"data", "control", "storage"}
        # The last one releases everything except a share in use, and reports that.
        assert not run(task=OPENSTACK_POD_TENANT, state="absent", **other).get("failed")
        failed = play("vpod_destroy.yml", check=False)
        assert failed.returncode != 0
        assert f"network/{plan.name}-data/tenant-a" in output(failed)
    finally:
        admin.network.delete_port(tenant_port)
    play("vpod_destroy.yml")
    assert shared_with(admin, plan, tenant) == set()
