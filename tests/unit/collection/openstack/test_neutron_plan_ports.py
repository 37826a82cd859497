# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans of ports: moves, addresses, and fields of bound ports."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import UserError

from tests.unit.collection.openstack.neutron_raw import (
    changes,
    machine,
    network,
    plan,
    port,
    state_with,
)

A, B, C = "0c:42:a1:00:05:01", "0c:42:a1:00:05:02", "0c:42:a1:00:05:03"


def test_a_port_moves_with_its_mac():
    found = plan(
        {"ports": [machine("m1", B, "10.5.0.1"), machine("m2", A, "10.5.0.2")]},
        state_with(port("m1", A, "10.5.0.1"), port("m2", B, "10.5.0.2")),
        prune=True,
    )
    assert [(s.key, s.action.value, s.before["uuid"]) for s in found] == [
        ("m1", "change", f"port-{B}"),
        ("m2", "change", f"port-{A}"),
    ]


def test_a_machine_with_a_new_rnic_keeps_its_port():
    found = plan({"ports": [machine("m1", C, "10.5.0.1")]}, state_with(port("m1", A, "10.5.0.1")), prune=True)
    assert [(s.key, s.action.value, s.before["uuid"]) for s in found] == [("m1", "change", f"port-{A}")]


def test_a_chain_of_moves_leaves_one_unused_port():
    found = plan(
        {"ports": [machine("m1", C, "10.5.0.1"), machine("m2", A, "10.5.0.2")]},
        state_with(port("m1", A, "10.5.0.1"), port("m2", B, "10.5.0.2")),
        prune=True,
    )
    assert changes(found) == [("port", "m1", "create"), ("port", "m2", "change"), ("port", f"m2 (port-{B})", "delete")]


def test_a_port_whose_mac_moved_to_another_network_is_recreated():
    raw = [network("data"), network("other", 12)]
    found = plan({"ports": [machine("m1", A, "10.5.0.1")]}, state_with(port("m1", A, on="other"), network=raw))
    assert [(s.key, s.action.value, s.before["uuid"]) for s in found] == [("m1", "recreate", f"port-{A}")]


def test_an_untagged_port_of_the_same_name_is_adopted():
    found = plan({"ports": [machine("m1", A, "10.5.0.1")]}, state_with(port("m1", A, "10.5.0.1", tags=[])))
    assert changes(found) == [("port", "m1", "change")]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            port("vm", A, "10.5.0.9", tags=[]),
            f"Cannot use MAC {A} for port 'm1': it belongs to port 'vm' on",
        ),
        (port("", B, "10.5.0.1", tags=[]), f"Cannot use address 10.5.0.1 for port 'm1': it belongs to port 'port-{B}'"),
        (port("", B, "10.5.0.1", tags=[], device_owner="network:dhcp"), "it belongs to a DHCP server on network"),
        (
            port("vm", B, "10.5.0.1", tags=[], device_owner="compute:nova", project_id="p2"),
            "it belongs to port 'vm' (in use by compute:nova) on",
        ),
    ],
)
def test_macs_and_addresses_of_other_ports_are_rejected(other, message):
    with pytest.raises(UserError) as rejected:
        plan({"ports": [machine("m1", A, "10.5.0.1")]}, state_with(other))
    assert message in str(rejected.value)


@pytest.mark.parametrize(
    ("requested", "message"),
    [
        (
            machine("m1", B, "10.5.0.1"),
            "Cannot change mac of port 'm1': it is in use by compute:nova. Detach",
        ),
        (machine("m1", A, "10.5.0.7"), "Cannot change addresses of port 'm1': it is in use"),
        (machine("m2", B, "10.5.0.2"), "Cannot remove port 'm1': it is in use by compute:nova. Detach it first."),
    ],
)
def test_a_bound_port_keeps_its_fixed_fields(requested, message):
    bound = port("m1", A, "10.5.0.1", device_owner="compute:nova", device_id="vm1")
    with pytest.raises(UserError) as rejected:
        plan({"ports": [requested]}, state_with(bound), prune=True)
    assert message in str(rejected.value)
    # Fields that Nova does not depend on may change.
    same = machine("m1", A, "10.5.0.1", description="for the VM")
    assert changes(plan({"ports": [same]}, state_with(bound))) == [("port", "m1", "change")]


def test_addresses_outside_all_subnets_are_rejected():
    with pytest.raises(UserError, match=r"Cannot use address 10\.6\.0\.1 for port 'm1': no subnet of network"):
        plan({"ports": [machine("m1", A, "10.6.0.1")]}, state_with())


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (machine("m2", A, "10.5.0.2"), f"Cannot use MAC {A} for port 'm1' and port 'm2' of network 'data'. Give"),
        (machine("m2", B, "10.5.0.1"), "Cannot use address 10.5.0.1 for port 'm1' and port 'm2'"),
        ({**machine("m2", B, "10.5.0.2"), "dns_name": "m1"}, "Cannot use DNS name m1 for port"),
        (machine("m1", B, "10.5.0.2"), "Cannot plan port 'm1': it is listed twice, at ports[0] and ports[1]"),
        ({"name": "m2", "network": "dta"}, "Cannot find network 'dta' of port 'm2'. Add it to networks"),
        ({"name": "m2", "network": "data", "mac": "0c:42"}, "Cannot read the MAC of port 'm2': '0c:42'"),
        ({"name": "m2", "network": "data", "addresses": ["10.5"]}, "Cannot read an address of port 'm2': '10.5'"),
        ({"name": "m2", "network": "data", "dns_name": "a_b"}, "Cannot read the DNS name of port 'm2': 'a_b'"),
        (
            {"name": "m2", "network": "data", "port_security": False, "security_groups": ["g"]},
            "Cannot configure port 'm2': it has security groups, but no port security.",
        ),
    ],
)
def test_contradictory_ports_are_rejected(other, message):
    with pytest.raises(UserError) as rejected:
        plan({"ports": [machine("m1", A, "10.5.0.1"), other]}, state_with())
    assert message in str(rejected.value)
