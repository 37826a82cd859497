# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the OpenStack networks of a POD and of the errors of the key openstack."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError
from ansible_collections.openipu.pod.plugins.module_utils.pod.openstack_networks import (
    networks,
    tenants,
)
from ansible_collections.openipu.pod.plugins.module_utils.pod.switch_config import switch_config

from tests.unit.collection.pod.openstack.network_settings import (
    FACTORY,
    HALVES,
    SERVERS,
    TWO,
    config,
    named,
    routed,
    rules,
)

FLAT = "control_network: management, "


def test_no_configuration_without_the_openstack_key(pod):
    assert pod.load().cloud is None


def test_networks_of_one_vlan_are_one_network_with_a_subnet_each(pod):
    found = config(pod)
    assert named(found["networks"]) == {
        "test-bmc-gw": {
            "name": "test-bmc-gw",
            "vlan": 13,
            "physical_network": "physnet1g",
            "port_security": True,
            "mtu": 1500,
        },
        "test-management": {
            "name": "test-management",
            "vlan": 99,
            "physical_network": "physnet1g",
            "port_security": True,
            "mtu": 1500,
        },
        "test-data": {
            "name": "test-data",
            "vlan": 11,
            "physical_network": "physnet100g",
            "port_security": False,
            "mtu": 9000,
        },
        "test-storage": {
            "name": "test-storage",
            "vlan": 12,
            "physical_network": "physnet100g",
            "port_security": True,
            "mtu": 9000,
        },
        "test-control": {"name": "test-control", "port_security": True},
    }
    assert [(s["name"], s["network"], s["cidr"]) for s in found["subnets"]] == [
        ("test-bmc", "test-bmc-gw", "10.1.1.0/24"),
        ("test-gw", "test-bmc-gw", "10.1.2.0/24"),
        ("test-management", "test-management", "10.1.3.0/24"),
        ("test-data", "test-data", "10.1.5.0/24"),
        ("test-control", "test-control", "10.4.0.0/24"),
    ]
    assert {s["gateway"] for s in found["subnets"]} == {"none"}  # no external network is set
    assert (found["routers"], found["shares"]) == ([], [])


def test_networks_of_two_vlans_are_two(pod):
    found = config(pod, networks=FACTORY.replace("gw: {", "gw: {vlan: 14, "))
    assert [n["name"] for n in found["networks"]] == [
        "test-bmc",
        "test-gw",
        "test-management",
        "test-data",
        "test-storage",
        "test-control",
    ]


def test_every_mac_of_every_machine_has_a_port(pod):
    found = config(pod)
    assert len(found["ports"]) == 3 * 4
    assert named(found["ports"])["m1.3-rnic"] == {
        "name": "m1.3-rnic",
        "network": "test-data",
        "mac": "02:05:00:00:01:03",
        "addresses": ["10.1.5.3"],
        "dns_name": "m1-3-rnic",
        "port_security": False,
    }
    assert [p["network"] for p in found["ports"][:3]] == ["test-bmc-gw", "test-bmc-gw", "test-data"]


def test_pools_exclude_addresses_of_the_pod(pod):
    subnets = named(config(pod, "{external_network: outside}")["subnets"])
    assert subnets["test-management"]["pools"] == ["10.1.3.150-10.1.3.200", "10.1.3.202-10.1.3.253"]
    assert subnets["test-management"]["gateway"] == "10.1.3.254"
    assert subnets["test-data"]["pools"] == ["10.1.5.150-10.1.5.253"]
    assert (subnets["test-gw"]["pools"], subnets["test-gw"]["gateway"]) == (["10.1.2.150-10.1.2.254"], "none")


def test_pools_of_a_plan_for_many_racks_are_in_the_last_block(pod):
    large_plan = "networks: {data: {subnet: 10.5.0.0/16}}"
    subnets = named(config(pod, networks=large_plan, rack_tail="", openstack="{external_network: x}")["subnets"])
    assert subnets["test-data"]["pools"] == ["10.5.255.1-10.5.255.253"]
    assert subnets["test-data"]["gateway"] == "10.5.255.254"


def test_the_router_connects_the_control_network_and_the_external_network(pod):
    options = "{external_network: outside, networks: {management: {gateway: 10.1.3.1}}}"
    assert config(pod, options)["routers"] == [
        {
            "name": "test",
            "interfaces": [{"subnet": "test-data"}, {"subnet": "test-control"}],
            "external_network": "outside",
            "snat": True,
        }
    ]


def test_without_control_networks_the_router_connects_the_management_network(pod):
    found = config(pod, f"{{{FLAT}external_network: outside}}")
    assert routed(found) == {"test": ["test-data", "test-management"]}
    assert "test-control" not in named(found["networks"])


