# SPDX-License-Identifier: GPL-3.0-or-later
"""Canonical order and form of a configuration, for any input order."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openipu.twin.devices.eos.config.edit import parse_config
from openipu.twin.devices.eos.config.grammar import CliError
from openipu.twin.devices.eos.ports import Ports, vlan_set, vlan_text
from tests.unit.twin.devices.eos.switch_lines import DATA, Console, block

TYPED = [
    ["ntp server 10.0.0.9"],
    ["interface Ethernet10/1", "switchport mode trunk", "mtu 9214", "description ten"],
    ["interface Ethernet2/1", "channel-group 7 mode active"],
    ["vlan 20", "name twenty"],
    ["vlan 3", "name three"],
    ["interface Port-Channel7", "switchport trunk allowed vlan 3,20"],
    ["snmp-server location row 3"],
    ["hostname tor9"],
    ["logging host 10.0.0.2"],
    ["interface Vlan20", "ip address 10.20.0.1/24"],
    ["ip route 0.0.0.0/0 10.1.3.1"],
    ["spanning-tree mode rstp"],
]


@pytest.fixture
def console() -> Console:
    return Console()


@pytest.mark.parametrize("seed", range(5))
def test_order_of_the_configuration(console: Console, seed: int) -> None:
    random.Random(seed).shuffle(typed := list(TYPED))
    console.configure(*(line for lines in typed for line in lines))
    lines = [line for line in console.lines if not line.startswith(" ")]
    places = [
        lines.index(line)
        for line in (
            *("logging host 10.0.0.2", "hostname tor9", "snmp-server location row 3", "spanning-tree mode rstp"),
            *("vlan 3", "vlan 20", "interface Port-Channel7", "interface Ethernet1/1", "interface Ethernet2/1"),
            *("interface Ethernet10/1", "interface Ethernet34", "interface Management1", "interface Vlan20"),
            *("ip route 0.0.0.0/0 10.1.3.1", "ntp server 10.0.0.9"),
        )
    ]
    assert places == sorted(places)
    assert block(console.lines, "interface Ethernet10/1") == ["description ten", "mtu 9214", "switchport mode trunk"]


@pytest.mark.parametrize(
    "line",
    [
        "mtu 1500",
        "switchport mode access",
        "switchport access vlan 1",
        "switchport trunk allowed vlan 1-4094",
        "switchport trunk allowed vlan all",
        "switchport trunk native vlan 1",
        "switchport",
        "no shutdown",
        "lldp transmit",
        "no description",
        "no channel-group",
        "no spanning-tree portfast",
        "default mtu",
    ],
)
def test_defaults_are_not_stored(console: Console, line: str) -> None:
    assert console.configure("interface Ethernet9/1", line) == []


def test_defaults_are_shown_by_all(console: Console) -> None:
    shown = block(console.type("show running-config all").splitlines(), "interface Ethernet9/1")
    assert {
        "mtu 1500",
        "no shutdown",
        "switchport",
        "switchport mode access",
        "lldp transmit",
        "no description",
    } <= set(shown)
    console.configure("interface Ethernet9/1", "mtu 9214")
    shown = block(console.type("show running-config all").splitlines(), "interface Ethernet9/1")
    assert [line for line in shown if line.startswith("mtu")] == ["mtu 9214"]


@pytest.mark.parametrize(
    ("lines", "kept"),
    [
        (["switchport trunk allowed vlan 5,1-3"], ["switchport trunk allowed vlan 1-3,5"]),
        (
            ["switchport trunk allowed vlan 5", "switchport trunk allowed vlan add 7"],
            ["switchport trunk allowed vlan 5,7"],
        ),
        (["switchport trunk allowed vlan remove 2-4093"], ["switchport trunk allowed vlan 1,4094"]),
        (["switchport trunk allowed vlan except 1"], ["switchport trunk allowed vlan 2-4094"]),
        (["switchport trunk allowed vlan none"], ["switchport trunk allowed vlan none"]),
        (["no switchport"], ["no switchport"]),
        (["no switchport", "switchport"], []),
        (["no lldp receive"], ["no lldp receive"]),
        (["spanning-tree portfast edge"], ["spanning-tree portfast"]),
        (["description   two  words "], ["description two words"]),
        (["ip address 10.0.0.1/24", "ip address 10.0.0.2/24"], ["ip address 10.0.0.2/24"]),
        (["uc-tx-queue 3", "exit"], []),
        (
            ["uc-tx-queue 3", "random-detect ecn minimum-threshold 150 kbytes maximum-threshold 1500 kbytes"],
            ["!", "uc-tx-queue 3", "random-detect ecn minimum-threshold 150 kbytes maximum-threshold 1500 kbytes"],
        ),
    ],
)
def test_stored_form_of_lines(console: Console, lines: list[str], kept: list[str]) -> None:
    console.configure("interface Ethernet9/1", *lines)
    assert block(console.lines, "interface Ethernet9/1") == kept


def test_equal_vlans_share_a_block(console: Console) -> None:
    assert console.configure("vlan 10-12,14") == ["vlan 10-12,14"]
    console.configure("vlan 11", "name eleven")
    assert [line for line in console.lines if line.startswith(("vlan", "   name"))] == [
        *("vlan 10,12,14", "vlan 11", "   name eleven"),
    ]
    console.configure("no vlan 10,14")
    assert [line for line in console.lines if line.startswith("vlan")] == ["vlan 11", "vlan 12"]
    with pytest.raises(CliError, match="Default VLAN 1 may not be deleted"):
        console.configure("no vlan 1")


def test_removed_and_reset_interfaces(console: Console) -> None:
    console.configure("interface Ethernet2/1", "channel-group 7 mode active", "mtu 9000")
    assert "interface Port-Channel7" in console.lines  # created with its first member
    console.configure(
        "no interface Port-Channel7", "default interface Ethernet2/1", "interface Vlan9", "no interface Vlan9"
    )
    assert not [line for line in console.lines if "Port-Channel" in line or "Vlan9" in line]
    assert block(console.lines, "interface Ethernet2/1") == []


def test_ranges_of_ports(console: Console) -> None:
    console.configure("interface Ethernet9/1-11/1,Ethernet20/1", "mtu 9214")
    assert [line for line in console.lines if "mtu" in line] == ["   mtu 9214"] * 4
    with pytest.raises(CliError):
        console.configure("interface Ethernet77/1")


def test_lines_of_an_outer_mode_end_the_mode(console: Console) -> None:
    console.configure("interface Ethernet9/1", "hostname tor9")
    assert "hostname tor9" in console.lines
    with pytest.raises(CliError, match="Invalid input"):
        console.configure("interface Ethernet9/1", "hostname tor9", "mtu 9000")


def test_stored_form_of_communities_and_users(console: Console) -> None:
    new = console.configure(
        "snmp-server community s3cret", "snmp-server user nms g v3 auth sha p4ssword priv aes p4ssword"
    )
    assert "snmp-server community s3cret ro" in new
    (user,) = [line for line in new if line.startswith("snmp-server user")]
    assert "p4ssword" not in user and " localized " in user


def test_printed_configurations_can_be_parsed(console: Console) -> None:
    console.configure(*(line for lines in TYPED for line in lines))
    assert parse_config("\n".join(console.lines), Ports.for_model(DATA)).lines() == console.lines
    with pytest.raises(ValueError, match="line 2 of the configuration, 'no such thing'"):
        parse_config("hostname x\nno such thing", Ports.for_model(DATA))


@given(st.sets(st.integers(1, 4094), min_size=1))
def test_round_trip_of_vlan_lists(vlans: set[int]) -> None:
    assert vlan_set(vlan_text(vlans)) == vlans


@pytest.mark.parametrize(
    ("line", "full"),
    [
        ("ip route 10.8.0.0/16 10.1.3.1", "ip route 10.8.0.0/16 10.1.3.1 1 tag 0"),
        ("ip route 10.8.0.0/16 10.1.3.1 5", "ip route 10.8.0.0/16 10.1.3.1 5 tag 0"),
        ("ip route 10.8.0.0/16 10.1.3.1 tag 7 name x", "ip route 10.8.0.0/16 10.1.3.1 1 tag 7 name x"),
        ("ip route 10.8.0.0/16 Vlan5 10.1.3.1 name x", "ip route 10.8.0.0/16 Vlan5 10.1.3.1 1 tag 0 name x"),
        ("ip route 10.8.0.0/16 Null0", "ip route 10.8.0.0/16 Null0 1 tag 0"),
        ("ip route vrf M 10.8.0.0/16 10.1.3.1", "ip route vrf M 10.8.0.0/16 10.1.3.1 1 tag 0"),
    ],
)
def test_routes_with_omitted_values(console: Console, line: str, full: str) -> None:
    assert console.configure(line) == [line]
    assert [each for each in console.type("show running-config all").splitlines() if "ip route" in each] == [full]


def test_users_with_an_omitted_privilege(console: Console) -> None:
    console.configure("username kim nopassword", "username lee privilege 15 nopassword", "username kim ssh-key a b c")
    assert [each for each in console.type("show running-config all").splitlines() if "username" in each] == [
        "username kim privilege 1 nopassword",
        "username kim ssh-key a b c",
        "username lee privilege 15 nopassword",
    ]
