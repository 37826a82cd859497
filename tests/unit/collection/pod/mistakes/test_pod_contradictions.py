# SPDX-License-Identifier: GPL-3.0-or-later
"""Values that are valid on their own and contradict each other, or that no POD can have."""

from __future__ import annotations

import pytest

from tests.unit.collection.pod.conftest import HEADER

from .test_pod_mistakes import mistakes

SERVER = ", servers: [{name: s1, roles: [controller]}], pdus: [{name: pdu1, address: 10.3.0.1}]"


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (
            "management: {gateway: 10.3.0.1}",
            "gateway of network 'management' is the address of a device, 10.3.0.1 (management of 'pdu1')",
        ),
        (
            "management: {router_address: 10.3.1.101}",
            "router_address of network 'management' is the address of a device, 10.3.1.101 (p2 of 's1')",
        ),
        (
            "data: {gateway: 10.5.1.3}",
            "gateway of network 'data' is the address of a device, 10.5.1.3 (rnic of 'm1.3')",
        ),
        (
            "management: {pools: [10.3.2.1-10.3.2.9, 10.3.0.0-10.3.1.255]}",
            "pool 10.3.0.0-10.3.1.255 of network 'management' contains 2 addresses in use, such as 10.3.0.1 "
            "(management of 'pdu1')",
        ),
        (
            "management: {gateway: 10.3.2.1, pools: [10.3.2.1-10.3.2.9]}",
            "pool 10.3.2.1-10.3.2.9 of network 'management' contains 1 address in use, such as 10.3.2.1 (the gateway)",
        ),
    ],
)
def test_addresses_of_devices_are_not_those_of_routers_and_vms(pod, network, message):
    path = pod.write(rack_tail=SERVER, tail=f"openstack:\n  networks:\n    {network}\n")
    ((line, found),) = mistakes(path)
    assert path.read_text().splitlines()[line - 1].strip() == network
    assert found.startswith(message)


def test_other_addresses_are_those_of_routers_and_vms(pod):
    network = "management: {gateway: 10.3.0.2, router_address: 10.3.0.3, pools: [10.3.0.4-10.3.1.100]}"
    cloud = pod.load(rack_tail=SERVER, tail=f"openstack: {{networks: {{{network}}}}}\n").cloud
    assert cloud.pools == {"management": ("10.3.0.4-10.3.1.100",)}


@pytest.mark.parametrize(
    ("subnet", "kind"),
    [
        ("224.0.0.0/16", "multicast"),
        ("239.1.0.0/24", "multicast"),
        ("169.254.1.0/24", "link-local"),
        ("169.0.0.0/8", "link-local"),
        ("240.0.0.0/16", "reserved"),
    ],
)
def test_no_subnet_has_special_addresses(pod, subnet, kind):
    ((line, message),) = mistakes(pod.write(networks=f"networks: {{data: {{subnet: {subnet}}}}}"))
    assert (line, message.partition(",")[0]) == (3, f"subnet {subnet} of network 'data' has {kind} addresses")


def test_no_subnet_of_openstack_has_special_addresses(pod):
    ((_line, message),) = mistakes(pod.write(tail="openstack: {control_subnet: 224.1.0.0/24}\n"))
    assert message.startswith("subnet 224.1.0.0/24 of the control networks has multicast addresses, which hosts cannot")


@pytest.mark.parametrize("networks", ["{data: {subnet: 127.5.0.0/16}}", "{data: {subnet: 127.5.0.0/16}, gw: {}}"])
def test_one_network_on_loopback_is_a_mistake(pod, networks):
    ((line, message),) = mistakes(pod.write(networks=f"networks: {networks}"))
    assert line == 3
    assert message.startswith(
        "subnet 127.5.0.0/16 of network 'data' is on loopback, but 10.1.0.0/16 of network 'bmc' is not: use loopback "
    )


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        (", servers: [{name: s1}, {name: S1}]", "name 'S1' differs from 's1' (line 6) only in upper and lower case"),
        (", pdus: [{name: M1.1}]", "name 'M1.1' differs from 'm1.1' ("),
    ],
)
def test_names_that_differ_only_in_case_are_a_mistake(pod, tail, message):
    found = [message for _line, message in mistakes(pod.write(rack_tail=tail))]
    assert len(found) == 1
    assert found[0].startswith(message)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{host: 10.3.1.101}", "{server: s1}", "controller: server 's1' does not have the role 'controller': add it"),
        (
            "name: test",
            "name: test\ndeploy: {controllers: [common]}",
            "deploy: no server has the role 'controller', so",
        ),
    ],
)
def test_the_controller_needs_its_role(pod, old, new, message):
    path = pod.write(rack_tail=", servers: [{name: s1}]")
    path.write_text(path.read_text().replace(old, new))
    ((_line, found),) = mistakes(path)
    assert found.startswith(message)


def test_units_are_numbered_from_the_lowest_up(pod):
    heights = ["5", "", "4", "3"]
    rows = [f"{HEADER},rack_unit"]
    for unit, height in enumerate(heights, 1):
        macs = ",".join(f"02:0{network}:00:00:00:0{unit}" for network in (1, 2, 5))
        rows.append(f"m{unit},rack1,{unit},{macs},{height}")
    assert mistakes(pod.write(rows=rows)) == [
        (4, "'m3' (unit 3) is mounted in U4, below 'm1' (unit 1) in U5: number the units from the lowest up")
    ]
