# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a tenant gets to, by shares and routers, and what of that it may not."""

from __future__ import annotations

from ansible_collections.openipu.pod.plugins.module_utils.openstack.reach import Tenant, compared, reached
from neutron_raw import network, port, router, subnet

ME = Tenant("me", "mine", frozenset({"data", "management"}))


def share(on: str, target: str = "mine", action: str = "access_as_shared") -> dict[str, str]:
    return {"object_type": "network", "object_id": f"id-of-{on}", "action": action, "target_tenant": target}


def interface(of: str, on: str) -> dict[str, object]:
    return port("", f"{of}-{on}", on=on, device_owner="network:router_interface", device_id=f"id-of-{of}")


def world(*interfaces: dict[str, object], shares: list[dict[str, str]]) -> dict[str, list[dict[str, object]]]:
    names = ("data", "management", "bmc", "far")
    nets = [network(name) for name in names]
    nets += [network("outside", **{"router:external": True}), network("own", project_id="mine")]
    routers = [router("r1"), router("r2")]
    return {"network": nets, "router": routers, "share": shares, "port": list(interfaces)}


def findings(raw: dict[str, list[dict[str, object]]], seen: dict[str, list[dict[str, object]]] | None = None):
    return [(f["kind"], f["network"]) for f in compared(ME, raw, reached(raw, "mine"), seen)]


FINE = [share("data"), share("management")]


def test_what_is_shared_is_attached_to_and_all_is_well():
    raw = world(shares=[*FINE, share("bmc", "others"), share("outside", "*", "access_as_external")])
    assert reached(raw, "mine").attached == {"id-of-data", "id-of-management", "id-of-own"}
    assert findings(raw) == []


def test_routers_lead_on_from_network_to_network():
    ways = [interface("r1", "data"), interface("r1", "bmc"), interface("r2", "bmc"), interface("r2", "far")]
    raw = world(*ways, shares=FINE)
    assert findings(raw) == [("reaches", "bmc"), ("reaches", "far")]
    assert reached(raw, "mine").by == {"id-of-bmc": "r1", "id-of-far": "r2"}
    assert findings(world(*ways[2:], shares=FINE)) == []  # a router that joins nothing of ours


def test_a_share_with_everybody_is_one_with_the_tenant():
    assert findings(world(shares=[*FINE, share("bmc", "*")])) == [("attaches", "bmc")]


def test_what_it_may_and_does_not_get_to_is_lacking():
    assert findings(world(shares=[share("data")])) == [("lacks", "management")]
    assert findings(world(interface("r1", "data"), interface("r1", "management"), shares=[share("data")])) == []


def test_what_it_is_shown_is_judged_too():
    hidden = [network("data", **{"provider:segmentation_id": None}), network("own", project_id="mine")]
    assert findings(world(shares=FINE), {"network": hidden}) == []
    shown = {
        "network": [*hidden, network("bmc", **{"provider:segmentation_id": None}), network("management")],
        "subnet": [subnet("data", "data", "10.5.0.0/16"), subnet("far", "far", "10.9.0.0/16")],
        "port": [port("mine", "a", project_id="mine"), port("theirs", "b")],
    }
    assert findings(world(shares=FINE), shown) == [
        ("sees", "bmc"),
        ("sees", "management"),  # on which VLAN it is
        ("sees", "id-of-far"),  # a subnet of a network that it is not shown
        ("sees", "data"),  # a port of another project
    ]
