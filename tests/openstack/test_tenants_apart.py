# SPDX-License-Identifier: GPL-3.0-or-later
"""Two tenants of one POD: each gets to its own, and neither to the other's nor to BMC or GW, however it asks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from neutron_pod import Plan, look, run
from openstack.connection import Connection
from openstack.exceptions import ForbiddenException, NotFoundException

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # of the SDK's releases to come
]

DATA = {"tenant-a": "data", "tenant-b": "data-tenant-b"}


@pytest.fixture
def two(plan: Plan) -> Plan:
    """The POD of `plan`, of which tenant-b now has a part."""
    assert not run(**plan.options()).get("failed")
    plan.tenants.append({"project": "tenant-b", "vlan": plan.vlan + 4, "allocation": "upper"})
    assert not run(prune=True, **plan.options()).get("failed")
    return plan


def routed(admin: Connection, plan: Plan) -> dict[str, set[str]]:
    """By router of the POD, the networks that it leads to; Neutron answers."""
    names = {net.id: net.name.removeprefix(f"{plan.name}-") for net in admin.network.networks()}
    routers = [router for router in admin.network.routers() if router.name.startswith(plan.name)]
    return {
        router.name: {names[port.network_id] for port in admin.network.ports(device_id=router.id)}
        - {f"outside-{plan.vlan}"}
        for router in routers
    }


def test_no_router_leads_from_one_to_the_other(admin: Connection, two: Plan) -> None:
    common = [f"{two.name}-{name}" for name in ("storage", "management")]
    asked = [
        {"project": tenant, "cloud": tenant, "networks": [f"{two.name}-{data}", *common]}
        for tenant, data in DATA.items()
    ]
    found = look(tenants=asked)
    assert [each["reason"] for each in found["findings"] if each["network"].startswith(two.name)] == []
    assert routed(admin, two) == {
        two.name: {"data"},
        f"{two.name}-data-tenant-b": {"data-tenant-b"},
        f"{two.name}-management": {"management"},
    }
    assert not run(prune=True, **two.options())["changed"]
    # Who has the POD alone is routed to the management network again.
    two.tenants.pop()
    assert not run(prune=True, **two.options()).get("failed")
    assert routed(admin, two) == {two.name: {"data", "management"}}


@pytest.mark.parametrize("tenant", ["tenant-a", "tenant-b"])
def test_policy_refuses_bmc_and_gw(
    admin: Connection, two: Plan, connect: Callable[[str], Connection], tenant: str
) -> None:
    network, ports = two.network(admin, "bmc-gw"), two.ports(admin)
    own = connect(tenant).network
    other = next(two.network(admin, data) for name, data in DATA.items() if name != tenant)
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
    # What it may use is the provider's all the same.
    with pytest.raises(ForbiddenException):
        own.update_network(two.network(admin, DATA[tenant]).id, name="mine")
    for subnet in network.subnet_ids:
        router = own.create_router(name=f"{two.name}-{tenant}")
        try:
            with pytest.raises((NotFoundException, ForbiddenException)):
                own.add_interface_to_router(router, subnet_id=subnet)
        finally:
            own.delete_router(router)
