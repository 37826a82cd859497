# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the networks, routers and security groups of three tenants of a POD, and of their name servers."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError
from ansible_collections.openipu.pod.plugins.module_utils.pod.switch_config import switch_config

from tests.unit.collection.pod.openstack.network_settings import FACTORY, HALVES, SERVERS, config, named, routed, rules

STORAGE = "storage: {vlan: 22, subnet: 10.1.7.0/24, nfs_servers: [10.1.7.9]}"
THREE = (
    "{external_network: outside, nfs_servers: [10.1.6.9], tenants: [{project: alpha}, "
    f"{{project: beta, vlan: 21, allocation: a, {STORAGE}}}, {{project: gamma, vlan: 31, allocation: b}}]}}"
)


def test_no_network_and_no_group_for_storage_belongs_to_two_tenants(pod):
    found = config(pod, THREE, tail=HALVES, networks=FACTORY.replace("}}", "}, storage: {subnet: 10.1.6.0/24}}"))
    seen = {}
    for share in found["shares"]:
        seen.setdefault(share["project"], []).append(share["name"])
    assert seen == {
        "alpha": ["test-control", "test-data", "test-storage", "test-poplar-management", "test-poplar-storage"],
        "beta": [
            "test-control-beta",
            "test-data-beta",
            "test-storage-beta",
            "test-poplar-management",
            "test-poplar-storage-beta",
        ],
        "gamma": ["test-control-gamma", "test-data-gamma", "test-poplar-management"],
    }
    assert rules(found, "poplar-storage-beta") == [
        ("egress", "tcp", 2049, "10.1.7.9/32", None),
        ("egress", "tcp", 111, "10.1.7.9/32", None),
    ]
    assert named(found["networks"])["test-storage-beta"]["vlan"] == 22
    assert named(found["subnets"])["test-storage-beta"]["cidr"] == "10.1.7.0/24"


def test_each_of_three_tenants_has_one_router_with_a_control_network(pod):
    found = config(pod, THREE, tail=HALVES)
    assert routed(found) == {
        "test": ["test-data", "test-control"],
        "test-data-beta": ["test-data-beta", "test-control-beta"],
        "test-data-gamma": ["test-data-gamma", "test-control-gamma"],
        "test-management": ["test-management"],
    }


def test_switches_carry_the_storage_networks_of_tenants(pod):
    loaded = pod.load(networks=FACTORY, rack_tail=SERVERS, tail=f"openstack: {THREE}\n{HALVES}")
    tor = next(switch for switch in loaded.racks[0].switches if switch.name == "tor")
    found = switch_config(loaded, tor)
    assert {vlan["id"]: vlan["name"] for vlan in found["vlans"]}[22] == "storage-beta"
    assert named(found["interfaces"])["Port-Channel1"]["trunk_vlans"] == [11, 12, 21, 22, 31]
    assert named(found["interfaces"])["Ethernet9/1"]["access_vlan"] == 21


def test_subnets_only_have_name_servers_that_they_reach(pod):
    options = "{dns_servers: [10.1.2.101, 10.1.5.200, 192.0.2.53], external_network: outside}"
    found = {s["name"]: s["dns_servers"] for s in config(pod, options)["subnets"]}
    all_servers = ["10.1.2.101", "10.1.5.200", "192.0.2.53"]
    assert found == {
        "test-bmc": all_servers,
        "test-gw": all_servers,
        "test-management": ["192.0.2.53"],
        "test-data": ["10.1.5.200", "192.0.2.53"],
        "test-control": ["192.0.2.53"],
    }
    isolated = config(pod, "{dns_servers: [192.0.2.53]}")["subnets"]
    assert {s["name"]: s["dns_servers"] for s in isolated}["test-data"] == []


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ("vlan: 12, subnet: 10.1.8.0/24", "VLAN 12 is used by both network 'storage'"),
        ("vlan: 21, subnet: 10.1.8.0/24", "VLAN 21 is used by both tenant 'beta'"),
        ("vlan: 22, subnet: 10.1.8.0/24", "VLAN 22 is used by both storage of tenant 'beta'"),
        ("vlan: 5000, subnet: 10.1.8.0/24", "storage network of tenant 'gamma': invalid vlan 5000"),
        ("vlan: 32, subnet: 10.1.7.0/25", "storage subnet 10.1.7.0/25 overlaps with 10.1.7.0/24 of tenant 'beta'"),
        ("vlan: 32, subnet: 10.1.5.0/25", "overlap: set 'subnet' to a separate one"),
    ],
)
def test_rejected_storage_of_tenants(pod, storage, message):
    options = THREE.replace("allocation: b", f"allocation: b, storage: {{{storage}}}")
    with pytest.raises(PodError) as rejected:
        config(pod, options, tail=HALVES)
    assert message in str(rejected.value)
