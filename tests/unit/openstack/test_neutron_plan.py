# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to be done so that Neutron holds what is asked for."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.quotas import check_quotas, needed
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import SentenceError
from neutron_raw import group, network, port, router, rule, seen, steps, subnet, told

A, B, C = "0c:42:a1:00:05:01", "0c:42:a1:00:05:02", "0c:42:a1:00:05:03"
DATA = {"name": "data", "vlan": 11, "physical_network": "phys"}


def machine(name, mac, address, **more):
    return {"name": name, "network": "data", "mac": mac, "addresses": [address], "dns_name": name, **more}


def there(*ports, **raw):
    raw.setdefault("network", [network("data")])
    return seen(subnet=[subnet("data", "data", "10.5.0.0/16")], port=list(ports), **raw)


def test_what_is_as_it_should_be_is_left_alone():
    config = {
        "networks": [DATA],
        "subnets": [{"name": "data", "network": "data", "cidr": "10.5.0.0/16", "gateway": "none"}],
        "ports": [machine("m1", A.upper().replace(":", "-"), "10.5.0.1", port_security=False)],
    }
    assert told(steps(config, there(port("m1", A, "10.5.0.1")))) == []


def test_what_the_server_chose_is_no_difference():
    raw = network("data", description="theirs", mtu=1500)
    assert told(steps({"networks": [DATA]}, seen(network=[raw]))) == []


def test_what_is_not_told_cannot_differ():
    raw = {key: value for key, value in network("data").items() if not key.startswith("provider:")}
    assert told(steps({"networks": [DATA]}, seen(network=[raw]))) == []


def test_an_object_without_a_tag_is_taken_over_and_one_of_another_pod_refused():
    assert told(steps({"networks": [DATA]}, seen(network=[network("data", tags=["mine"])]))) == [
        ("network", "data", "change")
    ]
    with pytest.raises(SentenceError, match="Network 'data' belongs to 'other': leave it out of config"):
        steps({"networks": [DATA]}, seen(network=[network("data", tags=["openipu.pod=other"])]))


def test_pruning_takes_what_is_tagged_and_nothing_else():
    raw = [
        network("data"),
        network("old", 12),
        network("site", 13, tags=[]),
        network("of-b", 14, tags=["openipu.pod=b"]),
    ]
    assert told(steps({"networks": [DATA]}, seen(network=raw))) == []
    assert told(steps({"networks": [DATA]}, seen(network=raw), prune=True)) == [("network", "old", "delete")]
    assert told(steps({}, seen(network=raw), prune=True)) == []


def test_objects_of_other_projects_are_nobody_we_know():
    raw = network("data", project_id="p2")
    with pytest.raises(SentenceError, match="VLAN 11 of phys is taken by network 'data' of another project"):
        steps({"networks": [DATA]}, seen(network=[raw]))


# Ports


def test_a_mac_that_moved_takes_its_port_along():
    found = steps(
        {"ports": [machine("m1", B, "10.5.0.1"), machine("m2", A, "10.5.0.2")]},
        there(port("m1", A, "10.5.0.1"), port("m2", B, "10.5.0.2")),
        prune=True,
    )
    assert [(s.key, s.action.value, s.before["uuid"]) for s in found] == [
        ("m1", "change", f"port-{B}"),
        ("m2", "change", f"port-{A}"),
    ]


def test_a_machine_with_a_new_rnic_keeps_its_port():
    found = steps({"ports": [machine("m1", C, "10.5.0.1")]}, there(port("m1", A, "10.5.0.1")), prune=True)
    assert [(s.key, s.action.value, s.before["uuid"]) for s in found] == [("m1", "change", f"port-{A}")]


def test_a_chain_of_moves_leaves_one_port_over():
    found = steps(
        {"ports": [machine("m1", C, "10.5.0.1"), machine("m2", A, "10.5.0.2")]},
        there(port("m1", A, "10.5.0.1"), port("m2", B, "10.5.0.2")),
        prune=True,
    )
    assert told(found) == [("port", "m1", "create"), ("port", "m2", "change"), ("port", f"m2 (port-{B})", "delete")]


def test_a_mac_that_moved_to_another_network_is_made_anew_there():
    raw = [network("data"), network("other", 12)]
    found = steps({"ports": [machine("m1", A, "10.5.0.1")]}, there(port("m1", A, on="other"), network=raw))
    assert [(s.key, s.action.value, s.before["uuid"]) for s in found] == [("m1", "recreate", f"port-{A}")]


