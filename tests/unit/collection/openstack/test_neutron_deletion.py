# SPDX-License-Identifier: GPL-3.0-or-later
"""Removals: their order, ports that block them, and objects of other projects with the same names."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.deletion import is_removed_first
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.limits import quota_demand
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.task import OPENSTACK_POD_NETWORK
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import Action, UserError

from tests.unit.collection.openstack.fake_cloud import FakeCloud
from tests.unit.collection.openstack.neutron_raw import changes, group, network, plan, port, router, state, subnet
from tests.unit.collection.openstack.task_support import NETWORKS, run

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


def state_with(*ports: dict[str, Any], shares: tuple[str, ...] = ("ida",), **raw: Any) -> Any:
    fixed = [{**p, "fixed_ips": [{**each, "subnet_id": "id-of-data"} for each in p["fixed_ips"]]} for p in ports]
    raw.setdefault("subnet", [subnet("data", "data", "10.5.0.0/16")])
    return state(
        network=raw.pop("network", [network("data"), network("out", 90, project_id="p2")]),
        port=[port("m1", A, "10.5.0.1"), *fixed],
        share=[share(target) for target in shares],
        projects={"a": "ida", "b": "idb", "*": "*"},
        **raw,
    )


def first(found: list[Any]) -> dict[str, bool]:
    return {step.key: is_removed_first(step, found) for step in found if step.action is Action.DELETE}


# Blocked removals


@pytest.mark.parametrize(
    ("raw", "user"),
    [
        (TENANTS_VM, "port 'vm' of project 'a' (in use by compute:nova)"),
        ({**TENANTS_VM, "device_owner": "", "device_id": "", "project_id": "idc"}, "port 'vm' of project 'idc'"),
        ({**TENANTS_VM, "device_owner": "network:router_interface", "device_id": "theirs"}, "a router of project 'a'"),
        ({**TENANTS_VM, "project_id": "p1"}, "port 'vm' (in use by compute:nova)"),
        ({**TENANTS_VM, "project_id": "p1", "tags": ["openipu.pod=vpod"], "device_owner": ""}, "port 'vm'"),
    ],
)
@pytest.mark.parametrize("kind", ["networks", "subnets"])
def test_a_used_network_blocks_all_removals(raw: Any, user: str, kind: str) -> None:
    with pytest.raises(UserError) as rejected:
        plan({kind: [], "ports": []}, state_with(raw), prune=True)
    assert str(rejected.value) == (
        f"Cannot remove {kind[:-1]} 'data': {user} uses it. Remove that one first, or keep the {kind[:-1]}."
    )
    with pytest.raises(UserError, match=r"Cannot remove .* uses it"):
        plan(EVERYTHING, state_with(raw), prune=True)


@pytest.mark.parametrize("owner", ["dhcp", "distributed", "floatingip_agent_gateway", "router_centralized_snat"])
def test_internal_ports_of_neutron_block_nothing(owner: str) -> None:
    raw = {**TENANTS_VM, "device_owner": f"network:{owner}"}
    assert len(changes(plan(EVERYTHING, state_with(raw), prune=True))) == 4


def test_a_port_of_another_network_blocks_nothing() -> None:
    other = network("other", 12, tags=[])
    raw = {**TENANTS_VM, "network_id": "id-of-other"}
    found = state_with(network=[network("data"), other])
    found.raw["port"].append({**raw, "fixed_ips": []})
    assert ("network", "data", "delete") in changes(plan(EVERYTHING, found, prune=True))


def test_a_router_that_is_removed_or_gets_another_gateway_blocks_nothing() -> None:
    gateway = port("", B, on="old", device_owner="network:router_gateway", device_id="id-of-r", project_id="", tags=[])
    raw: dict[str, Any] = {
        "network": [
            network("old", 12, **{"router:external": True}),
            network("new", 13, tags=[], **{"router:external": True}),
        ],
        "router": [router("r", {"network_id": "id-of-old"})],
        "port": [gateway],
    }
    assert ("network", "old", "delete") in changes(plan({"networks": [], "routers": []}, state(**raw), prune=True))
    moved = {"networks": [], "routers": [{"name": "r", "external_network": "new"}]}
    found = plan(moved, state(**raw), prune=True)
    assert changes(found) == [("network", "old", "delete"), ("router", "r", "change")]
    assert first(found) == {"old": False}
    for routers in ({}, {"routers": [{"name": "r", "external_network": "old"}]}):
        with pytest.raises(UserError, match="Cannot remove network 'old': the gateway of a router uses it"):
            plan({"networks": [], **routers}, state(**raw), prune=True)


def test_used_shares_block_the_removal_of_other_objects_only() -> None:
    assert changes(plan({"shares": []}, state_with(TENANTS_VM), prune=True)) == [("share", "network/data/a", "delete")]
    with pytest.raises(UserError, match="Cannot remove share 'network/data/a': port 'vm' of project 'a'"):
        plan({"shares": [], "ports": []}, state_with(TENANTS_VM), prune=True)


@pytest.mark.parametrize(
    ("shares", "kept", "rejected"),
    [
        (("ida", "idb"), "b", True),
        (("ida", "idb"), "a", False),  # the project of the removed share has no port
        (("ida", "*"), "*", False),
        (("ida", "*"), "a", False),
        (("*", "idb"), "b", True),
    ],
)
def test_a_share_is_used_by_projects_without_another_one(shares: tuple[str, ...], kept: str, rejected: bool) -> None:
    desired = {"shares": [{"kind": "network", "name": "data", "project": kept}], "ports": []}
    found = state_with(TENANTS_VM, shares=shares)
    if rejected:
        with pytest.raises(UserError, match="Cannot remove share 'network/data/"):
            plan(desired, found, prune=True)
    else:
        assert len(changes(plan(desired, found, prune=True))) == 2


# Order of removals


NEW = {"name": "new", "network": "data", "cidr": "10.6.0.0/16"}


def test_a_subnet_is_removed_after_its_ports_moved() -> None:
    owned = port("m2", B, "10.5.0.2")
    ports = [
        {"name": f"m{n}", "network": "data", "mac": mac, "addresses": [f"10.6.0.{n}"]} for n, mac in ((1, A), (2, B))
    ]
    found = plan({"subnets": [NEW], "ports": ports}, state_with(owned), prune=True)
    assert first(found) == {"data": False}
    assert quota_demand(found)["subnet"] == 1  # both exist for a while
    # The new subnet needs its addresses first, and a port still has one.
    with pytest.raises(UserError, match="Cannot remove subnet 'data': port 'm2' uses it"):
        plan(
            {
                "subnets": [{**NEW, "cidr": "10.5.0.0/17"}],
                "ports": [
                    {"name": "m1", "network": "data", "mac": A, "addresses": []},
                    {"name": "m2", "network": "data", "mac": B, "addresses": ["10.5.0.2"]},
                ],
            },
            state_with(owned),
            prune=True,
        )
    found = plan({"subnets": [{**NEW, "cidr": "10.5.0.0/17"}]}, state_with(), prune=True)
    assert first(found) == {"data": True}
    assert quota_demand(found)["subnet"] == 0


def test_a_network_is_removed_last() -> None:
    desired = {"name": "new", "vlan": 12, "physical_network": "phys"}
    found = plan({"networks": [desired]}, state(network=[network("old")]), prune=True)
    assert first(found) == {"old": False}
    assert quota_demand(found)["network"] == 1


def test_a_network_without_vlan_is_removed_last() -> None:
    raw = {key: value for key, value in network("old").items() if not key.startswith("provider:")}
    found = plan({"networks": [{"name": "new"}]}, state(network=[raw]), prune=True)
    assert first(found) == {"old": False}


def test_security_groups_are_removed_last() -> None:
    found = plan({"security_groups": [{"name": "new"}]}, state(security_group=[group("old")]), prune=True)
    assert first(found) == {"old": False}
    assert quota_demand(found)["security_group"] == 1


# Objects of other projects with the same names


def test_networks_of_other_projects_with_the_same_name_are_distinct() -> None:
    foreign = {**network("data", 12, project_id="p2"), "id": "theirs"}
    raw = {
        "network": [network("data"), foreign],
        "subnet": [
            subnet("data", "data", "10.5.0.0/16"),
            {**subnet("data", "data", "10.6.0.0/16", project_id="p2"), "id": "s2", "network_id": "theirs"},
        ],
        "port": [{**port("vm", A, "10.5.0.1", project_id="p2"), "network_id": "theirs"}],
    }
    desired = {"name": "m1", "network": "data", "mac": A, "addresses": ["10.5.0.1"]}
    assert changes(plan({"ports": [desired], "subnets": [{**NEW, "cidr": "10.6.0.0/16"}]}, state(**raw))) == [
        ("subnet", "new", "create"),
        ("port", "m1", "create"),
    ]
    with pytest.raises(UserError, match=r"Cannot use address 10\.6\.0\.1 for port 'm1': no subnet of network"):
        plan({"ports": [{**desired, "addresses": ["10.6.0.1"]}]}, state(**raw))
    # An owned port on the other network is recreated on the desired one.
    owned = {**port("m1", A, "10.6.0.1"), "network_id": "theirs"}
    assert changes(plan({"ports": [desired]}, state(**{**raw, "port": [owned]}))) == [("port", "m1", "recreate")]
    # A new network is none of the existing ones.
    del raw["network"][0], raw["subnet"][0]
    new = {"networks": [{"name": "data", "vlan": 11, "physical_network": "phys"}]}
    assert len(changes(plan({**new, "subnets": [{**NEW, "cidr": "10.6.0.0/16"}]}, state(**raw)))) == 2


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
    ("name", "pools", "removed"),
    [
        ("pod", [pool("id-of-pod")], True),
        ("pod", [], True),
        ("pod-storage", [pool("id-of-pod-storage")], True),
        ("pod-b", [], False),  # may belong to another POD without a pool yet
        ("pod-b", [pool("id-of-pod-b", tags=["openipu.pod=pod-b"])], False),
        ("site", [pool("id-of-site")], False),  # belongs to a site; the owner has a pool in it
        ("site", [], False),
        ("pod", [pool("id-of-pod", project_id="p2", tags=[])], False),
        ("pods", [], False),
    ],
)
def test_an_address_scope_is_owned_by_name_unless_other_pools_are_in_it(name: str, pools: Any, removed: bool) -> None:
    found = changes(plan({"address_scopes": []}, state(address_scope=[scope(name)], subnet_pool=pools), prune=True))
    assert found == ([("address_scope", name, "delete")] if removed else [])


# Incomplete reads

NO_NETWORKS = {**NETWORKS, "GET /networks": {"networks": []}, "GET /subnets": {"subnets": []}}
GROUPS = {"GET /security-groups": {"security_groups": [group("g")]}}
INCOMPLETE: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    (
        {**NO_NETWORKS, "GET /networks": {"networks": [network("data", subnets=["id-of-data"])]}},
        {"state": "absent"},
        "network 'data'",
        "network 'data' refers to the missing subnet 'id-of-data'",
    ),
    (
        {**NO_NETWORKS, "GET /ports": {"ports": [port("m1", A)]}},
        {"config": {"ports": []}, "prune": ["ports"]},
        "port 'm1'",
        "port 'm1' refers to the missing network 'id-of-data'",
    ),
    (
        {**NO_NETWORKS, **GROUPS},
        {"config": {"security_groups": []}, "prune": ["security_groups"]},
        "security group 'g'",
        "no network exists, but security group 'g' does",
    ),
]


@pytest.mark.parametrize(("responses", "options", "removed", "cause"), INCOMPLETE)
def test_an_incomplete_read_blocks_removals(
    responses: dict[str, Any], options: dict[str, Any], removed: str, cause: str
) -> None:
    cloud = FakeCloud(responses)
    message = (
        f"Cannot remove {removed}: Neutron may have returned only some of the objects, since {cause}. Nothing was "
        "changed. Run the task again when Neutron returns all objects. If none is missing, set accept_incomplete_reads."
    )
    for check_mode in (True, False):
        with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
            run(OPENSTACK_POD_NETWORK, cloud, check_mode, pod="pod", **options)
    assert cloud.writes == []
    confirmed = {**options, "accept_incomplete_reads": True}
    predicted = run(OPENSTACK_POD_NETWORK, cloud, check_mode=True, pod="pod", **confirmed)
    result = run(OPENSTACK_POD_NETWORK, cloud, pod="pod", **confirmed)
    assert (result["diff"], result["changed"]) == (predicted["diff"], True)
    assert [key for key, _body in cloud.writes if key.startswith("DELETE ")]


def test_an_incomplete_read_does_not_block_the_removal_of_a_named_share() -> None:
    """The destruction of a vPOD revokes the shares of its tenant."""
    policy = {**share(), "project_id": "p1"}
    ports = [port("interface", A, device_owner="network:router_interface", device_id="of-another-project")]
    projects = {"GET /projects": {"projects": [{"id": "ida", "name": "a"}]}}
    listed = {"GET /ports": {"ports": ports}, "GET /rbac-policies": {"rbac_policies": [policy]}}
    cloud = FakeCloud({**NETWORKS, **projects, **listed})
    config = {"shares": [{"kind": "network", "name": "data", "project": "a", "state": "absent"}]}
    assert run(OPENSTACK_POD_NETWORK, cloud, pod="pod", config=config)["shares"]["removed"] == ["network/data/a"]


def test_an_incomplete_read_without_removals_blocks_nothing() -> None:
    """All objects were removed by hand, or the plan only creates objects."""
    for responses in (NO_NETWORKS, {**NO_NETWORKS, "GET /ports": {"ports": [port("vm", A, tags=[])]}}):
        assert not run(OPENSTACK_POD_NETWORK, FakeCloud(responses), pod="pod", state="absent")["changed"]
    cloud = FakeCloud({**NO_NETWORKS, **GROUPS})
    result = run(OPENSTACK_POD_NETWORK, cloud, check_mode=True, pod="pod", config={"networks": [{"name": "data"}]})
    assert result["networks"]["created"] == ["data"]
