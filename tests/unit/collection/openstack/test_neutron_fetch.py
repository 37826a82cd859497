# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads of Neutron objects: selection of ports, number of requests, and incomplete responses."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.families import PATHS
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.query import Query
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.reads import (
    fetch,
    fetch_all_projects,
    fetch_ports,
)
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import UserError

from tests.unit.collection.openstack.fake_cloud import FakeCloud
from tests.unit.collection.openstack.neutron_raw import OWNER, PROJECT, group, network, port, router, subnet

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


def read(responses: dict[str, Any], **query: Any) -> tuple[Any, FakeCloud]:
    """Return the state and the cloud after a read of all kinds."""
    cloud = FakeCloud(responses)
    return fetch(cloud, Query(OWNER, PATHS, project=PROJECT, **query)), cloud


EMPTY: dict[str, Any] = {"networks": []}
SUBNETS = {"subnets": [subnet("data", "data", "10.5.0.0/16")]}
SHARE = {
    "id": "s",
    "project_id": PROJECT,
    "object_type": "network",
    "action": "access_as_shared",
    "target_project": "p2",
}
SHARES = {"rbac_policies": [{**SHARE, "object_id": "id-of-data", "target_project": "p2"}]}
PORTS = {"ports": [port("m1", A)]}


@pytest.mark.parametrize(
    "others",
    [
        {"GET /subnets": SUBNETS},
        {"GET /rbac-policies": SHARES},
        {"GET /ports": PORTS},
        {"GET /security-groups": {"security_groups": [group("g")]}},
    ],
)
def test_a_read_without_networks_is_repeated(others: dict[str, Any]) -> None:
    """A Neutron that has just started may return no networks."""
    data = {"networks": [network("data")]}
    state, cloud = read({"GET /ports": {"ports": []}, **others, "GET /networks": [EMPTY, data]})
    assert [raw["name"] for raw in state.raw["network"]] == ["data"]
    reads = [key for key, _query in cloud.reads]
    assert reads.count("GET /networks") == 2


DATA = {"networks": [network("data", subnets=["id-of-data"])]}
ROUTER_PORT = port("", A, device_owner="network:router_interface", device_id="id-of-r")
MISSING_OBJECTS = [
    ("subnet", {"GET /networks": DATA}, SUBNETS),
    ("router", {"GET /ports": {"ports": [ROUTER_PORT]}}, {"routers": [router("r")]}),
    (
        "security_group",
        {"GET /ports": {"ports": [port("m1", A, security_groups=["id-of-g"])]}},
        {"security_groups": [group("g")]},
    ),
]


@pytest.mark.parametrize(("kind", "others", "complete"), MISSING_OBJECTS)
def test_a_read_without_objects_that_others_refer_to_is_repeated(
    kind: str, others: dict[str, Any], complete: dict[str, Any]
) -> None:
    """A plan of this read would create the objects again, since their names need not be unique."""
    (collection,) = complete
    path = PATHS[kind]
    responses = {"GET /networks": {"networks": [network("data")]}, "GET /ports": {"ports": []}, **others}
    state, cloud = read({**responses, f"GET {path}": [{collection: []}, complete]})
    assert [raw["name"] for raw in state.raw[kind]] == [raw["name"] for raw in complete[collection]]
    assert [key for key, _query in cloud.reads].count(f"GET {path}") == 2
    assert state.doubt == ""
    # Another project may own the object, and Neutron does not return it.
    state, cloud = read({**responses, f"GET {path}": {collection: []}})
    assert state.raw[kind] == []
    assert state.doubt
    assert [key for key, _query in cloud.reads].count(f"GET {path}") == 2


@pytest.mark.parametrize(("kind", "others", "complete"), MISSING_OBJECTS)
def test_a_complete_read_is_not_repeated(kind: str, others: dict[str, Any], complete: dict[str, Any]) -> None:
    responses = {"GET /networks": {"networks": [network("data")]}, "GET /ports": {"ports": []}, **others}
    _state, cloud = read({**responses, f"GET {PATHS[kind]}": complete})
    assert [key for key, _query in cloud.reads].count("GET /networks") == 1


def test_references_of_other_projects_are_no_doubts() -> None:
    theirs = {"project_id": "p2", "tags": []}
    foreign = {"networks": [network("data", subnets=["s"], **theirs)]}
    ports = {"ports": [{**ROUTER_PORT, **theirs, "security_groups": ["g2"]}]}
    _state, cloud = read({"GET /networks": foreign, "GET /ports": ports})
    assert [key for key, _query in cloud.reads].count("GET /networks") == 1


def test_security_groups_of_other_projects_are_no_doubts() -> None:
    ports = {"ports": [port("m1", A, security_groups=["id-of-g", "shared"])]}
    groups = {"security_groups": [group("g")]}
    networks = {"networks": [network("data")]}
    _state, cloud = read({"GET /networks": networks, "GET /ports": ports, "GET /security-groups": groups})
    assert [key for key, _query in cloud.reads].count("GET /networks") == 1


def test_routers_of_all_projects() -> None:
    """A check of the isolation of tenants needs all routers."""
    ports = {"ports": [ROUTER_PORT]}
    routers = [{"routers": []}, {"routers": [router("r")]}]
    cloud = FakeCloud({"GET /networks": DATA, "GET /ports": ports, "GET /routers": routers})
    assert [raw["name"] for raw in fetch_all_projects(cloud)["router"]] == ["r"]


def test_an_impossible_read_is_an_error_and_a_repeated_doubt_remains() -> None:
    message = "Cannot trust the objects that Neutron returned: subnet 'data' has no network. Nothing was changed."
    with pytest.raises(UserError, match=re.escape(message)):
        read({"GET /networks": EMPTY, "GET /subnets": SUBNETS, "GET /ports": {"ports": []}})
    # An interrupted removal leaves security groups, and a tenant may have a port on a network that it does not see.
    for others, doubt in (
        ({"GET /security-groups": {"security_groups": [group("g")]}}, "no network exists, but security group 'g' does"),
        ({"GET /ports": PORTS}, "port 'm1' refers to the missing network 'id-of-data'"),
    ):
        state, _cloud = read({"GET /networks": EMPTY, "GET /ports": {"ports": []}, **others})
        assert state.raw["network"] == []
        assert state.doubt == doubt
    state, _cloud = read({"GET /networks": EMPTY, "GET /ports": {"ports": []}})
    assert state.doubt == ""


def test_the_first_request_is_alone() -> None:
    """Concurrent first requests are the cause of empty collections."""

    concurrent: list[list[Any]] = []

    class Concurrent(FakeCloud):
        def map(self, work: Any, items: Any) -> list[Any]:
            concurrent.append(list(items))
            return super().map(work, items)

    cloud = Concurrent({"GET /networks": {"networks": [network("data")]}, "GET /ports": {"ports": []}})
    fetch(cloud, Query(OWNER, ("network", "subnet", "router", "port"), project=PROJECT))
    assert cloud.reads[0][0] == "GET /networks"
    assert concurrent[0] == ["subnet", "router"]
