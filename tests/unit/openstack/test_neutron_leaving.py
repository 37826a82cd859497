# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes, when, and what keeps it from going; and names that other projects have too."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.leaving import goes_first
from ansible_collections.openipu.pod.plugins.module_utils.openstack.quotas import needed
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import Action, SentenceError
from neutron_raw import group, network, port, router, seen, steps, subnet, told

A, B = "0c:42:a1:00:05:01", "0c:42:a1:00:05:02"
EVERYTHING: dict[str, Any] = {
    kind: [] for kind in ("networks", "subnets", "ports", "routers", "shares", "security_groups", "address_scopes")
}
TENANTS_VM = port("vm", B, "10.5.0.9", project_id="ida", tags=[], device_owner="compute:nova", device_id="vm1")


def share(target: str = "ida", on: str = "data") -> dict[str, Any]:
    return {
        "id": f"{on}-{target}",
        "object_id": f"id-of-{on}",
        "action": "access_as_shared",
        "target_tenant": target,
    }


def there(*ports: dict[str, Any], shares: tuple[str, ...] = ("ida",), **raw: Any) -> Any:
    fixed = [{**p, "fixed_ips": [{**each, "subnet_id": "id-of-data"} for each in p["fixed_ips"]]} for p in ports]
    raw.setdefault("subnet", [subnet("data", "data", "10.5.0.0/16")])
    return seen(
        network=raw.pop("network", [network("data"), network("out", 90, project_id="p2")]),
        port=[port("m1", A, "10.5.0.1"), *fixed],
        share=[share(target) for target in shares],
        projects={"a": "ida", "b": "idb", "*": "*"},
        **raw,
    )


def first(found: list[Any]) -> dict[str, bool]:
    return {step.key: goes_first(step, found) for step in found if step.action is Action.DELETE}


# What keeps it from going


@pytest.mark.parametrize(
    ("raw", "who"),
    [
        (TENANTS_VM, "port 'vm' of project 'a', in use by compute:nova,"),
        ({**TENANTS_VM, "device_owner": "", "device_id": "", "project_id": "idc"}, "port 'vm' of project 'idc'"),
        ({**TENANTS_VM, "device_owner": "network:router_interface", "device_id": "theirs"}, "a router of project 'a'"),
        ({**TENANTS_VM, "project_id": "p1"}, "port 'vm', in use by compute:nova,"),
        ({**TENANTS_VM, "project_id": "p1", "tags": ["openipu.pod=vpod"], "device_owner": ""}, "port 'vm'"),
    ],
)
@pytest.mark.parametrize("kind", ["networks", "subnets"])
def test_what_somebody_has_a_port_on_stays_and_so_does_all_the_rest(raw: Any, who: str, kind: str) -> None:
    with pytest.raises(SentenceError) as refused:
        steps({kind: [], "ports": []}, there(raw), prune=True)
    assert str(refused.value) == (
        f"{kind[:-1].capitalize()} 'data' cannot be removed while {who} has it in use: "
        f"remove that first, or keep the {kind[:-1]}."
    )
    with pytest.raises(SentenceError, match="cannot be removed while"):
        steps(EVERYTHING, there(raw), prune=True)


@pytest.mark.parametrize("owner", ["dhcp", "distributed", "floatingip_agent_gateway", "router_centralized_snat"])
def test_what_neutron_removes_itself_keeps_nothing(owner: str) -> None:
    raw = {**TENANTS_VM, "device_owner": f"network:{owner}"}
    assert len(told(steps(EVERYTHING, there(raw), prune=True))) == 4


def test_a_port_of_another_network_keeps_nothing() -> None:
    other = network("other", 12, tags=[])
    raw = {**TENANTS_VM, "network_id": "id-of-other"}
    found = there(network=[network("data"), other])
    found.raw["port"].append({**raw, "fixed_ips": []})
    assert ("network", "data", "delete") in told(steps(EVERYTHING, found, prune=True))


def test_a_router_that_goes_or_gets_another_gateway_keeps_nothing() -> None:
    gateway = port("", B, on="old", device_owner="network:router_gateway", device_id="id-of-r", project_id="", tags=[])
    raw: dict[str, Any] = {
        "network": [network("old", 12, **{"router:external": True}), network("new", 13, tags=[])],
        "router": [router("r", {"network_id": "id-of-old"})],
        "port": [gateway],
    }
    assert ("network", "old", "delete") in told(steps({"networks": [], "routers": []}, seen(**raw), prune=True))
    moved = {"networks": [], "routers": [{"name": "r", "external_network": "new"}]}
    found = steps(moved, seen(**raw), prune=True)
    assert told(found) == [("network", "old", "delete"), ("router", "r", "change")]
    assert first(found) == {"old": False}
    for routers in ({}, {"routers": [{"name": "r", "external_network": "old"}]}):
        with pytest.raises(SentenceError, match="Network 'old' cannot be removed while the gateway of a router has it"):
            steps({"networks": [], **routers}, seen(**raw), prune=True)


def test_shares_alone_are_tried_and_with_other_things_looked_at() -> None:
    assert told(steps({"shares": []}, there(TENANTS_VM), prune=True)) == [("share", "network/data/a", "delete")]
    with pytest.raises(SentenceError, match="Share 'network/data/a' cannot be removed while port 'vm' of project 'a'"):
        steps({"shares": [], "ports": []}, there(TENANTS_VM), prune=True)