def test_a_gateway_of_the_site_keeps_its_address(pod):
    site = "networks: {management: {gateway: 10.1.3.1, pools: [10.1.3.160-10.1.3.170]}}"
    options = f"{{{FLAT}external_network: outside, {site}}}"
    found = config(pod, options)
    subnet = named(found["subnets"])["test-management"]
    assert (subnet["gateway"], subnet["pools"]) == ("10.1.3.1", ["10.1.3.160-10.1.3.170"])
    assert found["routers"][0]["interfaces"][1] == {"subnet": "test-management", "address": "any"}


@pytest.mark.parametrize(("options", "control"), [("", "test-control"), (FLAT, "test-management")])
def test_tenants_see_data_storage_and_one_control_network_and_nothing_else(pod, options, control):
    shares = config(pod, f"{{{options}tenants: [{{project: alpha}}]}}")["shares"]
    assert [(s["kind"], s["name"]) for s in shares] == [
        ("network", control),
        ("network", "test-data"),
        ("network", "test-storage"),
        ("security_group", "test-poplar-management"),
        ("security_group", "test-poplar-storage"),
    ]


def test_a_second_tenant_has_a_data_network_and_a_router_of_its_own(pod):
    found = config(pod, TWO, tail=HALVES)
    assert named(found["networks"])["test-data-beta"]["vlan"] == 21
    ports = named(found["ports"])
    assert [ports[f"m1.{n}-rnic"]["network"] for n in (1, 2, 3, 4)] == 2 * ["test-data"] + 2 * ["test-data-beta"]
    assert {ports[f"m1.{n}-bmc"]["network"] for n in (1, 3)} == {"test-bmc-gw"}
    networks = {(s["project"], s["name"]) for s in found["shares"] if s["kind"] == "network"}
    assert ("alpha", "test-data") in networks
    assert ("beta", "test-data-beta") in networks
    assert not {("alpha", "test-data-beta"), ("beta", "test-data")} & networks
    assert routed(found) == {
        "test": ["test-data", "test-control"],
        "test-data-beta": ["test-data-beta", "test-control-beta"],
        "test-management": ["test-management"],
    }
    assert routed(config(pod, TWO.replace("{external", f"{{{FLAT}external", 1), tail=HALVES)) == {
        "test": ["test-data"],
        "test-data-beta": ["test-data-beta"],
        "test-management": ["test-management"],
    }


def test_management_has_no_router_when_the_site_has_one(pod):
    site = TWO.replace("tenants", "networks: {management: {gateway: 10.1.3.1}}, tenants")
    assert set(routed(config(pod, site, tail=HALVES))) == {"test", "test-data-beta"}


def test_settings_of_tenants(pod):
    loaded = pod.load(networks=FACTORY, rack_tail=SERVERS, tail=f"openstack: {TWO}\n{HALVES}")
    assert networks(loaded) == {
        "bmc": "test-bmc-gw",
        "gw": "test-bmc-gw",
        "management": "test-management",
        "data": "test-data",
        "storage": "test-storage",
    }
    found = tenants(loaded, loaded.cloud)
    assert found["*"] == found["alpha"]
    assert {name: each["data_network"] for name, each in found.items()} == {
        "*": "test-data",
        "alpha": "test-data",
        "beta": "test-data-beta",
    }
    assert {name: each.get("allocation") for name, each in found.items()} == {"*": None, "alpha": None, "beta": "b"}
    assert {share["name"] for share in found["beta"]["shares"] if share["kind"] == "network"} == {
        "test-data-beta",
        "test-control-beta",
    }
    assert {name: each["control_network"] for name, each in found.items()} == {
        "*": "test-control",
        "alpha": "test-control",
        "beta": "test-control-beta",
    }
    assert [each["common_networks"] for each in found.values()] == [[], [], []]


def test_switches_follow_the_tenants(pod):
    loaded = pod.load(networks=FACTORY, rack_tail=SERVERS, tail=f"openstack: {TWO}\n{HALVES}")
    tor = next(switch for switch in loaded.racks[0].switches if switch.name == "tor")
    found = switch_config(loaded, tor)
    assert {vlan["id"]: vlan["name"] for vlan in found["vlans"]} == {11: "data", 12: "storage", 21: "data-beta"}
    ports = named(found["interfaces"])
    assert [ports[f"Ethernet{8 + unit}/1"]["access_vlan"] for unit in (1, 2, 3, 4)] == [11, 11, 21, 21]
    assert ports["Port-Channel1"]["trunk_vlans"] == [11, 12, 21]


