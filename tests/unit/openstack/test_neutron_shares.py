# SPDX-License-Identifier: GPL-3.0-or-later
"""One share of many is taken back without a look at the others."""

from __future__ import annotations

from typing import Any

from ansible_collections.openipu.pod.plugins.module_utils.openstack.planning import planned
from ansible_collections.openipu.pod.plugins.module_utils.openstack.wanted import going, wanted
from neutron_raw import OWNER, network, seen, told

SHARES = [
    {"id": f"r{n}", "object_id": "id-of-data", "action": "access_as_shared", "target_tenant": f"id{project}"}
    for n, project in enumerate("abc")
]


def steps(*shares: dict[str, Any]) -> list[tuple[str, str, str]]:
    config = {"shares": [{"kind": "network", "name": "data", **share} for share in shares]}
    there = seen({name: f"id{name}" for name in "ab"}, network=[network("data")], share=SHARES[:2])
    return told(planned(wanted(config, OWNER), there, OWNER, (), set(), going(config)))


def test_one_goes_and_the_others_stay() -> None:
    assert steps({"project": "a", "state": "absent"}) == [("share", "network/data/a", "delete")]
    assert steps({"project": "b", "state": "present"}, {"project": "a", "state": "absent"}) == [
        ("share", "network/data/a", "delete")
    ]


def test_what_is_not_there_is_nothing_to_take_back() -> None:
    assert steps({"project": "nobody", "state": "absent"}, {"project": "a", "name": "x", "state": "absent"}) == []
