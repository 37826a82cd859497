# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans for renamed networks and subnets, and for objects that are down."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.request_bodies import change_body

from tests.unit.collection.openstack.neutron_raw import PROJECT, changes, network, plan, port, router, state, subnet

MAC = "0c:42:a1:00:05:01"
DATA = {"name": "data", "vlan": 11, "physical_network": "phys"}
CONFIG = {
    "networks": [DATA],
    "subnets": [{"name": "data", "network": "data", "cidr": "10.5.0.0/16"}],
    "ports": [{"name": "m1", "network": "data", "mac": MAC, "addresses": ["10.5.0.1"]}],
    "routers": [{"name": "r", "interfaces": [{"subnet": "data"}]}],
}
INTERFACE = {
    "device_owner": "network:router_interface",
    "device_id": "id-of-r",
    "fixed_ips": [{"subnet_id": "id-of-data", "ip_address": "10.5.0.254"}],
}


def actual(**names: str) -> Any:
    """Return the actual state, in which the network or the subnet has another name."""
    return state(
        network=[network("data", name=names.get("network", "data"))],
        subnet=[subnet("data", "data", "10.5.0.0/16", name=names.get("subnet", "data"))],
        port=[port("m1", MAC, "10.5.0.1"), port("", "0c:42:a1:00:05:99", **INTERFACE)],
        router=[router("r")],
    )


@pytest.mark.parametrize("kind", ["network", "subnet"])
@pytest.mark.parametrize("prune", [False, True])
def test_a_renamed_object_gets_its_name_back(kind: str, prune: bool) -> None:
    steps = plan(CONFIG, actual(**{kind: "renamed"}), prune=prune)
    assert changes(steps) == [(kind, "data", "change")]
    (step,) = [step for step in steps if step.action.value == "change"]
    assert (step.before["former_name"], step.before["uuid"]) == ("renamed", "id-of-data")
    assert change_body(step, lambda family, name: name) == {"name": "data"}


def test_both_names_are_restored() -> None:
    steps = plan(CONFIG, actual(network="one", subnet="two"), prune=True)
    assert changes(steps) == [("network", "data", "change"), ("subnet", "data", "change")]


CONTROL = "10.4.0.0/16"  # of all control networks, which differ in their routers


def control_config(*names: str) -> dict[str, Any]:
    """Return the desired control networks, for which Neutron selects the segments."""
    return {
        "networks": [{"name": name, "port_security": True} for name in names],
        "subnets": [{"name": name, "network": name, "cidr": CONTROL} for name in names],
        "routers": [{"name": f"r-{name}", "interfaces": [{"subnet": name}]} for name in names],
    }


def control_state(**actual: tuple[str, str]) -> Any:
    """Return the actual control networks. The values are the actual names of the network and of its subnet."""
    tunnel = {"provider:network_type": "geneve", "provider:physical_network": None}
    interface = {"device_owner": "network:router_interface"}
    found: dict[str, list[Any]] = {"network": [], "subnet": [], "port": [], "router": []}
    for number, (name, (network_name, subnet_name)) in enumerate(actual.items()):
        fixed = [{"subnet_id": f"id-of-{name}", "ip_address": "10.4.255.254"}]
        found["network"].append(network(name, 500 + number, name=network_name, **tunnel))
        found["subnet"].append(subnet(name, name, CONTROL, name=subnet_name))
        mac = f"0c:42:a1:00:05:{number:02}"
        found["port"].append(port("", mac, on=name, device_id=f"id-of-r-{name}", fixed_ips=fixed, **interface))
        found["router"].append(router(f"r-{name}"))
    return state(**found)


@pytest.mark.parametrize("prune", [False, True])
def test_a_renamed_network_without_a_vlan_gets_its_name_back(prune: bool) -> None:
    found = control_state(a=("renamed", "a"), b=("b", "b"))
    steps = plan(control_config("a", "b"), found, prune=prune)
    assert changes(steps) == [("network", "a", "change")]
    (step,) = [step for step in steps if step.action.value == "change"]
    assert (step.before["former_name"], step.before["uuid"]) == ("renamed", "id-of-a")
    assert change_body(step, lambda family, name: name) == {"name": "a"}


def test_names_of_networks_without_a_vlan_and_of_their_subnets_are_restored() -> None:
    """The routers identify them, since all control networks have the same prefix."""
    found = control_state(a=("one", "x"), b=("two", "y"))
    expected = [(kind, name, "change") for kind in ("network", "subnet") for name in ("a", "b")]
    steps = plan(control_config("a", "b"), found, prune=True)
    assert changes(steps) == expected
    assert {step.key: step.before["uuid"] for step in steps if step.family.kind == "network"} == {
        "a": "id-of-a",
        "b": "id-of-b",
    }


def test_a_network_of_a_removed_tenant_is_not_renamed_for_a_new_one() -> None:
    """Both have the same addresses, but a tenant must not get the ports of another one."""
    steps = plan(control_config("new"), control_state(old=("old", "old")))
    assert changes(steps)[:2] == [("network", "new", "create"), ("subnet", "new", "create")]
    assert not [change for change in changes(steps) if change[2] != "create"]


def isolated_config(**projects: str | None) -> dict[str, Any]:
    """Return desired control networks without routers, each with the project that it is shared with, if any."""
    config = {name: items for name, items in control_config(*projects).items() if name != "routers"}
    config["shares"] = [{"kind": "network", "name": name, "project": to} for name, to in projects.items() if to]
    return config


