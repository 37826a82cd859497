# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks that a tenant reaches through shares and routers, and findings about them."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.reach import (
    Tenant,
    find_leaks,
    reachable_networks,
)

from tests.unit.collection.openstack.neutron_raw import PROJECT, network, port, router, subnet

TENANT = Tenant("me", "mine", PROJECT, frozenset({"data", "management"}))


def share(on: str, target: str = "mine", action: str = "access_as_shared") -> dict[str, str]:
    return {"object_type": "network", "object_id": f"id-of-{on}", "action": action, "target_tenant": target}


def interface(of: str, on: str) -> dict[str, object]:
    return port("", f"{of}-{on}", on=on, device_owner="network:router_interface", device_id=f"id-of-{of}")


def raw_state(*ports: dict[str, object], shares: list[dict[str, str]]) -> dict[str, list[dict[str, object]]]:
    names = ("data", "management", "bmc", "far")
    nets = [network(name) for name in names]
    nets += [network("outside", **{"router:external": True}), network("own", project_id="mine")]
    routers = [router("r1"), router("r2")]
    return {"network": nets, "router": routers, "share": shares, "port": list(ports)}


def findings(raw: dict[str, list[dict[str, object]]], visible: dict[str, list[dict[str, object]]] | None = None):
    return [(f["kind"], f["network"]) for f in find_leaks(TENANT, raw, reachable_networks(raw, "mine"), visible)]


SHARES = [share("data"), share("management")]


def test_shared_networks_are_attached_and_allowed():
    raw = raw_state(shares=[*SHARES, share("bmc", "others"), share("outside", "*", "access_as_external")])
    assert reachable_networks(raw, "mine").attached == {"id-of-data", "id-of-management", "id-of-own"}
    assert findings(raw) == []


@pytest.mark.parametrize("other", ["others", "*"])
def test_a_network_of_two_projects_is_reported_unless_it_is_common(other):
    raw = raw_state(shares=[*SHARES, share("data", other), share("management", other)])
    assert findings(raw) == [("common", "data"), ("common", "management")]
    tenant = Tenant("me", "mine", PROJECT, TENANT.allowed, frozenset({"management"}))
    (found,) = find_leaks(tenant, raw, reachable_networks(raw, "mine"), None, {"others": "team"})
    shown = {"others": "team"}.get(other, other)
    assert (
        found["reason"]
        == f"Tenant 'me' uses network 'data' together with project '{shown}'. Give each its own network."
    )


def test_routers_connect_networks_transitively():
    interfaces = [interface("r1", "data"), interface("r1", "bmc"), interface("r2", "bmc"), interface("r2", "far")]
    raw = raw_state(*interfaces, shares=SHARES)
    assert findings(raw) == [("reachable", "bmc"), ("reachable", "far")]
    assert reachable_networks(raw, "mine").routers == {"id-of-bmc": "r1", "id-of-far": "r2"}
    assert findings(raw_state(*interfaces[2:], shares=SHARES)) == []  # this router has none of the tenant's networks


def test_a_share_with_all_projects_includes_the_tenant():
    assert findings(raw_state(shares=[*SHARES, share("bmc", "*")])) == [("attachable", "bmc")]


def test_an_allowed_network_without_access_is_reported():
    assert findings(raw_state(shares=[share("data")])) == [("unreachable", "management")]
    assert findings(raw_state(interface("r1", "data"), interface("r1", "management"), shares=[share("data")])) == []


def test_visible_objects_are_checked_too():
    hidden = [network("data", **{"provider:segmentation_id": None}), network("own", project_id="mine")]
    assert findings(raw_state(shares=SHARES), {"network": hidden}) == []
    visible = {
        "network": [*hidden, network("bmc", **{"provider:segmentation_id": None}), network("management")],
        "subnet": [subnet("data", "data", "10.5.0.0/16"), subnet("far", "far", "10.9.0.0/16")],
        "port": [port("mine", "a", project_id="mine"), port("theirs", "b")],
    }
    assert findings(raw_state(shares=SHARES), visible) == [
        ("visible", "bmc"),
        ("visible", "management"),  # its VLAN
        ("visible", "id-of-far"),  # a subnet of an invisible network
        ("visible", "data"),  # a port of another project
    ]


def foreign(name: str, of: str = "others") -> dict[str, object]:
    return network(name, id=f"id-of-foreign-{name}", project_id=of)


def test_a_network_of_another_project_with_an_allowed_name_is_reported():
    raw = raw_state(shares=[*SHARES, share("foreign-data"), share("foreign-management", "third")])
    raw["network"] += [foreign("data"), foreign("management")]
    (found,) = find_leaks(TENANT, raw, reachable_networks(raw, "mine"), None)
    assert (found["kind"], found["network"]) == ("attachable", "data")
    assert found["reason"] == (
        "Tenant 'me' can create ports on network 'data' with the ID id-of-foreign-data. Remove the share of the "
        "network."
    )
    seen = {"network": [foreign("management")]}
    assert findings(raw_state(shares=SHARES), seen) == [("visible", "management"), ("visible", "management")]


def test_a_network_of_another_project_can_be_allowed_by_its_id():
    raw = raw_state(shares=[*SHARES, share("foreign-data"), share("foreign-data", "third")])
    raw["network"].append(foreign("data"))
    ids = frozenset({"id-of-foreign-data"})
    for common, expected in ((ids, []), (frozenset(), [("common", "data")]), ({"data"}, [("common", "data")])):
        tenant = Tenant("me", "mine", PROJECT, TENANT.allowed | ids, frozenset(common))
        found = find_leaks(tenant, raw, reachable_networks(raw, "mine"), None)
        assert [(f["kind"], f["network"]) for f in found] == expected


@pytest.mark.parametrize("of", ["mine", "others"])
def test_networks_of_others_do_not_replace_an_unreachable_one(of):
    raw = raw_state(shares=[share("data"), share("foreign-management")])
    raw["network"].append(foreign("management", of))
    assert ("unreachable", "management") in findings(raw)
