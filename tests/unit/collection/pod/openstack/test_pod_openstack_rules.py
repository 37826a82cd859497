# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the security groups of a POD: which hosts reach each other."""

from __future__ import annotations

import pytest

from tests.unit.collection.pod.openstack.network_settings import (
    SERVERS,
    config,
    rules,
)


def test_rules_of_the_controller(pod):
    found = config(pod, "{dns_servers: [10.1.2.101], management_servers: [192.0.2.7]}")
    dns = [("egress", protocol, 53, "10.1.2.101/32", None) for protocol in ("udp", "tcp")]
    assert rules(found, "controller-bmc") == [
        ("egress", "icmp", None, "10.1.1.0/24", None),
        ("egress", "tcp", 22, "10.1.1.0/24", None),
        ("egress", "tcp", 443, "10.1.1.0/24", None),
        ("egress", "udp", 623, "10.1.1.0/24", None),
        ("ingress", "udp", 514, "10.1.1.0/24", None),
        ("ingress", "tcp", 514, "10.1.1.0/24", None),
        *dns,
    ]
    assert rules(found, "controller-gw") == [
        ("egress", "icmp", None, "10.1.2.0/24", None),
        ("egress", "tcp", 22, "10.1.2.0/24", None),
        ("egress", "tcp", 2112, "10.1.2.0/24", None),
        ("egress", "tcp", 8080, "10.1.2.0/24", None),
        ("ingress", "udp", 514, "10.1.2.0/24", None),
        ("ingress", "tcp", 514, "10.1.2.0/24", None),
        *(("ingress", "tcp", port, "192.0.2.7/32", None) for port in (22, 9100, 3000, 9090)),
        *dns,
    ]
    assert rules(found, "controller-management")[2:] == [
        ("ingress", "tcp", 22, None, None),
        ("ingress", "tcp", 8090, None, "test-poplar-management"),
        *(("ingress", "tcp", port, "192.0.2.7/32", None) for port in (9100, 3000, 9090)),
        ("ingress", "tcp", 9090, None, "test-poplar-management"),
    ]


def test_rules_of_a_control_instance(pod):
    controllers = SERVERS.replace("{name: s1,", "{name: s1, roles: [controller],")
    found = config(pod, "{dns_servers: [10.1.2.101], management_servers: [192.0.2.7]}", rack_tail=controllers)
    dns = [("egress", protocol, 53, "10.1.2.101/32", None) for protocol in ("udp", "tcp")]
    logs = [[("ingress", protocol, 514, f"10.1.{net}.0/24", None) for protocol in ("udp", "tcp")] for net in (1, 2)]
    assert rules(found, "control-instance-bmc") == [*logs[0], *dns]
    assert rules(found, "control-instance-gw") == [
        *logs[1],
        *(("ingress", "tcp", port, "192.0.2.7/32", None) for port in (22, 9100, 3000, 9090)),
        *dns,
        ("egress", "tcp", 2112, "10.1.2.0/24", None),
        ("egress", "tcp", 8090, "10.1.2.101/32", None),
    ]


@pytest.mark.parametrize(
    ("controller", "addresses"),
    [
        ("{server: s1}", ["10.1.2.101"]),  # in the management network, which VMs do not reach
        ("{host: 10.1.2.9}", ["10.1.2.9", "10.1.2.101"]),  # a virtual address
        ("{host: 10.1.2.101}", ["10.1.2.101"]),
        ("{host: 192.0.2.9}", ["10.1.2.101"]),
        ("{host: vipu.example}", ["10.1.2.101"]),
    ],
)
def test_vms_reach_the_controller_in_the_network_of_the_gateways(pod, controller, addresses):
    servers = SERVERS.replace("{name: s1,", "{name: s1, roles: [controller],")
    found = config(pod, tail=f"controller: {controller}\n", drop="controller:", rack_tail=servers)
    for group in ("controller-gw", "control-instance-gw"):
        allowed = [rule[3] for rule in rules(found, group) if rule[2] == 8090]
        assert allowed == [f"{address}/32" for address in addresses]


def test_tenants_of_one_management_network_do_not_read_metrics_of_each_other(pod):
    found = config(pod, "{control_network: management}")
    assert [rule for rule in rules(found, "controller-management") if rule[2] == 9090] == []


def test_rules_of_poplar_vms(pod):
    found = config(pod, "{nfs_servers: [192.0.2.9]}")
    assert rules(found, "poplar-management")[2:] == [
        ("ingress", "tcp", 22, None, None),
        ("ingress", "tcp", 9100, None, "test-controller-management"),
    ]
    assert rules(found, "poplar-storage") == [
        ("egress", "tcp", 2049, "192.0.2.9/32", None),
        ("egress", "tcp", 111, "192.0.2.9/32", None),
    ]
