# SPDX-License-Identifier: GPL-3.0-or-later
"""Isolation of two tenants of one POD: no access to the networks of the other tenant, BMC or GW."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from openstack.connection import Connection
from openstack.exceptions import ForbiddenException, NotFoundException

from tests.openstack.neutron_pod import Plan, info, run

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]

DATA = {"tenant-a": "data", "tenant-b": "data-tenant-b"}


@pytest.fixture
def two_tenants(plan: Plan) -> Plan:
    """POD of `plan`, with an allocation for tenant-b."""
    assert not run(**plan.options()).get("failed")
    plan.tenants.append({"project": "tenant-b", "vlan": plan.vlan + 4, "allocation": "upper"})
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
    common = [f"{two_tenants.name}-{name}" for name in ("storage", "management")]
    tenants = [
        {"project": tenant, "cloud": tenant, "networks": [f"{two_tenants.name}-{data}", *common]}
        for tenant, data in DATA.items()
    ]
    result = info(tenants=tenants)
    assert [
        finding["reason"] for finding in result["findings"] if finding["network"].startswith(two_tenants.name)
    ] == []
    assert router_networks(admin, two_tenants) == {
        two_tenants.name: {"data"},
        f"{two_tenants.name}-data-tenant-b": {"data-tenant-b"},
        f"{two_tenants.name}-management": {"management"},
    }
    assert not run(prune=True, **two_tenants.options())["changed"]
    # A single tenant is routed to the management network again.
    two_tenants.tenants.pop()
    assert not run(prune=True, **two_tenants.options()).get("failed")
    assert router_networks(admin, two_tenants) == {two_tenants.name: {"data", "management"}}


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
