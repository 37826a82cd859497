# SPDX-License-Identifier: GPL-3.0-or-later
"""Which ports are asked for, and in how many requests."""

from __future__ import annotations

from ansible_collections.openipu.pod.plugins.module_utils.openstack.looking import look, ports_on
from answers import Answers
from neutron_raw import OWNER, PROJECT, network, port, subnet

A, B = "0c:42:a1:00:05:01", "0c:42:a1:00:05:02"


def test_the_addresses_of_many_networks_are_not_asked_for_at_once() -> None:
    there = Answers({"GET /ports": {"ports": []}})
    ids = [f"id{n}" for n in range(85)]
    assert ports_on(there, ids) == []
    asked = [query["network_id"] for _place, query in there.asked]
    assert sorted(map(len, asked)) == [5, 40, 40]
    assert sorted(id for part in asked for id in part) == sorted(ids)
    assert ports_on(there, []) == []
    assert len(there.asked) == 3


def test_ports_of_ours_are_known_wherever_they_are_and_once() -> None:
    there = Answers(
        {
            "GET /networks": {"networks": [network("data"), network("site", tags=[]), network("far", tags=[])]},
            "GET /subnets": {"subnets": [subnet("ours", "site", "10.9.0.0/24")]},
            "GET /ports": {"ports": [port("m1", A), port("m2", B)]},
        }
    )
    seen = look(there, ("network", "subnet", "port"), ["data"], (), OWNER, project=PROJECT)
    assert [raw["name"] for raw in seen.raw["port"]] == ["m1", "m2"]
    on, ours = [query for place, query in there.asked if place == "GET /ports"]
    assert on == {"network_id": ["id-of-data", "id-of-site"]}
    assert ours == {"project_id": PROJECT, "tags": f"openipu.pod={OWNER}"}
