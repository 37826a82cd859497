# SPDX-License-Identifier: GPL-3.0-or-later
"""Revocation of granted roles: concurrent runs, and runs that are interrupted."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.common.client import Cloud, CloudError
from ansible_collections.openipu.pod.plugins.module_utils.openstack.tenant.api import TenantState, TenantWriter
from ansible_collections.openipu.pod.plugins.module_utils.openstack.tenant.families import ROLE
from ansible_collections.openipu.pod.plugins.module_utils.openstack.tenant.task import OPENSTACK_POD_TENANT
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import Action, Step

from tests.unit.collection.openstack.fake_cloud import FakeCloud
from tests.unit.collection.openstack.task_support import run

OURS, THEIRS = "openipu.role=r1:u1:vpod1", "openipu.role=r1:u1:vpod2"
GRANT = "/projects/p1/users/u1/roles/r1"
STEP = Step(ROLE, "admin", Action.DELETE, before={"id": "admin", "role": "r1", "user": "u1"})


class Keystone(Cloud):
    """Tags and a role of one project. After a number of writes, the server fails, or another run removes its tag."""

    def __init__(self, *tags: str, ends_after: int = 9, others_end_after: int = 9) -> None:
        super().__init__({}, 1)
        self.tags, self.granted, self.writes = set(tags), True, 0
        self.ends_after, self.others_end_after = ends_after, others_end_after

    def request(self, service: str, method: str, path: str, **options: Any) -> Any:
        if method == "GET":
            return {"tags": sorted(self.tags)}
        if self.writes == self.ends_after:
            raise CloudError("Cannot connect to Keystone.")
        self.writes += 1
        if path == GRANT:
            self.granted = method == "PUT"
        else:
            self.tags -= {OURS}
        if self.writes == self.others_end_after:
            self.tags -= {THEIRS}
        return None


def revoke(keystone: Keystone) -> None:
    TenantWriter(keystone, TenantState("p1", "u1", sorted(keystone.tags), {"admin": "r1"}), "vpod1")([STEP])


@pytest.mark.parametrize("ends_after", [0, 1, 2])
def test_a_remaining_role_keeps_its_tag(ends_after: int) -> None:
    keystone = Keystone(OURS, ends_after=ends_after)
    revoke(keystone)
    assert keystone.granted <= (OURS in keystone.tags)
    keystone.ends_after = 9
    revoke(keystone)
    assert (keystone.granted, keystone.tags) == (False, set())


def test_a_role_that_another_pod_needs_stays() -> None:
    keystone = Keystone(OURS, THEIRS)
    revoke(keystone)
    assert (keystone.granted, keystone.tags) == (True, {THEIRS})


MALFORMED = [
    *(f"openipu.role={value}" for value in ("", "x", "r1:u1", "r1:u1:", "r1::vpod1", ":u1:vpod1")),
    *(f"openipu.vipu_user={value}" for value in ("", "x", "bob:", ":vpod1")),
]


def test_a_tag_without_all_parts_is_ignored() -> None:
    keystone = Keystone(OURS, *MALFORMED)
    revoke(keystone)
    assert (keystone.granted, keystone.tags) == (False, set(MALFORMED))


@pytest.mark.parametrize("state", ["present", "absent"])
def test_a_task_in_a_project_with_malformed_tags_changes_nothing(state: str) -> None:
    tags = [*MALFORMED, *(["openipu.pod=vpod1"] if state == "present" else [])]
    fake = FakeCloud(
        {
            "GET /projects": {"projects": [{"id": "p2", "name": "team"}]},
            "GET /roles": {"roles": []},
            "GET /projects/p2/tags": {"tags": tags},
        }
    )
    for check_mode in (True, False):
        result = run(OPENSTACK_POD_TENANT, fake, check_mode, pod="vpod1", project="team", state=state)
        assert (result["changed"], result["other_pods"], result["other_vipu_users"]) == (False, [], [])
    assert fake.writes == []


def test_one_of_two_concurrent_runs_revokes_the_role() -> None:
    keystone = Keystone(OURS, THEIRS, others_end_after=1)
    revoke(keystone)
    assert (keystone.granted, keystone.tags) == (False, set())
