# SPDX-License-Identifier: GPL-3.0-or-later
"""Shares in a real Manila with a fake backend, and a service catalog without Manila."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.share.task import OPENSTACK_POD_SHARE
from openstack.connection import Connection

from tests.openstack.neutron_pod import run
from tests.openstack.role_runs import changed_tasks, run_role

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]


def run_shares(check: bool = False, **options: Any) -> dict[str, Any]:
    return run(task=OPENSTACK_POD_SHARE, check=check, diff=True, **options)


@pytest.fixture
def name(cloud: Path) -> Iterator[str]:
    """Name of a share type and of a share of tenant-a, which are removed afterwards."""
    created = f"t{uuid.uuid4().hex[:6]}"
    yield created
    deleted = run_shares(cloud="tenant-a", state="absent", shares=[{"name": created}])
    assert not deleted.get("failed"), deleted
    deleted = run_shares(state="absent", share_types=[{"name": created}])
    assert not deleted.get("failed"), deleted


@pytest.fixture
def variables(name: str) -> dict[str, Any]:
    """Variables of the role."""
    return {
        "openstack_shares_types": [
            {
                "name": name,
                "public": False,
                "projects": ["tenant-a"],
                "extra_specs": {"share_backend_name": "appliance", "snapshot_support": True},
            }
        ],
        "openstack_shares_tenant_connection": {"cloud": "tenant-a"},
        "openstack_shares_list": [
            {
                "name": name,
                "protocol": "NFS",
                "type": name,
                "size": 2,
                "access": [{"to": "10.1.6.0/24"}, {"to": "10.1.7.9", "level": "ro"}],
            }
        ],
    }


def test_the_role_creates_shares_and_is_idempotent(
    connect: Callable[[str], Connection], admin: Connection, name: str, variables: dict[str, Any], tmp_path: Path
) -> None:
    def existing_shares() -> list[Any]:
        return [share for share in connect("tenant-a").shared_file_system.shares() if share.name == name]

    assert changed_tasks(tmp_path, "openstack_shares", "--check", **variables) == 2
    assert existing_shares() == []
    assert changed_tasks(tmp_path, "openstack_shares", **variables) == 2
    assert changed_tasks(tmp_path, "openstack_shares", **variables) == 0
    assert changed_tasks(tmp_path, "openstack_shares", "--check", **variables) == 0
    (share,) = existing_shares()
    assert (share.status, share.size, share.share_protocol) == ("available", 2, "NFS")
    rules = connect("tenant-a").shared_file_system.access_rules(share)
    actual = {(rule.access_to, rule.access_level, rule.state) for rule in rules}
    assert actual == {("10.1.6.0/24", "rw", "active"), ("10.1.7.9", "ro", "active")}
    # Only tenant-a has access to the type.
    for tenant, visible in (("tenant-a", True), ("tenant-b", False)):
        types = connect(tenant).shared_file_system.get("/types", microversion="2.50").json()["share_types"]
        assert (name in [share_type["name"] for share_type in types]) == visible


def test_differences_are_updated(name: str, variables: dict[str, Any]) -> None:
    (share_type,), (share,) = variables["openstack_shares_types"], variables["openstack_shares_list"]
    assert not run_shares(share_types=[share_type]).get("failed")
    created = run_shares(cloud="tenant-a", shares=[share])
    assert created["shares"]["created"] == [name], created
    assert created["details"][name]["status"] == "available"
    assert created["details"][name]["exports"]
    assert created["ids"]["shares"] == {name: created["details"][name]["id"]}
    assert list(created["ids"]["access_rules"]) == created["access_rules"]["created"]
    share.update(size=3, description="datasets", access=[{"to": "10.1.6.0/24", "level": "ro"}])
    predicted = run_shares(check=True, cloud="tenant-a", shares=[share])
    changed = run_shares(cloud="tenant-a", shares=[share])
    assert not changed.get("failed"), changed
    assert changed["diff"] == predicted["diff"]
    assert changed["shares"]["updated"] == [name]
    assert changed["access_rules"]["recreated"] == [f"{name}/ip/10.1.6.0/24"]
    assert changed["access_rules"]["removed"] == [f"{name}/ip/10.1.7.9"]
    share_type.update(description="the appliance", extra_specs={"share_backend_name": "appliance"})
    assert run_shares(share_types=[share_type])["share_types"]["updated"] == [name]
    for second in (run_shares(cloud="tenant-a", shares=[share]), run_shares(share_types=[share_type])):
        assert not second["changed"], second
    # The data in the share would be lost.
    rejected = run_shares(cloud="tenant-a", shares=[{**share, "type": "another"}])
    assert rejected["msg"].startswith(
        f"Cannot change type of share '{name}' from {name} to another: the field is immutable"
    )


def test_an_administrator_removes_a_share_of_a_tenant(name: str, variables: dict[str, Any]) -> None:
    (share_type,), (share,) = variables["openstack_shares_types"], variables["openstack_shares_list"]
    assert not run_shares(share_types=[share_type]).get("failed")
    assert not run_shares(cloud="tenant-a", shares=[share]).get("failed")
    assert run_shares(check=True, project="tenant-a", shares=[share])["shares"]["unchanged"] == [name]
    rejected = run_shares(project="tenant-a", shares=[{**share, "size": 3}])
    assert rejected["msg"].startswith(f"Cannot create or change share '{name}': the credentials are not for project")
    removed = run_shares(project="tenant-a", shares=[{"name": name}], state="absent")
    assert removed["shares"]["removed"] == [name], removed
    assert not run_shares(project="tenant-a", shares=[{"name": name}], state="absent")["changed"]


def test_a_tenant_keeps_its_share_of_the_same_name(
    connect: Callable[[str], Connection], name: str, variables: dict[str, Any]
) -> None:
    (share_type,), (share,) = variables["openstack_shares_types"], variables["openstack_shares_list"]
    assert not run_shares(share_types=[share_type]).get("failed")
    assert not run_shares(cloud="tenant-a", shares=[share]).get("failed")
    other = connect("tenant-b").current_project_id
    rejected = run_shares(cloud="tenant-a", project=other, shares=[{"name": name}], state="absent")
    assert rejected["msg"].startswith(f"Cannot read the shares of project '{other}': the credentials are for another")
    assert run_shares(cloud="tenant-a", shares=[share])["shares"]["unchanged"] == [name]


def test_a_failed_share_is_reported_and_recreated(name: str, variables: dict[str, Any]) -> None:
    (share_type,), (share,) = variables["openstack_shares_types"], variables["openstack_shares_list"]
    assert "a new share needs size and protocol." in run_shares(cloud="tenant-a", shares=[{"name": name}])["msg"]
    share_type["extra_specs"] = {"share_backend_name": "nowhere"}
    assert not run_shares(share_types=[share_type]).get("failed")
    failed = run_shares(cloud="tenant-a", shares=[share])
    assert failed["msg"].startswith(f"Cannot create share '{name}': it is in state error: "), failed
    assert "torage" in failed["msg"]  # the message of Manila about the scheduling
    share_type["extra_specs"] = {"share_backend_name": "appliance"}
    assert not run_shares(share_types=[share_type]).get("failed")
    second = run_shares(cloud="tenant-a", shares=[share])
    assert second["shares"]["recreated"] == [name], second
    assert len(second["access_rules"]["created"]) == 2
    message = run_shares(share_types=[{"name": name, "extra_specs": {"driver_handles_share_servers": "true"}}])["msg"]
    assert message.endswith("it has its own option. Use share_servers instead.")


def test_a_recreated_type_keeps_its_projects(
    connect: Callable[[str], Connection], name: str, variables: dict[str, Any]
) -> None:
    (share_type,) = variables["openstack_shares_types"]
    assert not run_shares(share_types=[share_type]).get("failed")
    del share_type["projects"]
    share_type["share_servers"] = True
    recreated = run_shares(share_types=[share_type], recreate=True)
    assert recreated["share_types"]["recreated"] == [name], recreated
    assert not run_shares(share_types=[share_type])["changed"]
    for tenant, visible in (("tenant-a", True), ("tenant-b", False)):
        types = connect(tenant).shared_file_system.get("/types", microversion="2.50").json()["share_types"]
        assert (name in [listed["name"] for listed in types]) == visible


def test_a_cloud_without_manila(admin: Connection, variables: dict[str, Any], tmp_path: Path) -> None:
    service = admin.identity.find_service("manila", ignore_missing=False)
    admin.identity.update_service(service, is_enabled=False)  # new tokens have no Manila
    try:
        output = run_role(tmp_path, "openstack_shares", **variables)
        assert "Cannot find Manila in the service catalog." in output
        assert "changed=0" in output
        output = run_role(tmp_path, "openstack_shares", fails=True, openstack_shares_required=True, **variables)
        assert "Cannot find Manila in the service catalog. Deploy Manila, or set without_manila to skip." in output
    finally:
        admin.identity.update_service(service, is_enabled=True)