def test_the_pod_names_default_servers(pod):
    controllers = SERVERS.replace("{name: s1,", "{name: s1, roles: [controller],")
    content = {
        "networks": FACTORY.replace("}}", "}, storage: {subnet: 10.1.6.0/24}}"),
        "rack_tail": controllers,
        "tail": HALVES,
    }
    storage = "storage: {vlan: 22, subnet: 10.1.7.0/24}"
    tenants = f"tenants: [{{project: alpha}}, {{project: beta, vlan: 21, allocation: b, {storage}}}]"
    found = config(pod, f"{{{tenants}}}", **content)
    addresses = ("10.1.2.101/32", "10.1.3.101/32")
    assert rules(found, "controller-gw")[-9:] == [
        *(("ingress", "tcp", port, address, None) for address in addresses for port in (22, 9100, 3000, 9090)),
        ("egress", "tcp", 8090, "10.1.2.101/32", None),
    ]
    assert [rule[2:4] for rule in rules(found, "controller-management")[-7:-1]] == [
        (port, address) for address in addresses for port in (9100, 3000, 9090)
    ]
    for group, subnet in (("poplar-storage", "10.1.6.0/24"), ("poplar-storage-beta", "10.1.7.0/24")):
        assert rules(found, group) == [("egress", "tcp", port, subnet, None) for port in (2049, 111)]
    # An empty list replaces the default.
    found = config(pod, f"{{management_servers: [], nfs_servers: [], {tenants}}}", **content)
    assert [rule for rule in rules(found, "controller-gw") if rule[0] == "ingress" and rule[1] == "tcp"] == [
        ("ingress", "tcp", 514, "10.1.2.0/24", None)
    ]
    assert rules(found, "poplar-storage") == []


def test_an_address_scope_for_all_subnets(pod):
    found = config(pod, "{address_scope: true}")
    assert found["address_scopes"] == [{"name": "test"}]
    assert found["subnet_pools"][0]["prefixes"] == ["10.1.1.0/24", "10.1.2.0/24", "10.1.3.0/24", "10.1.5.0/24"]
    pools = {subnet["name"]: subnet.get("subnet_pool") for subnet in found["subnets"]}
    # The control networks of several tenants have the same addresses.
    assert [name for name, pool in pools.items() if pool != "test"] == ["test-control"]


@pytest.mark.parametrize(
    ("openstack", "message"),
    [
        ("{tenant: []}", "unknown key 'tenant': did you mean 'tenants'?"),
        ("{mtu: 99}", "invalid mtu 99: use 1280 to 9216"),
        ("{dns_domain: 'a_b'}", "invalid DNS domain 'a_b': use the form pod64.example"),
        ("{dns_servers: [dns1]}", "'dns1' of dns_servers is not an address: correct it"),
        (
            "{networks: {data: {gateway: 10.1.6.1}}}",
            "gateway 10.1.6.1 is outside the subnet of network 'data' (10.1.5.0/24)",
        ),
        ("{networks: {storage: {gateway: 10.1.6.1}}}", "outside the subnet of network 'storage' (it has none)"),
        ("{networks: {data: {pools: [10.1.5.9-10.1.5.1]}}}", "of network 'data': use the form 10.1.5.150-10.1.5.250"),
        ("{tenants: [{project: a}, {project: a}]}", "tenant 'a' is used twice"),
        (
            "{tenants: [{project: a}, {project: b}]}",
            "VLAN 11 is used by both tenant 'a' (line 9) and tenant 'b'",
        ),
        ("{tenants: [{project: a, vlan: 21}]}", "a separate data network needs both 'vlan' and 'allocation'"),
        ("{tenants: [{project: a, vlan: 11, allocation: x}]}", "VLAN 11 belongs to network 'data'"),
        (
            "{tenants: [{project: a, vlan: 12, allocation: sized}]}",
            "the controller chooses the machines of allocation 'sized': list its 'machines'",
        ),
        (
            "{tenants: [{project: a, storage: {vlan: 22, subnet: 10.1.7.0/24}}]}",
            "tenant 'a' uses the storage network of the POD: set 'vlan' and 'allocation', or omit 'storage'",
        ),
        (
            "{control_subnet: 10.1.5.128/25}",
            "subnet 10.1.5.128/25 of the control networks and 10.1.5.0/24 of network 'data' overlap",
        ),
        ("{control_subnet: ten}", "invalid subnet 'ten' of the control networks: use the form 10.1.6.0/24"),
        ("{control_network: flat}", "unknown value of control_network 'flat': known are management, tenant"),
        ("{tenants: [{project: a, vlan: 21, allocation: size}]}", "unknown allocation 'size': did you mean 'sized'?"),
    ],
)
def test_rejections(pod, openstack, message):
    with pytest.raises(PodError) as rejected:
        config(pod, openstack, tail="allocations: [{id: sized, cluster: cl, size: 2}]")
    assert message in str(rejected.value)


def test_management_may_not_share_the_vlan_of_bmc(pod):
    with pytest.raises(PodError, match="networks 'bmc', 'gw' and 'management' share VLAN 13"):
        config(pod, networks=FACTORY.replace("management: {", "management: {vlan: 13, "))