def isolated_state(**networks: tuple[str, ...]) -> Any:
    """Return actual control networks without routers, whose subnets were renamed too, with the projects of shares."""
    found = control_state(**{name: (f"their-{name}", f"their-{name}") for name in networks})
    shares = [
        {
            "id": f"{name}-{target}",
            "project_id": PROJECT,
            "object_type": "network",
            "object_id": f"id-of-{name}",
            "action": "access_as_shared",
            "target_tenant": target,
        }
        for name, targets in networks.items()
        for target in targets
    ]
    raw = {**found.raw, "port": [], "router": [], "share": shares}
    return state({"team": "id-of-team", "crew": "id-of-crew"}, **raw)


@pytest.mark.parametrize("prune", [False, True])
@pytest.mark.parametrize(("project", "shares"), [(None, ()), (None, ("id-of-vpod",)), ("team", ("id-of-team",))])
def test_a_renamed_network_without_a_vlan_and_a_router_gets_its_name_back(
    project: str | None, shares: tuple[str, ...], prune: bool
) -> None:
    steps = plan(isolated_config(a=project), isolated_state(a=shares), prune=prune)
    found = [change for change in changes(steps) if change[0] != "share"]
    assert found == [("network", "a", "change"), ("subnet", "a", "change")]
    assert {step.before["uuid"] for step in steps if step.family.kind in ("network", "subnet")} == {"id-of-a"}


def test_shares_identify_the_networks_of_tenants() -> None:
    """All control networks have the same prefix."""
    found = isolated_state(a=("id-of-team",), b=("id-of-crew",))
    steps = plan(isolated_config(a="team", b="crew"), found)
    assert {step.key: step.before["uuid"] for step in steps if step.family.kind == "network"} == {
        "a": "id-of-a",
        "b": "id-of-b",
    }


@pytest.mark.parametrize(
    ("desired", "actual"),
    [
        ({"a": "team"}, {"x": ("id-of-crew",)}),  # of a removed tenant
        ({"a": "team"}, {"x": ()}),
        ({"a": "unknown"}, {"x": ("id-of-crew",)}),
        ({"a": None, "b": None}, {"x": ()}),  # either could be the renamed one
        ({"a": None}, {"x": (), "y": ()}),
    ],
)
def test_networks_without_a_router_are_not_confused(desired: dict[str, Any], actual: dict[str, Any]) -> None:
    found = changes(plan(isolated_config(**desired), isolated_state(**actual)))
    assert {change[2] for change in found} == {"create"}
    assert [change[1] for change in found if change[0] == "network"] == list(desired)


def test_a_network_with_a_router_or_a_vlan_is_another_one() -> None:
    with_router = control_state(x=("x", "x"))
    assert changes(plan(isolated_config(a=None), with_router))[0] == ("network", "a", "create")
    config = isolated_config(a=None)
    config["networks"].append({"name": "data", "physical_network": "phys", "vlan": 11})
    with_vlan = state(network=[network("x", 11)], subnet=[subnet("x", "x", CONTROL)])
    assert ("network", "a", "create") in changes(plan(config, with_vlan))


def test_a_renamed_network_with_a_vlan_of_neutron_gets_its_name_back() -> None:
    with_vlan = state(network=[network("x", 500)], subnet=[subnet("x", "x", CONTROL)])
    assert changes(plan(isolated_config(a=None), with_vlan)) == [("network", "a", "change"), ("subnet", "a", "change")]


@pytest.mark.parametrize("tags", [[], ["openipu.pod=other"]])
def test_networks_without_a_vlan_of_others_are_not_renamed(tags: list[str]) -> None:
    config = {"networks": [{"name": "a"}], "subnets": [{"name": "a", "network": "a", "cidr": CONTROL}]}
    theirs = subnet("a", "a", CONTROL, name="theirs", tags=tags)
    found = state(network=[network("a", 500, name="theirs", tags=tags)], subnet=[theirs])
    assert changes(plan(config, found)) == [("network", "a", "create"), ("subnet", "a", "create")]


def test_subnets_that_exchanged_their_names_are_not_confused() -> None:
    config = {"subnets": [{"name": "a", "network": "data", "cidr": "10.5.0.0/17"}]}
    found = state(network=[network("data")], subnet=[subnet("b", "data", "10.5.128.0/17")])
    assert changes(plan(config, found)) == [("subnet", "a", "create")]
    # The subnet with this prefix is the desired one of another name.
    config["subnets"].append({"name": "b", "network": "data", "cidr": "10.5.128.0/17"})
    assert changes(plan(config, found)) == [("subnet", "a", "create")]


@pytest.mark.parametrize("tags", [[], ["openipu.pod=other"]])
def test_objects_of_others_are_not_renamed(tags: list[str]) -> None:
    found = state(
        network=[network("data", tags=[])], subnet=[subnet("s", "data", "10.5.0.0/16", name="theirs", tags=tags)]
    )
    config = {"subnets": [{"name": "data", "network": "data", "cidr": "10.5.0.0/24"}]}
    with pytest.raises(Exception, match=r"it overlaps subnet 'theirs' \(10.5.0.0/16\)"):
        plan(config, found)


def test_objects_that_are_down_are_noticed() -> None:
    down = {"admin_state_up": False}
    found = state(
        network=[network("data", **down)],
        subnet=[subnet("data", "data", "10.5.0.0/16")],
        port=[port("m1", MAC, "10.5.0.1", **down), port("", "0c:42:a1:00:05:99", **INTERFACE)],
        router=[router("r", **down)],
    )
    steps = plan(CONFIG, found)
    assert changes(steps) == [("network", "data", "change"), ("port", "m1", "change"), ("router", "r", "change")]
    bodies = [change_body(step, lambda family, name: name) for step in steps if step.action.value == "change"]
    assert bodies == [{"admin_state_up": True}] * 3
    kept = {name: [{**item, **down} for item in CONFIG[name]] for name in ("networks", "ports", "routers")}
    assert changes(plan(kept, found)) == []
