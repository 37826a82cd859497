# SPDX-License-Identifier: GPL-3.0-or-later
"""Subnets without an address for each device: one mistake for each subnet and cause, at the line of the subnet."""

from __future__ import annotations

import pytest

from .test_pod_mistakes import mistakes

ONE_RACK = {1: range(1, 19)}
TWO_RACKS = {1: range(1, 17), 2: range(1, 17)}
SMALL = "Use a larger subnet, or set the addresses in it"
SEVERAL_RACKS = "subnet 10.2.1.0/24 of network 'gw' is too small for several racks: the rule assigns "
SHARED = "networks 'bmc' and 'gw' share addresses of subnet 10.1.0.0/16: the rule assigns 32 addresses twice, such as "


@pytest.mark.parametrize(
    ("racks", "networks", "expected"),
    [
        (
            ONE_RACK,
            "data: {subnet: 10.5.0.0/28}",
            "subnet 10.5.0.0/28 of network 'data' is too small: it lacks 4 addresses, such as number 15 for rnic of "
            "'m1.15'. " + SMALL,
        ),
        (
            TWO_RACKS,
            "gw: {subnet: 10.2.1.0/24}",
            SEVERAL_RACKS + "16 addresses twice, such as 10.2.1.1 to gw of 'm1.1' and gw of 'm2.1'. " + SMALL,
        ),
        (
            TWO_RACKS,
            "gw: {subnet: 10.1.0.0/16}",
            SHARED + "10.1.1.1 to bmc of 'm1.1' and gw of 'm1.1'. Use separate subnets, or set the addresses",
        ),
    ],
    ids=["too small", "several racks", "two networks"],
)
def test_a_subnet_is_one_mistake(pod, racks, networks, expected):
    path = pod.write(networks=f"networks:\n  storage: {{vlan: 12}}\n  {networks}", racks=racks, cluster=None)
    assert mistakes(path) == [(5, expected)]


def test_bmc_and_gw_share_a_subnet_with_addresses_in_the_table(pod):
    pod.write(networks="networks: {gw: {subnet: 10.1.0.0/16}}", cluster=None)
    header, *rows = pod.machines_csv.read_text().splitlines()
    rows = [f"{header},gw_address", *(f"{row},10.1.1.{number}" for number, row in enumerate(rows, 41))]
    found = pod.load(networks="networks: {gw: {subnet: 10.1.0.0/16}}", cluster=None, rows=rows)
    assert found.machines[0].addresses["bmc"] == "10.1.1.1"
    assert found.machines[0].addresses["gw"] == "10.1.1.41"


def test_one_address_is_singular(pod):
    path = pod.write(networks="networks: {gw: {subnet: 10.2.1.0/24}}", racks={1: [1], 2: [1]}, cluster=None)
    ((_line, message),) = mistakes(path)
    assert message.startswith(SEVERAL_RACKS + "1 address twice, such as 10.2.1.1 ")


def test_addresses_that_files_set_are_reported_one_by_one(pod):
    addresses = ", servers: [{name: s1, addresses: {p1: 10.2.1.1, p2: 10.3.1.101}}, {name: s2, addresses: %s}]"
    found = mistakes(pod.write(rack_tail=addresses % "{p1: 10.2.1.2, p2: 10.3.1.101}"))
    assert [message.partition(":")[0] for _line, message in found] == [
        "address 10.2.1.1 is used by both gw of 'm1.1' (" + str(pod.machines_csv) + ", line 2) and p1 of 's1'",
        "address 10.2.1.2 is used by both gw of 'm1.2' (" + str(pod.machines_csv) + ", line 3) and p1 of 's2'",
        "address 10.3.1.101 is used by both p2 of 's1' (line 6) and p2 of 's2'",
    ]
