# SPDX-License-Identifier: GPL-3.0-or-later
"""Taking back a role that was lent, whoever else ends at the same time and whenever this ends."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.client import Cloud, CloudError
from ansible_collections.openipu.pod.plugins.module_utils.openstack.tenant_cloud import ROLE, TenantWriter, There
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import Action, Step

OURS, THEIRS = "openipu.role=r1:u1:vpod1", "openipu.role=r1:u1:vpod2"
GRANT = "/projects/p1/users/u1/roles/r1"
STEP = Step(ROLE, "admin", Action.DELETE, before={"id": "admin", "role": "r1", "user": "u1"})


class Keystone(Cloud):
    """The tags of a project and a role there; it can go away, or forget a tag, after so many writes."""

    def __init__(self, *tags: str, ends_after: int = 9, others_end_after: int = 9) -> None:
        super().__init__({}, 1)
        self.tags, self.granted, self.writes = set(tags), True, 0
        self.ends_after, self.others_end_after = ends_after, others_end_after

    def request(self, service: str, method: str, path: str, **options: Any) -> Any:
        if method == "GET":
            return {"tags": sorted(self.tags)}
        if self.writes == self.ends_after:
            raise CloudError("Keystone does not answer.")
        self.writes += 1
        if path == GRANT:
            self.granted = method == "PUT"
        else:
            self.tags -= {OURS}
        if self.writes == self.others_end_after:
            self.tags -= {THEIRS}
        return None


def take_back(keystone: Keystone) -> None:
    TenantWriter(keystone, There("p1", "u1", sorted(keystone.tags), {"admin": "r1"}), "vpod1")([STEP])


@pytest.mark.parametrize("ends_after", [0, 1, 2])
def test_a_role_that_is_left_is_noted(ends_after: int) -> None:
    keystone = Keystone(OURS, ends_after=ends_after)
    take_back(keystone)
    assert keystone.granted <= (OURS in keystone.tags)
    keystone.ends_after = 9
    take_back(keystone)
    assert (keystone.granted, keystone.tags) == (False, set())


def test_one_that_others_need_stays() -> None:
    keystone = Keystone(OURS, THEIRS)
    take_back(keystone)
    assert (keystone.granted, keystone.tags) == (True, {THEIRS})


def test_of_two_that_end_at_once_one_takes_it_back() -> None:
    keystone = Keystone(OURS, THEIRS, others_end_after=1)
    take_back(keystone)
    assert (keystone.granted, keystone.tags) == (False, set())
