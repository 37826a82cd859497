# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans: the steps from the actual to the desired Neutron objects."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.families import desired
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.limits import check_quotas, quota_demand
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.options import CONFIG_OPTIONS
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.plan import deletions_of, plan_network
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import UserError, build_report

from tests.unit.collection.openstack.neutron_raw import (
    OWNER,
    NoLimits,
    changes,
    group,
    machine,
    network,
    plan,
    port,
    router,
    rule,
    state,
    state_with,
    subnet,
)

A, B, C = "0c:42:a1:00:05:01", "0c:42:a1:00:05:02", "0c:42:a1:00:05:03"
DATA = {"name": "data", "vlan": 11, "physical_network": "phys"}


def test_equal_objects_are_no_change():
    config = {
        "networks": [DATA],
        "subnets": [{"name": "data", "network": "data", "cidr": "10.5.0.0/16", "gateway": "none"}],
        "ports": [machine("m1", A.upper().replace(":", "-"), "10.5.0.1", port_security=False)],
    }
    assert changes(plan(config, state_with(port("m1", A, "10.5.0.1")))) == []


def test_omitted_options_are_no_change():
    raw = network("data", description="theirs", mtu=1500)
    assert changes(plan({"networks": [DATA]}, state(network=[raw]))) == []


def test_fields_that_the_api_hides_are_no_change():
    raw = {key: value for key, value in network("data").items() if not key.startswith("provider:")}
    assert changes(plan({"networks": [DATA]}, state(network=[raw]))) == []


def test_an_untagged_object_is_adopted_and_one_of_another_pod_rejected():
    assert changes(plan({"networks": [DATA]}, state(network=[network("data", tags=["mine"])]))) == [
        ("network", "data", "change")
    ]
    with pytest.raises(UserError, match=r"Cannot change network 'data': it belongs to 'other'\. Remove it"):
        plan({"networks": [DATA]}, state(network=[network("data", tags=["openipu.pod=other"])]))


def test_pruning_removes_tagged_objects_only():
    raw = [
        network("data"),
        network("old", 12),
        network("site", 13, tags=[]),
        network("of-b", 14, tags=["openipu.pod=b"]),
    ]
    assert changes(plan({"networks": [DATA]}, state(network=raw))) == []
    assert changes(plan({"networks": [DATA]}, state(network=raw), prune=True)) == [("network", "old", "delete")]
    assert changes(plan({}, state(network=raw), prune=True)) == []


def test_objects_of_other_projects_are_not_adopted():
    raw = network("data", project_id="p2")
    with pytest.raises(UserError, match="VLAN 11 of phys belongs to network 'data' of another project"):
        plan({"networks": [DATA]}, state(network=[raw]))


# Networks and subnets


def test_a_taken_vlan_names_its_network():
    with pytest.raises(
        UserError, match=r"Cannot create network 'data': VLAN 11 of phys belongs to network 'theirs'\. Set"
    ):
        plan({"networks": [DATA]}, state(network=[network("theirs", tags=[])]))


def test_a_network_is_not_recreated_for_its_vlan():
    with pytest.raises(UserError, match=r"Cannot change vlan of network 'data' from 12 to 11: .*Remove the object"):
        plan({"networks": [DATA]}, state(network=[network("data", 12)]))


@pytest.mark.parametrize("cidr", ["10.5.1.0/24", "10.0.0.0/8"])
def test_subnets_of_one_network_may_not_overlap(cidr):
    new = {"name": "new", "network": "data", "cidr": cidr}
    with pytest.raises(UserError, match=r"Cannot create subnet 'new' .* overlaps subnet 'data' \(10\.5\.0\.0/16\)"):
        plan({"subnets": [new]}, state_with())
    with pytest.raises(UserError, match=r"Cannot use subnets 'data' .* and 'new' .* of network 'data': they"):
        plan({"subnets": [{**new, "name": "data", "cidr": "10.5.0.0/16"}, new]}, state_with())