def test_a_port_that_somebody_else_made_under_the_same_name_is_taken_over():
    found = steps({"ports": [machine("m1", A, "10.5.0.1")]}, there(port("m1", A, "10.5.0.1", tags=[])))
    assert told(found) == [("port", "m1", "change")]


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (port("vm", A, "10.5.0.9", tags=[]), f"MAC {A} of port 'm1' is that of port 'vm' on network 'data'"),
        (port("", B, "10.5.0.1", tags=[]), f"Address 10.5.0.1 of port 'm1' is that of port 'port-{B}'"),
        (port("", B, "10.5.0.1", tags=[], device_owner="network:dhcp"), "is that of a DHCP server on network"),
        (
            port("vm", B, "10.5.0.1", tags=[], device_owner="compute:nova", project_id="p2"),
            "is that of port 'vm', in use by compute:nova, on",
        ),
    ],
)
def test_what_others_have_is_not_taken(other, sentence):
    with pytest.raises(SentenceError) as refused:
        steps({"ports": [machine("m1", A, "10.5.0.1")]}, there(other))
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (machine("m1", B, "10.5.0.1"), "is in use by compute:nova, so its mac cannot be changed: detach it first"),
        (machine("m1", A, "10.5.0.7"), "so its addresses cannot be changed"),
        (machine("m2", B, "10.5.0.2"), "Port 'm1' is in use by compute:nova, so it cannot be removed"),
    ],
)
def test_a_port_that_a_server_has_is_not_disturbed(asked, sentence):
    bound = port("m1", A, "10.5.0.1", device_owner="compute:nova", device_id="vm1")
    with pytest.raises(SentenceError) as refused:
        steps({"ports": [asked]}, there(bound), prune=True)
    assert sentence in str(refused.value)
    # What Nova does not rely on may change.
    same = machine("m1", A, "10.5.0.1", description="for the VM")
    assert told(steps({"ports": [same]}, there(bound))) == [("port", "m1", "change")]


def test_addresses_lie_in_a_subnet_of_the_network():
    with pytest.raises(SentenceError, match=r"Address 10\.6\.0\.1 of port 'm1' is in no subnet of network 'data'"):
        steps({"ports": [machine("m1", A, "10.6.0.1")]}, there())


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (machine("m2", A, "10.5.0.2"), f"MAC {A} is given to both port 'm1' and port 'm2' of network 'data'"),
        (machine("m2", B, "10.5.0.1"), "address 10.5.0.1 is given to both port 'm1' and port 'm2'"),
        ({**machine("m2", B, "10.5.0.2"), "dns_name": "m1"}, "DNS name m1 is given to both"),
        (machine("m1", B, "10.5.0.2"), "Port 'm1' stands twice, at ports[0] and ports[1]"),
        ({"name": "m2", "network": "dta"}, "Port 'm2' names network 'dta', which does not exist: add it to networks"),
        ({"name": "m2", "network": "data", "mac": "0c:42"}, "The MAC of port 'm2' is '0c:42'"),
        ({"name": "m2", "network": "data", "addresses": ["10.5"]}, "An address of port 'm2' is '10.5'"),
        ({"name": "m2", "network": "data", "dns_name": "a_b"}, "The DNS name of port 'm2' is 'a_b'"),
        (
            {"name": "m2", "network": "data", "port_security": False, "security_groups": ["g"]},
            "is to have security groups and no port security",
        ),
    ],
)
def test_ports_that_contradict_each_other(other, sentence):
    with pytest.raises(SentenceError) as refused:
        steps({"ports": [machine("m1", A, "10.5.0.1"), other]}, there())
    assert sentence in str(refused.value)


# Networks and subnets


def test_a_vlan_that_is_taken_names_who_has_it():
    with pytest.raises(
        SentenceError, match="VLAN 11 of phys is taken by network 'theirs': give network 'data' another"
    ):
        steps({"networks": [DATA]}, seen(network=[network("theirs", tags=[])]))


def test_a_vlan_of_a_network_that_goes_is_free():
    found = steps({"networks": [DATA]}, seen(network=[network("former")]), prune=True)
    assert told(found) == [("network", "data", "create"), ("network", "former", "delete")]


def test_what_stands_on_a_network_is_not_torn_down_for_its_vlan():
    with pytest.raises(SentenceError, match="Network 'data' has vlan 12, which cannot be changed to 11: remove it"):
        steps({"networks": [DATA]}, seen(network=[network("data", 12)]))


@pytest.mark.parametrize("cidr", ["10.5.1.0/24", "10.0.0.0/8"])
def test_subnets_of_one_network_may_not_overlap(cidr):
    new = {"name": "new", "network": "data", "cidr": cidr}
    with pytest.raises(SentenceError, match=r"Subnet 'new' .* would overlap subnet 'data' \(10\.5\.0\.0/16\)"):
        steps({"subnets": [new]}, there())
    with pytest.raises(SentenceError, match=r"Subnets 'data' .* and 'new' .* of network 'data' overlap"):
        steps({"subnets": [{**new, "name": "data", "cidr": "10.5.0.0/16"}, new]}, there())


def test_subnets_of_one_router_may_not_overlap():
    config = {
        "networks": [DATA, {"name": "other", "vlan": 12, "physical_network": "phys"}],
        "subnets": [{"name": name, "network": name, "cidr": "10.5.0.0/16"} for name in ("data", "other")],
        "routers": [{"name": "r", "interfaces": [{"subnet": "data"}, {"subnet": "other"}]}],
    }
    with pytest.raises(SentenceError, match="of router 'r' overlap"):
        steps(config, seen())
    config["routers"][0]["interfaces"].pop()
    assert len(told(steps(config, seen()))) == 6


