# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads of ports: their selection and the number of requests."""

from __future__ import annotations

from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.api import fetch, fetch_ports
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.query import Query

from tests.unit.collection.openstack.fake_cloud import FakeCloud
from tests.unit.collection.openstack.neutron_raw import OWNER, PROJECT, network, port, subnet

A, B = "0c:42:a1:00:05:01", "0c:42:a1:00:05:02"


def test_ports_of_many_networks_are_read_in_several_requests() -> None:
    cloud = FakeCloud({"GET /ports": {"ports": []}})
    ids = [f"id{n}" for n in range(85)]
    assert fetch_ports(cloud, ids) == []
    parts = [query["network_id"] for _key, query in cloud.reads]
    assert sorted(map(len, parts)) == [5, 40, 40]
    assert sorted(id for part in parts for id in part) == sorted(ids)
    assert fetch_ports(cloud, []) == []
    assert len(cloud.reads) == 3


def test_owned_ports_are_read_on_all_networks_and_listed_once() -> None:
    cloud = FakeCloud(
        {
            "GET /networks": {"networks": [network("data"), network("site", tags=[]), network("far", tags=[])]},
            "GET /subnets": {"subnets": [subnet("ours", "site", "10.9.0.0/24")]},
            "GET /ports": {"ports": [port("m1", A), port("m2", B)]},
        }
    )
    state = fetch(cloud, Query(OWNER, ("network", "subnet", "port"), ["data"], project=PROJECT))
    assert [raw["name"] for raw in state.raw["port"]] == ["m1", "m2"]
    by_network, by_owner = [query for key, query in cloud.reads if key == "GET /ports"]
    assert by_network == {"network_id": ["id-of-data", "id-of-site"]}
    assert by_owner == {"project_id": PROJECT, "tags": f"openipu.pod={OWNER}"}
