# SPDX-License-Identifier: GPL-3.0-or-later
"""What a project has, and roles that are lent there, noted in a real Keystone."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.tenant_task import OPENSTACK_POD_TENANT
from neutron_pod import run
from openstack.connection import Connection

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # of the SDK's releases to come
]


@pytest.fixture
def project(admin: Connection) -> Iterator[Any]:
    made = admin.identity.create_project(name=f"team-{uuid.uuid4().hex[:6]}")
    yield made
    admin.identity.delete_project(made)


def tenant(project: Any, pod: str = "v1", **options: Any) -> dict[str, Any]:
    result = run(task=OPENSTACK_POD_TENANT, project=project.name, pod=pod, **options)
    assert not result.get("failed"), result
    return result


def tags(admin: Connection, project: Any) -> list[str]:
    return sorted(admin.identity.get_project(project.id).tags)


def roles(admin: Connection, project: Any) -> list[str]:
    """Those of who asks."""
    query = {"user_id": admin.current_user_id, "scope_project_id": project.id}
    names = {role.id: role.name for role in admin.identity.roles()}
    return sorted(names[found.role["id"]] for found in admin.identity.role_assignments(**query))


def test_what_is_noted_is_told(admin: Connection, project: Any) -> None:
    assert tenant(project, check=True)["changed"]
    assert tags(admin, project) == []
    assert tenant(project)["notes"]["created"] == ["v1"]
    assert not tenant(project)["changed"]
    assert tenant(project, "v2")["others"] == ["v1"]
    assert tags(admin, project) == ["openipu.pod=v1", "openipu.pod=v2"]
    assert tenant(project, state="absent")["others"] == ["v2"]
    assert not tenant(project, state="absent")["changed"]
    assert tags(admin, project) == ["openipu.pod=v2"]


def test_a_role_is_lent_and_taken_back(admin: Connection, project: Any) -> None:
    assert tenant(project, check=True, roles=["admin"])["roles"]["created"] == ["admin"]
    assert roles(admin, project) == []
    assert tenant(project, roles=["admin"])["roles"]["created"] == ["admin"]
    assert roles(admin, project) == ["admin"]
    assert not tenant(project, roles=["admin"])["changed"]
    assert not tenant(project)["changed"]
    assert tenant(project, roles=[])["roles"]["removed"] == ["admin"]
    assert (roles(admin, project), tags(admin, project)) == ([], ["openipu.pod=v1"])
    # What was killed before it gave the role, or took it back, is mended by whoever comes next.
    tenant(project, roles=["admin"])
    admin.identity.unassign_project_role_from_user(project, admin.current_user_id, admin.identity.find_role("admin"))
    assert tenant(project, roles=["admin"])["roles"]["updated"] == ["admin"]
    assert tenant(project, state="absent")["roles"]["removed"] == ["admin"]
    assert (roles(admin, project), tags(admin, project)) == ([], [])


def test_a_role_that_is_needed_for_something_else_stays(admin: Connection, project: Any) -> None:
    tenant(project, "v1", roles=["admin"])
    assert tenant(project, "v2", roles=["admin"])["roles"]["updated"] == ["admin"]
    tenant(project, "v1", state="absent")
    assert roles(admin, project) == ["admin"]
    tenant(project, "v2", state="absent")
    assert roles(admin, project) == []


def test_a_role_that_was_there_before_stays(admin: Connection, project: Any) -> None:
    admin.identity.assign_project_role_to_user(project, admin.current_user_id, admin.identity.find_role("admin"))
    assert tenant(project, roles=["admin"])["roles"]["unchanged"] == ["admin"]
    assert tags(admin, project) == ["openipu.pod=v1"]
    assert tenant(project, roles=[])["roles"]["removed"] == []
    tenant(project, state="absent")
    assert roles(admin, project) == ["admin"]


def test_what_is_not_there(cloud: object) -> None:
    gone = run(task=OPENSTACK_POD_TENANT, project="nowhere", pod="v1", state="absent")
    assert (gone["changed"], gone["others"]) == (False, [])
    asked = run(task=OPENSTACK_POD_TENANT, project="nowhere", pod="v1")
    assert asked["msg"] == "There is no project 'nowhere': make it first, or correct the name."
    asked = run(task=OPENSTACK_POD_TENANT, project="tenant-a", pod="v1", roles=["none-such"])
    assert asked["msg"].startswith("There is no role 'none-such': correct the name")
