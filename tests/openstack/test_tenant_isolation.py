# SPDX-License-Identifier: GPL-3.0-or-later
"""Isolation of two tenants of one POD: no access to the networks of the other tenant, BMC or GW."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from openstack.connection import Connection
from openstack.exceptions import ForbiddenException, NotFoundException

from tests.openstack.neutron_pod import AccessLog, Plan, info, run

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]

DATA = {"tenant-a": "data", "tenant-b": "data-tenant-b"}
CONTROL = {"tenant-a": "control", "tenant-b": "control-tenant-b"}
STORAGE = {"tenant-a": "storage", "tenant-b": "storage-tenant-b"}


@pytest.fixture
def two_tenants(plan: Plan) -> Plan:
    """POD of `plan`, with an allocation for tenant-b."""
    assert not run(**plan.options()).get("failed")
    storage = {"vlan": plan.vlan + 5, "subnet": "10.1.7.0/24", "nfs_servers": ["10.1.7.9"]}
    plan.tenants.append({"project": "tenant-b", "vlan": plan.vlan + 4, "allocation": "upper", "storage": storage})
    assert not run(prune=True, **plan.options()).get("failed")
    return plan


def router_networks(admin: Connection, plan: Plan) -> dict[str, set[str]]:
    """Return the networks of each router of the POD, read from Neutron."""
    names = {net.id: net.name.removeprefix(f"{plan.name}-") for net in admin.network.networks()}
    routers = [router for router in admin.network.routers() if router.name.startswith(plan.name)]
    return {
        router.name: {names[port.network_id] for port in admin.network.ports(device_id=router.id)}
        - {f"outside-{plan.vlan}"}
        for router in routers
    }


def test_no_router_connects_the_networks_of_two_tenants(admin: Connection, two_tenants: Plan) -> None:
    tenants = [
        {
            "project": tenant,
            "cloud": tenant,
            "networks": [f"{two_tenants.name}-{kind[tenant]}" for kind in (DATA, CONTROL, STORAGE)],
        }
        for tenant in DATA
    ]
    result = info(tenants=tenants)
    assert [
        finding["reason"] for finding in result["findings"] if finding["network"].startswith(two_tenants.name)
    ] == []
    assert router_networks(admin, two_tenants) == {
        two_tenants.name: {"data", "control"},
        f"{two_tenants.name}-data-tenant-b": {"data-tenant-b", "control-tenant-b"},
        f"{two_tenants.name}-management": {"management"},
    }
    assert not run(prune=True, **two_tenants.options())["changed"]
    # The routers of the other tenant stay unchanged.
    two_tenants.tenants.pop()
    assert not run(prune=True, **two_tenants.options()).get("failed")
    assert router_networks(admin, two_tenants) == {
        two_tenants.name: {"data", "control"},
        f"{two_tenants.name}-management": {"management"},
    }


def test_a_network_of_two_tenants_is_a_leak(two_tenants: Plan) -> None:
    for name in ("storage", "control"):
        share = {"name": f"{two_tenants.name}-{name}", "project": "tenant-b"}
        assert not run(pod=two_tenants.name, config={"shares": [share]}).get("failed")
    networks = [f"{two_tenants.name}-{name}" for name in ("data", "control", "storage")]
    tenant = {"project": "tenant-a", "networks": networks}
    found = info(tenants=[tenant])["tenants"][0]["findings"]
    assert [(each["kind"], each["network"]) for each in found if each["network"] in networks] == [
        ("common", networks[1]),
        ("common", networks[2]),
    ]
    found = info(tenants=[{**tenant, "common_networks": networks[1:]}])["tenants"][0]["findings"]
    assert not [each for each in found if each["network"] in networks]


def test_three_tenants_have_a_router_each(admin: Connection, two_tenants: Plan, log: AccessLog) -> None:
    project = admin.identity.create_project(name=f"{two_tenants.name}-c")
    try:
        two_tenants.tenants.append({"project": project.name, "vlan": two_tenants.vlan + 6, "allocation": "third"})
        assert not run(prune=True, **two_tenants.options()).get("failed")
        routers = {
            two_tenants.name: {"data", "control"},
            **{
                f"{two_tenants.name}-data-{tenant}": {f"data-{tenant}", f"control-{tenant}"}
                for tenant in ("tenant-b", project.name)
            },
        }
        assert router_networks(admin, two_tenants) == {**routers, f"{two_tenants.name}-management": {"management"}}
        with log.requests() as requests:
            assert not run(prune=True, **two_tenants.options())["changed"]
        assert {request.split()[0] for request in requests} == {"GET"}
        assert len(requests) <= 15
        two_tenants.tenants.pop()
        assert not run(prune=["shares"], **two_tenants.options()).get("failed")
    finally:
        admin.identity.delete_project(project)


@pytest.mark.parametrize("tenant", ["tenant-a", "tenant-b"])
def test_policy_rejects_access_to_bmc_gw_and_the_other_tenant(
    admin: Connection, two_tenants: Plan, connect: Callable[[str], Connection], tenant: str
) -> None:
    network, ports = two_tenants.network(admin, "bmc-gw"), two_tenants.ports(admin)
    own = connect(tenant).network
    other = next(two_tenants.network(admin, data) for name, data in DATA.items() if name != tenant)
    for hidden in (network, other):
        with pytest.raises(NotFoundException):
            own.get_network(hidden.id)
        with pytest.raises((NotFoundException, ForbiddenException)):
            own.create_port(network_id=hidden.id)
        for subnet in hidden.subnet_ids:
            with pytest.raises(NotFoundException):
                own.get_subnet(subnet)
    for name in ("ipum01-bmc", "ipum01-gw", "ipum03-bmc", "ipum03-gw", "ipum01-rnic", "ipum03-rnic"):
        with pytest.raises(NotFoundException):
            own.get_port(ports[name].id)
        with pytest.raises((NotFoundException, ForbiddenException)):
            own.delete_port(ports[name].id, ignore_missing=False)
    # A shared network still belongs to the provider.
    with pytest.raises(ForbiddenException):
        own.update_network(two_tenants.network(admin, DATA[tenant]).id, name="mine")
    for subnet in network.subnet_ids:
        router = own.create_router(name=f"{two_tenants.name}-{tenant}")
        try:
            with pytest.raises((NotFoundException, ForbiddenException)):
                own.add_interface_to_router(router, subnet_id=subnet)
        finally:
            own.delete_router(router)