def test_subnets_of_one_router_may_not_overlap():
    config = {
        "networks": [DATA, {"name": "other", "vlan": 12, "physical_network": "phys"}],
        "subnets": [{"name": name, "network": name, "cidr": "10.5.0.0/16"} for name in ("data", "other")],
        "routers": [{"name": "r", "interfaces": [{"subnet": "data"}, {"subnet": "other"}]}],
    }
    with pytest.raises(UserError, match="of router 'r': they overlap"):
        plan(config, state())
    config["routers"][0]["interfaces"].pop()
    assert len(changes(plan(config, state()))) == 6


def test_pools_have_no_order_and_dns_servers_do():
    raw = subnet(
        "data",
        "data",
        "10.5.0.0/16",
        allocation_pools=[{"start": "10.5.9.1", "end": "10.5.9.9"}, {"start": "10.5.8.1", "end": "10.5.8.9"}],
        dns_nameservers=["10.2.0.1", "10.2.0.2"],
    )
    subnet_options = {
        "name": "data",
        "network": "data",
        "cidr": "10.5.0.0/16",
        "pools": ["10.5.8.1-10.5.8.9", "10.5.9.1 - 10.5.9.9"],
    }
    found = state(network=[network("data")], subnet=[raw])
    assert changes(plan({"subnets": [{**subnet_options, "dns_servers": ["10.2.0.1", "10.2.0.2"]}]}, found)) == []
    assert changes(plan({"subnets": [{**subnet_options, "dns_servers": ["10.2.0.2", "10.2.0.1"]}]}, found)) != []


def test_an_empty_list_removes_dns_servers_and_an_omitted_one_keeps_them():
    raw = subnet("data", "data", "10.5.0.0/16", dns_nameservers=["10.2.0.1"])
    found = state(network=[network("data")], subnet=[raw])
    options = {"name": "data", "network": "data", "cidr": "10.5.0.0/16"}
    assert changes(plan({"subnets": [options]}, found)) == []
    assert changes(plan({"subnets": [{**options, "dns_servers": []}]}, found)) == [("subnet", "data", "change")]


# Security groups


SSH = {"direction": "ingress", "protocol": "tcp", "port": 22}


@pytest.mark.parametrize(
    ("requested", "raw"),
    [
        (SSH, rule("ingress", "tcp", 22)),
        ({**SSH, "protocol": "TCP", "remote": "0.0.0.0/0"}, rule("ingress", "6", 22)),
        ({**SSH, "remote": "10.1.0.0/16"}, rule("ingress", "tcp", 22, remote_ip_prefix="10.1.0.0/16")),
        ({**SSH, "remote_group": "g"}, rule("ingress", "tcp", 22, remote_group_id="id-of-g")),
        ({"direction": "egress"}, rule("egress", remote_ip_prefix="0.0.0.0/0")),
        ({"direction": "egress", "protocol": "icmp", "port": 8}, rule("egress", "icmp", 8, port_range_max=None)),
        ({**SSH, "description": "shell"}, rule("ingress", "tcp", 22, description="another")),
        ({**SSH, "port": 1, "port_max": 65535}, rule("ingress", "tcp")),
        ({**SSH, "protocol": "udp", "port": 1, "port_max": 65535}, rule("ingress", "17")),
        *(
            (
                {"direction": "egress", "ethertype": "IPv6", "protocol": requested},
                rule("egress", kept, ethertype="IPv6"),
            )
            for requested, kept in (("icmp", "ipv6-icmp"), ("1", "58"), ("icmpv6", "ipv6-icmp"), ("58", "icmpv6"))
        ),
    ],
)
def test_equivalent_rules_are_no_change(requested, raw):
    assert (
        changes(
            plan({"security_groups": [{"name": "g", "rules": [requested]}]}, state(security_group=[group("g", raw)]))
        )
        == []
    )


@pytest.mark.parametrize(
    "raw",
    [
        (),
        (rule("ingress", "tcp", 23),),
        (rule("ingress", "tcp", 22), rule("egress")),
        (rule("ingress", "tcp", 22, remote_address_group_id="ag"),),
        (rule("ingress", "tcp", 22, ethertype="IPv6"),),
        (rule("ingress", "tcp"),),
    ],
)
def test_different_rules_are_a_change(raw):
    found = plan({"security_groups": [{"name": "g", "rules": [SSH]}]}, state(security_group=[group("g", *raw)]))
    assert changes(found) == [("security_group", "g", "change")]


