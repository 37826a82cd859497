# SPDX-License-Identifier: GPL-3.0-or-later
"""Revocation of granted roles: concurrent runs, and runs that are interrupted."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.common.client import Cloud, CloudError
from ansible_collections.openipu.pod.plugins.module_utils.openstack.tenant.api import TenantState, TenantWriter
from ansible_collections.openipu.pod.plugins.module_utils.openstack.tenant.families import ROLE
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import Action, Step

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


def test_one_of_two_concurrent_runs_revokes_the_role() -> None:
    keystone = Keystone(OURS, THEIRS, others_end_after=1)
    revoke(keystone)
    assert (keystone.granted, keystone.tags) == (False, set())
