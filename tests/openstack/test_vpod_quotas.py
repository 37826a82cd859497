# SPDX-License-Identifier: GPL-3.0-or-later
"""Orders of vPODs beyond the quotas of OpenStack: one message before the first write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from openstack.connection import Connection as Cloud

from tests.integration.bringup.own_twin import OwnTwin
from tests.openstack.neutron_pod import AccessLog
from tests.openstack.vpod_order import partitions, servers

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]


@contextmanager
def quota(admin: Cloud, project: str, name: str, limit: int) -> Iterator[None]:
    """Set a quota of a project. Neutron rejects a limit below the use, so its limit is the use."""
    id = admin.identity.find_project(project, ignore_missing=False).id
    services = {"ports": admin.network, "rbac_policies": admin.network, "gigabytes": admin.shared_file_system}
    service = services.get(name, admin.compute)
    if service is admin.network:
        before = admin.network.get_quota(id, details=True)[name]
        admin.network.update_quota(id, **{name: before["used"]})
        try:
            yield
        finally:
            admin.network.update_quota(id, **{name: before["limit"]})
        return
    path = f"/quota-sets/{id}" if service is admin.shared_file_system else f"/os-quota-sets/{id}"
    microversion = "2.50" if service is admin.shared_file_system else None

    def write(value: int) -> None:
        response = service.put(path, json={"quota_set": {name: value}}, microversion=microversion)
        assert response.status_code == 200, response.text

    before = service.get(path, microversion=microversion).json()["quota_set"][name]
    write(limit)
    try:
        yield
    finally:
        write(before)


def tags(admin: Cloud, project: str) -> list[str]:
    return list(admin.identity.find_project(project, ignore_missing=False).tags)


@pytest.fixture
def private_flavor(admin: Cloud, order: dict[str, Any]) -> Iterator[str]:
    """Flavor for tenant-a only, as in the documentation of the role openstack_flavors."""
    flavor = admin.compute.create_flavor(
        name=f"{order['vpod_name']}-private", vcpus=1, ram=64, disk=1, **{"os-flavor-access:is_public": False}
    )
    admin.compute.flavor_add_tenant_access(flavor, admin.identity.find_project("tenant-a", ignore_missing=False).id)
    yield flavor.name
    admin.compute.delete_flavor(flavor)


# Project, quota, its limit in other services than Neutron, and the message.
QUOTAS = [
    ("tenant-a", "cores", 0, "Cannot start server '{vpod}-poplar': it needs 1 vCPU, the quota of the project is 0"),
    ("admin", "instances", 0, "Cannot start server '{vpod}-controller': the quota of the project is 0 servers"),
    ("tenant-a", "ports", 0, "Cannot create 3 more ports: the quota of the project is 0, and 0 are used."),
    ("admin", "rbac_policies", 0, "more shares (RBAC policies): the quota of the project is "),
    ("tenant-a", "gigabytes", 1, "Cannot provide share '{vpod}': it needs 2 GB more; the quota of the project is 1"),
]


def test_an_order_beyond_a_quota_writes_nothing(
    admin: Cloud,
    twin: OwnTwin,
    order: dict[str, Any],
    play: Callable[..., Any],
    log: AccessLog,
    private_flavor: str,
) -> None:
    before = tags(admin, "tenant-a")
    cases = [(order["vpod_flavor"], *case) for case in QUOTAS] + [(private_flavor, *QUOTAS[0])]
    for flavor, project, name, limit, message in cases:  # one order, since its networks take time
        with quota(admin, project, name, limit), log.no_writes():
            rejected = play("vpod_create.yml", check=False, vpod_share_size=2, vpod_flavor=flavor)
        output = " ".join(rejected.stdout.split())
        assert message.format(vpod=order["vpod_name"]) in output
        assert output.count("Task failed: ") == 1
        assert "Error while evaluating" not in output
        assert (partitions(twin), servers(admin, order), tags(admin, "tenant-a")) == ({}, {}, before)


def test_an_order_with_a_missing_image_or_flavor_writes_nothing(
    admin: Cloud, twin: OwnTwin, order: dict[str, Any], play: Callable[..., Any], log: AccessLog
) -> None:
    before = tags(admin, "tenant-a")
    for variable, kind, server in (
        ("vpod_flavor", "flavor", "poplar"),
        ("vpod_image", "image", "poplar"),
        ("vpod_controller_flavor", "flavor", "controller"),
        ("vpod_controller_image", "image", "controller"),
    ):
        with log.no_writes():
            rejected = play("vpod_create.yml", check=False, **{variable: "none-such"})
        message = f"Cannot use {kind} 'none-such' for server '{order['vpod_name']}-{server}': "
        assert message in " ".join(rejected.stdout.split())
        assert (partitions(twin), servers(admin, order), tags(admin, "tenant-a")) == ({}, {}, before)
    # In check mode, an earlier playbook of the same run may create them.
    play("vpod_create.yml", "--check", vpod_image="none-such", vpod_flavor="none-such")
