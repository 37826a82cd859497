# SPDX-License-Identifier: GPL-3.0-or-later
"""Tags of PODs and granted roles of a project in a real Keystone."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.tenant.task import OPENSTACK_POD_TENANT
from openstack.connection import Connection

from tests.openstack.neutron_pod import run

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]


@pytest.fixture
def project(admin: Connection) -> Iterator[Any]:
    created = admin.identity.create_project(name=f"team-{uuid.uuid4().hex[:6]}")
    yield created
    admin.identity.delete_project(created)


def run_tenant(project: Any, pod: str = "v1", **options: Any) -> dict[str, Any]:
    result = run(task=OPENSTACK_POD_TENANT, project=project.name, pod=pod, **options)
    assert not result.get("failed"), result
    return result


def tags(admin: Connection, project: Any) -> list[str]:
    return sorted(admin.identity.get_project(project.id).tags)


def roles(admin: Connection, project: Any) -> list[str]:
    """Return the roles of the user of the credentials."""
    query = {"user_id": admin.current_user_id, "scope_project_id": project.id}
    names = {role.id: role.name for role in admin.identity.roles()}
    return sorted(names[assignment.role["id"]] for assignment in admin.identity.role_assignments(**query))


def test_tags_of_other_pods_are_reported(admin: Connection, project: Any) -> None:
    assert run_tenant(project, check=True)["changed"]
    assert tags(admin, project) == []
    assert run_tenant(project)["tags"]["created"] == ["v1"]
    again = run_tenant(project)
    assert (again["changed"], again["ids"]) == (False, {"projects": {project.name: project.id}})
    assert run_tenant(project, "v2")["other_pods"] == ["v1"]
    assert tags(admin, project) == ["openipu.pod=v1", "openipu.pod=v2"]
    assert run_tenant(project, state="absent")["other_pods"] == ["v2"]
    assert not run_tenant(project, state="absent")["changed"]
    assert tags(admin, project) == ["openipu.pod=v2"]


def test_created_vipu_users_are_recorded(admin: Connection, project: Any) -> None:
    assert run_tenant(project, vipu_users=["alice", "bob"])["vipu_users"]["created"] == ["alice", "bob"]
    assert not run_tenant(project)["changed"]
    assert run_tenant(project, vipu_users=["bob"])["vipu_users"]["removed"] == ["alice"]
    assert run_tenant(project, "v2")["other_vipu_users"] == ["bob"]
    assert tags(admin, project) == ["openipu.pod=v1", "openipu.pod=v2", "openipu.vipu_user=bob:v1"]
    assert run_tenant(project, state="absent")["vipu_users"]["removed"] == ["bob"]
    assert tags(admin, project) == ["openipu.pod=v2"]


def test_a_role_is_lent_and_revoked(admin: Connection, project: Any) -> None:
    assert run_tenant(project, check=True, roles=["admin"])["roles"]["created"] == ["admin"]
    assert roles(admin, project) == []
    assert run_tenant(project, roles=["admin"])["roles"]["created"] == ["admin"]
    assert roles(admin, project) == ["admin"]
    assert not run_tenant(project, roles=["admin"])["changed"]
    assert not run_tenant(project)["changed"]
    assert run_tenant(project, roles=[])["roles"]["removed"] == ["admin"]
    assert (roles(admin, project), tags(admin, project)) == ([], ["openipu.pod=v1"])
    # An interrupted run is completed by the next one.
    run_tenant(project, roles=["admin"])
    admin.identity.unassign_project_role_from_user(project, admin.current_user_id, admin.identity.find_role("admin"))
    assert run_tenant(project, roles=["admin"])["roles"]["updated"] == ["admin"]
    assert run_tenant(project, state="absent")["roles"]["removed"] == ["admin"]
    assert (roles(admin, project), tags(admin, project)) == ([], [])


def test_a_role_lent_for_another_pod_is_kept(admin: Connection, project: Any) -> None:
    run_tenant(project, "v1", roles=["admin"])
    assert run_tenant(project, "v2", roles=["admin"])["roles"]["updated"] == ["admin"]
    run_tenant(project, "v1", state="absent")
    assert roles(admin, project) == ["admin"]
    run_tenant(project, "v2", state="absent")
    assert roles(admin, project) == []


def test_a_previously_assigned_role_is_kept(admin: Connection, project: Any) -> None:
    admin.identity.assign_project_role_to_user(project, admin.current_user_id, admin.identity.find_role("admin"))
    assert run_tenant(project, roles=["admin"])["roles"]["unchanged"] == ["admin"]
    assert tags(admin, project) == ["openipu.pod=v1"]
    assert run_tenant(project, roles=[])["roles"]["removed"] == []
    run_tenant(project, state="absent")
    assert roles(admin, project) == ["admin"]


def test_missing_projects_and_roles_are_reported(cloud: object) -> None:
    deleted = run(task=OPENSTACK_POD_TENANT, project="nowhere", pod="v1", state="absent")
    assert (deleted["changed"], deleted["other_pods"]) == (False, [])
    result = run(task=OPENSTACK_POD_TENANT, project="nowhere", pod="v1")
    assert result["msg"] == "Cannot find project 'nowhere'. Create it first, or correct the name."
    result = run(task=OPENSTACK_POD_TENANT, project="tenant-a", pod="v1", roles=["none-such"])
    assert result["msg"].startswith("Cannot find role 'none-such'. Correct the name")