def test_the_diff_of_a_group_has_only_the_rules_that_differ():
    raw = group("g", rule("ingress", "tcp", 22), rule("ingress", "tcp", 23), rule("egress"))
    found = plan({"security_groups": [{"name": "g", "rules": [SSH]}]}, state(security_group=[raw]))
    diff = build_report(found, [], diff=True).diff
    rules = {side: diff[side]["security_groups"]["g"]["rules"] for side in ("before", "after")}
    assert rules["after"] == []
    assert [(each["direction"], each.get("port")) for each in rules["before"]] == [("egress", None), ("ingress", 23)]


def test_omitted_rules_stay():
    raw = [group("g", rule("egress"))]
    assert changes(plan({"security_groups": [{"name": "g"}]}, state(security_group=raw))) == []


# Routers and shares


def interface(on, address, of="r"):
    return port("", address, address, device_owner="network:router_interface", device_id=f"id-of-{of}", tags=[]) | {
        "fixed_ips": [{"subnet_id": f"id-of-{on}", "ip_address": address}]
    }


def routed(*ports, **more):
    return state(
        network=[network("data"), network("out", 90, project_id="p2", **{"router:external": True})],
        subnet=[subnet("data", "data", "10.5.0.0/16"), subnet("more", "data", "10.6.0.0/16")],
        router=[router("r", {"network_id": "id-of-out", "enable_snat": True})],
        port=list(ports),
        **more,
    )


def test_listed_interfaces_of_a_router_replace_all_others():
    router_options = {"name": "r", "external_network": "out", "snat": True, "interfaces": [{"subnet": "data"}]}
    assert changes(plan({"routers": [router_options]}, routed(interface("data", "10.5.0.1")))) == []
    found = plan({"routers": [router_options]}, routed(interface("more", "10.6.0.1")))
    assert changes(found) == [("router_interface", "r/data", "create"), ("router_interface", "r/more", "delete")]
    other = {**router_options, "interfaces": [{"subnet": "data", "address": "10.5.0.9"}]}
    assert changes(plan({"routers": [other]}, routed(interface("data", "10.5.0.1")))) == [
        ("router_interface", "r/data", "recreate")
    ]
    assert changes(plan({"routers": [{**router_options, "snat": False}]}, routed(interface("data", "10.5.0.1")))) == [
        ("router", "r", "change")
    ]
    any_address = {**router_options, "interfaces": [{"subnet": "data", "address": "any"}]}
    assert changes(plan({"routers": [any_address]}, routed(interface("data", "10.5.0.1")))) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "missing",
            "does not exist. Create it (openstack network create --external missing), or omit external_network",
        ),
        ("data", "is not external. Name an external network, or omit external_network in pod.yml."),
    ],
)
def test_a_gateway_needs_an_external_network(name, message):
    with pytest.raises(UserError) as failure:
        plan({"routers": [{"name": "r", "external_network": name}]}, routed())
    assert failure.value.message.startswith(f"Cannot use network '{name}' for the gateway of router 'r': it {message}")
    new = {"networks": [{"name": "new"}], "routers": [{"name": "r2", "external_network": "new"}]}
    assert ("router", "r2", "create") in changes(plan(new, routed()))


def test_a_router_is_removed_with_its_interfaces():
    found = plan({"routers": []}, routed(interface("data", "10.5.0.1")), prune=True)
    assert changes(found) == [("router", "r", "delete"), ("router_interface", "r/data", "delete")]
    policy = {"id": "r1", "object_id": "id-of-data", "action": "access_as_shared", "target_tenant": "ida"}
    others = routed(interface("data", "10.5.0.1"), port("m1", A, "10.5.0.2"), share=[policy], projects={"a": "ida"})
    assert changes(plan({"routers": []}, others, prune=True)) == changes(found), "kinds without options are kept"


