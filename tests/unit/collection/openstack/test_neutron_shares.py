# SPDX-License-Identifier: GPL-3.0-or-later
"""Removal of single shares, without pruning the others."""

from __future__ import annotations

from typing import Any

from tests.unit.collection.openstack.neutron_raw import changes, network, plan, state

SHARES = [
    {"id": f"r{n}", "object_id": "id-of-data", "action": "access_as_shared", "target_tenant": f"id{project}"}
    for n, project in enumerate("abc")
]


def planned(*shares: dict[str, Any]) -> list[tuple[str, str, str]]:
    actual = state({name: f"id{name}" for name in "ab"}, network=[network("data")], share=SHARES[:2])
    return changes(plan({"shares": [{"kind": "network", "name": "data", **share} for share in shares]}, actual))


def test_an_absent_share_is_removed_and_others_stay() -> None:
    assert planned({"project": "a", "state": "absent"}) == [("share", "network/data/a", "delete")]
    assert planned({"project": "b", "state": "present"}, {"project": "a", "state": "absent"}) == [
        ("share", "network/data/a", "delete")
    ]


def test_an_absent_share_that_does_not_exist_is_no_change() -> None:
    assert planned({"project": "other", "state": "absent"}, {"project": "a", "name": "x", "state": "absent"}) == []