@pytest.mark.parametrize(
    ("shares", "kept", "refused"),
    [
        (("ida", "idb"), "b", True),
        (("ida", "idb"), "a", False),  # the one that goes is nobody's who has a port
        (("ida", "*"), "*", False),
        (("ida", "*"), "a", False),
        (("*", "idb"), "b", True),
    ],
)
def test_a_share_is_needed_by_those_who_have_no_other_one(shares: tuple[str, ...], kept: str, refused: bool) -> None:
    asked = {"shares": [{"kind": "network", "name": "data", "project": kept}], "ports": []}
    found = there(TENANTS_VM, shares=shares)
    if refused:
        with pytest.raises(SentenceError, match="Share 'network/data/"):
            steps(asked, found, prune=True)
    else:
        assert len(told(steps(asked, found, prune=True))) == 2


# When


NEW = {"name": "new", "network": "data", "cidr": "10.6.0.0/16"}


def test_a_subnet_goes_when_its_ports_have_gone_to_the_next_one() -> None:
    ours = port("m2", B, "10.5.0.2")
    asked = [
        {"name": f"m{n}", "network": "data", "mac": mac, "addresses": [f"10.6.0.{n}"]} for n, mac in ((1, A), (2, B))
    ]
    found = steps({"subnets": [NEW], "ports": asked}, there(ours), prune=True)
    assert first(found) == {"data": False}
    assert needed(found)["subnet"] == 1  # for a while there are both
    # Its addresses are needed at once, and a port has one still.
    with pytest.raises(SentenceError, match="Subnet 'data' cannot be removed while port 'm2' has it in use"):
        steps(
            {
                "subnets": [{**NEW, "cidr": "10.5.0.0/17"}],
                "ports": [
                    {"name": "m1", "network": "data", "mac": A, "addresses": []},
                    {"name": "m2", "network": "data", "mac": B, "addresses": ["10.5.0.2"]},
                ],
            },
            there(ours),
            prune=True,
        )
    found = steps({"subnets": [{**NEW, "cidr": "10.5.0.0/17"}]}, there(), prune=True)
    assert first(found) == {"data": True}
    assert needed(found)["subnet"] == 0


def test_a_network_goes_last_unless_its_vlan_is_needed() -> None:
    old = seen(network=[network("old")])
    for vlan, at_once in ((11, True), (12, False)):
        asked = {"name": "new", "vlan": vlan, "physical_network": "phys"}
        found = steps({"networks": [asked]}, old, prune=True)
        assert first(found) == {"old": at_once}
        assert needed(found)["network"] == (0 if at_once else 1)


def test_security_groups_are_there_until_the_end() -> None:
    found = steps({"security_groups": [{"name": "new"}]}, seen(security_group=[group("old")]), prune=True)
    assert first(found) == {"old": False}
    assert needed(found)["security_group"] == 1


# Names that others have too


def test_networks_of_others_with_the_same_name_are_other_networks() -> None:
    theirs = {**network("data", 12, project_id="p2"), "id": "theirs"}
    raw = {
        "network": [network("data"), theirs],
        "subnet": [
            subnet("data", "data", "10.5.0.0/16"),
            {**subnet("data", "data", "10.6.0.0/16", project_id="p2"), "id": "s2", "network_id": "theirs"},
        ],
        "port": [{**port("vm", A, "10.5.0.1", project_id="p2"), "network_id": "theirs"}],
    }
    asked = {"name": "m1", "network": "data", "mac": A, "addresses": ["10.5.0.1"]}
    assert told(steps({"ports": [asked], "subnets": [{**NEW, "cidr": "10.6.0.0/16"}]}, seen(**raw))) == [
        ("subnet", "new", "create"),
        ("port", "m1", "create"),
    ]
    with pytest.raises(SentenceError, match=r"Address 10\.6\.0\.1 of port 'm1' is in no subnet of network 'data'"):
        steps({"ports": [{**asked, "addresses": ["10.6.0.1"]}]}, seen(**raw))
    # A port of ours there is not where it is to be.
    ours = {**port("m1", A, "10.6.0.1"), "network_id": "theirs"}
    assert told(steps({"ports": [asked]}, seen(**{**raw, "port": [ours]}))) == [("port", "m1", "recreate")]
    # One that is to be made is none of those that are there.
    del raw["network"][0], raw["subnet"][0]
    new = {"networks": [{"name": "data", "vlan": 11, "physical_network": "phys"}]}
    assert len(told(steps({**new, "subnets": [{**NEW, "cidr": "10.6.0.0/16"}]}, seen(**raw)))) == 2


def scope(name: str) -> dict[str, Any]:
    return {"id": f"id-of-{name}", "name": name, "project_id": "p1", "ip_version": 4, "shared": False}


def pool(on: str, **more: Any) -> dict[str, Any]:
    tags = ["openipu.pod=pod"]
    return {
        "id": "pool",
        "name": "pool",
        "project_id": "p1",
        "tags": tags,
        "prefixes": [],
        "address_scope_id": on,
    } | more


@pytest.mark.parametrize(
    ("name", "pools", "gone"),
    [
        ("pod", [pool("id-of-pod")], True),
        ("pod", [], True),
        ("pod-storage", [pool("id-of-pod-storage")], True),
        ("pod-b", [], False),  # that of another POD, which has no pool in it yet
        ("pod-b", [pool("id-of-pod-b", tags=["openipu.pod=pod-b"])], False),
        ("site", [pool("id-of-site")], False),  # that of a site, in which we have a pool
        ("site", [], False),
        ("pod", [pool("id-of-pod", project_id="p2", tags=[])], False),
        ("pods", [], False),
    ],
)
def test_an_address_scope_is_ours_by_its_name_unless_others_are_in_it(name: str, pools: Any, gone: bool) -> None:
    found = told(steps({"address_scopes": []}, seen(address_scope=[scope(name)], subnet_pool=pools), prune=True))
    assert found == ([("address_scope", name, "delete")] if gone else [])