def test_a_removed_network_leaves_the_interfaces_of_other_routers():
    found = plan({"networks": [DATA]}, routed(interface("data", "10.5.0.1")), prune=False)
    assert changes(found) == []
    old = state(
        network=[network("data"), network("old", 12)],
        subnet=[subnet("data", "data", "10.5.0.0/16")],
        router=[router("r"), router("unused")],
        port=[interface("data", "10.5.0.1")],
    )
    unchanged = {"name": "r"}
    assert changes(plan({"routers": [unchanged], "networks": [DATA]}, old, prune=True)) == [
        ("network", "old", "delete"),
        ("router", "unused", "delete"),
    ]
    assert changes(plan({"networks": [DATA]}, old, prune=True)) == [("network", "old", "delete")]


def test_shares_are_by_project():
    policy = {"id": "r1", "object_id": "id-of-data", "action": "access_as_shared", "target_tenant": "ida"}
    raw = {"network": [network("data")], "share": [policy], "projects": {"a": "ida", "b": "idb"}}
    shares = [{"kind": "network", "name": "data", "project": name} for name in ("a", "b")]
    assert changes(plan({"shares": shares}, state(**raw))) == [("share", "network/data/b", "create")]
    assert changes(plan({"shares": shares[1:]}, state(**raw), prune=True)) == [
        ("share", "network/data/b", "create"),
        ("share", "network/data/a", "delete"),
    ]


# Quotas


def test_quotas():
    config = {
        "networks": [DATA],
        "ports": [machine("m1", A, "10.5.0.1"), machine("m2", B, "10.5.0.2")],
        "security_groups": [{"name": "g", "rules": [SSH]}],
        "subnets": [{"name": "data", "network": "data", "cidr": "10.5.0.0/16"}],
    }
    found = plan(config, state())
    assert {name: count for name, count in quota_demand(found).items() if count} == {
        "network": 1,
        "subnet": 1,
        "port": 2,
        "security_group": 1,
        "security_group_rule": 3,
    }
    check_quotas(found, {"port": {"limit": 5, "used": 3, "reserved": 0}, "network": {"limit": -1, "used": 9}}, "p1")
    with pytest.raises(UserError) as rejected:
        check_quotas(found, {"port": {"limit": 5, "used": 3, "reserved": 1}}, "p1")
    assert str(rejected.value) == (
        "Cannot create 2 more ports: the quota of the project is 5, and 4 are used. Raise it to at least 6 "
        "(openstack quota set --ports 6 p1)."
    )


# Purity


def test_a_plan_leaves_its_inputs_unchanged():
    config = {
        "networks": [DATA],
        "ports": [machine("m1", B, "10.5.0.1"), {"name": "m3", "network": "data", "mac": C, "subnets": ["data"]}],
        "routers": [{"name": "r", "external_network": "none", "interfaces": [{"subnet": "data"}]}],
    }
    actual = state_with(
        port("m1", A, "10.5.0.1"), port("m2", B, "10.5.0.2"), port("m3", C, "10.5.0.3"), router=[router("r")]
    )
    objects, deletions = desired(config, OWNER), deletions_of(config, CONFIG_OPTIONS)
    inputs = (objects, actual, deletions)
    before = copy.deepcopy(inputs)
    first = plan_network(objects, actual, OWNER, deletions, NoLimits())
    assert ("port", "m1", "change") in changes(first)  # a moved port: its actual name changes in the plan only
    assert any(step.before["name"] != "m2" for step in first if step.before and step.before["uuid"] == f"port-{B}")
    assert inputs == before
    assert plan_network(objects, actual, OWNER, deletions, NoLimits()) == first


def test_a_plan_is_checked_against_the_quotas_of_the_cloud():
    class FullProject(NoLimits):
        def quotas(self):
            return {"port": {"limit": 5, "used": 5}}

    with pytest.raises(UserError, match=r"Cannot create 1 more port.*--ports 6 p1\)"):
        plan({"ports": [machine("m1", A, "10.5.0.1")]}, state_with(), limits=FullProject())
    same = {"ports": [machine("m1", A, "10.5.0.1")]}
    assert changes(plan(same, state_with(port("m1", A, "10.5.0.1")), limits=FullProject())) == []


def test_messages_name_kinds_with_spaces():
    groups = [{"name": "web"}, {"name": "web"}]
    message = r"^Cannot plan security group 'web': it is listed twice, at security_groups\[0\] and security_groups\[1\]"
    with pytest.raises(UserError, match=message):
        plan({"security_groups": groups}, state())
