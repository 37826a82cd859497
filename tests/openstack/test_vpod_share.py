# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared file system of a vPOD in a real Manila: mounted by the Poplar VM, kept or deleted with the vPOD."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from ansible_collections.openipu.pod.plugins.module_utils.openstack.share.task import OPENSTACK_POD_SHARE
from openstack.connection import Connection as Cloud

from tests.integration.bringup.own_twin import changed
from tests.openstack.neutron_pod import Plan, info, run
from tests.openstack.vpod_order import roles, servers

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]


@pytest.fixture
def with_share(plan: Plan, order: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Order with a share of an own type."""
    kind = {"share_types": [{"name": plan.name, "extra_specs": {"share_backend_name": "appliance"}}]}
    assert not run(task=OPENSTACK_POD_SHARE, **kind).get("failed")
    order.update(vpod_share_size=1, vpod_share_type=plan.name, vpod_controller_vm=False)
    yield order
    shares = [{"name": order["vpod_name"]}]
    assert not run(task=OPENSTACK_POD_SHARE, cloud="tenant-a", state="absent", shares=shares).get("failed")
    assert not run(task=OPENSTACK_POD_SHARE, state="absent", **kind).get("failed")


def test_a_share_is_mounted_and_kept_or_deleted(
    admin: Cloud,
    with_share: dict[str, Any],
    play: Callable[..., Any],
    connect: Callable[[str], Cloud],
    flavor_without_host: str,
) -> None:
    name, manila = with_share["vpod_name"], connect("tenant-a").shared_file_system

    def shares() -> list[Any]:
        return [share for share in manila.shares() if share.name == name]

    def rules(share: Any) -> list[tuple[str, str, str]]:
        return [(rule.access_to, rule.access_level, rule.state) for rule in manila.access_rules(share)]

    play("vpod_create.yml", "--check")
    assert shares() == []
    play("vpod_create.yml")
    (share,) = shares()
    assert (share.status, share.size, share.share_protocol) == ("available", 1, "NFS")
    subnet = with_share["pod_openstack_tenants"]["*"]["storage"]["subnet"]
    assert rules(share) == [(subnet, "rw", "active")]
    user_data = yaml.safe_load(base64.b64decode(servers(admin, with_share)[f"{name}-poplar"].user_data))
    (mount,) = user_data["mounts"]
    exports = {location.path for location in manila.export_locations(share)}
    assert mount[0] in exports
    assert mount[1:4] == [f"/mnt/{name}", "nfs", "defaults,_netdev,nofail"]
    assert user_data["packages"] == ["nfs-common"]
    assert user_data["runcmd"] == [["sh", "-c", 'mountpoint --quiet "$0" || mount "$0"', f"/mnt/{name}"]]
    assert roles(admin, "tenant-a") == []
    assert changed(play("vpod_create.yml")) == 0

    play("vpod_destroy.yml", "--check")
    assert rules(share) == [(subnet, "rw", "active")]
    # The next tenant of the storage network has the same addresses.
    play("vpod_destroy.yml")
    assert [kept.id for kept in shares()] == [share.id]
    assert rules(share) == []
    # Another order uses the share with its data. Its rollback keeps it.
    play("vpod_create.yml", check=False, vpod_flavor=flavor_without_host)
    assert rules(share) == [(subnet, "rw", "active")]
    play("vpod_rollback.yml", check=False, vpod_is_new=True, vpod_share_is_new=False)
    assert [kept.id for kept in shares()] == [share.id]
    assert rules(share) == []
    # Without a record, the share may be one of the tenant.
    assert changed(play("vpod_destroy.yml", vpod_share_delete=True)) == 0
    assert [kept.id for kept in shares()] == [share.id]
    play("vpod_create.yml")
    assert [kept.id for kept in shares()] == [share.id]
    assert rules(share) == [(subnet, "rw", "active")]
    play("vpod_destroy.yml", vpod_share_delete=True)
    assert shares() == []
    assert changed(play("vpod_destroy.yml", vpod_share_delete=True)) == 0


def test_an_orphaned_share_is_deleted(with_share: dict[str, Any], play: Callable[..., Any]) -> None:
    name = with_share["vpod_name"]
    share = {"name": name, "protocol": "NFS", "type": with_share["vpod_share_type"], "size": 1}
    made = run(task=OPENSTACK_POD_SHARE, cloud="tenant-a", shares=[share])
    assert made["shares"]["created"] == [name], made
    play("vpod_destroy.yml", vpod_share_delete=True, vpod_orphaned=True)
    remaining = run(task=OPENSTACK_POD_SHARE, cloud="tenant-a", state="absent", check=True, shares=[{"name": name}])
    assert not remaining["changed"]


def test_access_rules_for_two_tenants_are_leaks(plan: Plan, with_share: dict[str, Any]) -> None:
    name, storage = with_share["vpod_name"], f"{plan.name}-storage"
    subnet = with_share["pod_openstack_tenants"]["*"]["storage"]["subnet"]
    share = {"name": name, "protocol": "NFS", "type": with_share["vpod_share_type"], "size": 1}

    def allow(*addresses: str) -> None:
        access = [{"to": address} for address in addresses]
        made = run(task=OPENSTACK_POD_SHARE, cloud="tenant-a", shares=[{**share, "access": access}])
        assert not made.get("failed"), made

    def leaks(tenant: str) -> list[str]:
        assert not run(pod=plan.name, config={"shares": [{"name": storage, "project": tenant}]}).get("failed")
        found = info(tenants=[{"project": tenant, "networks": [storage]}])["findings"]
        return [each["kind"] for each in found if each.get("share") == name]

    allow(subnet)
    assert leaks("tenant-a") == []
    assert leaks("tenant-b") == ["mountable"]
    allow()
    assert leaks("tenant-b") == []
    allow(subnet, "10.1.3.0/24")  # the management network
    assert leaks("tenant-a") == ["exposed"]