def test_pools_have_no_order_and_dns_servers_do():
    raw = subnet(
        "data",
        "data",
        "10.5.0.0/16",
        allocation_pools=[{"start": "10.5.9.1", "end": "10.5.9.9"}, {"start": "10.5.8.1", "end": "10.5.8.9"}],
        dns_nameservers=["10.2.0.1", "10.2.0.2"],
    )
    asked = {
        "name": "data",
        "network": "data",
        "cidr": "10.5.0.0/16",
        "pools": ["10.5.8.1-10.5.8.9", "10.5.9.1 - 10.5.9.9"],
    }
    found = seen(network=[network("data")], subnet=[raw])
    assert told(steps({"subnets": [{**asked, "dns_servers": ["10.2.0.1", "10.2.0.2"]}]}, found)) == []
    assert told(steps({"subnets": [{**asked, "dns_servers": ["10.2.0.2", "10.2.0.1"]}]}, found)) != []


# Security groups


SSH = {"direction": "ingress", "protocol": "tcp", "port": 22}


@pytest.mark.parametrize(
    ("asked", "raw"),
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
            ({"direction": "egress", "ethertype": "IPv6", "protocol": asked}, rule("egress", kept, ethertype="IPv6"))
            for asked, kept in (("icmp", "ipv6-icmp"), ("1", "58"), ("icmpv6", "ipv6-icmp"), ("58", "icmpv6"))
        ),
    ],
)
def test_rules_that_mean_the_same(asked, raw):
    assert (
        told(steps({"security_groups": [{"name": "g", "rules": [asked]}]}, seen(security_group=[group("g", raw)])))
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
def test_rules_that_differ(raw):
    found = steps({"security_groups": [{"name": "g", "rules": [SSH]}]}, seen(security_group=[group("g", *raw)]))
    assert told(found) == [("security_group", "g", "change")]


def test_rules_that_nobody_asked_about_stay():
    raw = [group("g", rule("egress"))]
    assert told(steps({"security_groups": [{"name": "g"}]}, seen(security_group=raw))) == []


# Routers and shares


def interface(on, address, of="r"):
    return port("", address, address, device_owner="network:router_interface", device_id=f"id-of-{of}", tags=[]) | {
        "fixed_ips": [{"subnet_id": f"id-of-{on}", "ip_address": address}]
    }


def routed(*ports):
    return seen(
        network=[network("data"), network("out", 90, project_id="p2")],
        subnet=[subnet("data", "data", "10.5.0.0/16"), subnet("more", "data", "10.6.0.0/16")],
        router=[router("r", {"network_id": "id-of-out", "enable_snat": True})],
        port=list(ports),
    )


def test_interfaces_of_a_router_are_those_and_no_others():
    asked = {"name": "r", "external_network": "out", "snat": True, "interfaces": [{"subnet": "data"}]}
    assert told(steps({"routers": [asked]}, routed(interface("data", "10.5.0.1")))) == []
    found = steps({"routers": [asked]}, routed(interface("more", "10.6.0.1")))
    assert told(found) == [("router_interface", "r/data", "create"), ("router_interface", "r/more", "delete")]
    other = {**asked, "interfaces": [{"subnet": "data", "address": "10.5.0.9"}]}
    assert told(steps({"routers": [other]}, routed(interface("data", "10.5.0.1")))) == [
        ("router_interface", "r/data", "recreate")
    ]
    assert told(steps({"routers": [{**asked, "snat": False}]}, routed(interface("data", "10.5.0.1")))) == [
        ("router", "r", "change")
    ]
    any_address = {**asked, "interfaces": [{"subnet": "data", "address": "any"}]}
    assert told(steps({"routers": [any_address]}, routed(interface("data", "10.5.0.1")))) == []


def test_a_router_goes_with_its_interfaces():
    found = steps({"routers": []}, routed(interface("data", "10.5.0.1")), prune=True)
    assert told(found) == [("router", "r", "delete"), ("router_interface", "r/data", "delete")]


def test_shares_are_by_project():
    policy = {"id": "r1", "object_id": "id-of-data", "action": "access_as_shared", "target_tenant": "ida"}
    raw = {"network": [network("data")], "share": [policy], "projects": {"a": "ida", "b": "idb"}}
    asked = [{"kind": "network", "name": "data", "project": name} for name in ("a", "b")]
    assert told(steps({"shares": asked}, seen(**raw))) == [("share", "network/data/b", "create")]
    assert told(steps({"shares": asked[1:]}, seen(**raw), prune=True)) == [
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
    found = steps(config, seen())
    assert {name: count for name, count in needed(found).items() if count} == {
        "network": 1,
        "subnet": 1,
        "port": 2,
        "security_group": 1,
        "security_group_rule": 3,
    }
    check_quotas(found, {"port": {"limit": 5, "used": 3, "reserved": 0}, "network": {"limit": -1, "used": 9}}, "p1")
    with pytest.raises(SentenceError) as refused:
        check_quotas(found, {"port": {"limit": 5, "used": 3, "reserved": 1}}, "p1")
    assert str(refused.value) == (
        "This takes 2 more ports, and the project may have 5 and has 4: raise its quota to 6 at least "
        "(openstack quota set --ports 6 p1)."
    )
