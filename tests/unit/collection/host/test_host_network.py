# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of poplar_network: desired bonds, their files, and differences of running interfaces."""

from __future__ import annotations

import configparser
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.host.backends import BACKENDS
from ansible_collections.openipu.pod.plugins.module_utils.host.links import Link, bond_object, vlan_objects
from ansible_collections.openipu.pod.plugins.module_utils.host.network import (
    BOND,
    VLAN,
    Bond,
    desired_bond,
    networkd,
    networkmanager,
)
from ansible_collections.openipu.pod.plugins.module_utils.host.network_task import describe
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import Action, UserError, plan


def params(**more: Any) -> dict[str, Any]:
    vlans = [{"id": 11, "addresses": ["10.5.0.101/16", "fd00::1/64"]}, {"id": 12, "addresses": []}]
    options = {"name": "bond0", "mode": "802.3ad", "lacp_rate": "fast", "hash_policy": "layer3+4", "mii_monitor": 100}
    return {**options, "mtu": 9000, "vlans": vlans, **more}


def bond(**more: Any) -> Bond:
    return desired_bond(params(**more), ["eth0", "eth1"])


def sections(text: str) -> dict[str, dict[str, str]]:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(text)
    return {name: dict(parser[name]) for name in parser.sections()}


def test_files_of_networkd_for_ports_bond_and_vlans() -> None:
    files = {name: sections(text) for name, text in networkd(bond()).items()}
    assert sorted(files) == [
        "05-openipu-bond0-members.network",
        "05-openipu-bond0.11.netdev",
        "05-openipu-bond0.11.network",
        "05-openipu-bond0.12.netdev",
        "05-openipu-bond0.12.network",
        "05-openipu-bond0.netdev",
        "05-openipu-bond0.network",
    ]
    assert files["05-openipu-bond0-members.network"]["Match"] == {"Name": "eth0 eth1"}
    assert files["05-openipu-bond0-members.network"]["Network"] == {"Bond": "bond0"}
    assert files["05-openipu-bond0.netdev"]["Bond"] == {
        "Mode": "802.3ad",
        "MIIMonitorSec": "100ms",
        "LACPTransmitRate": "fast",
        "TransmitHashPolicy": "layer3+4",
    }
    assert files["05-openipu-bond0.12.netdev"]["VLAN"] == {"Id": "12"}
    assert all(file["Link"]["MTUBytes"] == "9000" for name, file in files.items() if name.endswith(".network"))
    assert "Address=10.5.0.101/16\nAddress=fd00::1/64\n" in networkd(bond())["05-openipu-bond0.11.network"]


def test_files_of_networkmanager_with_constant_ids() -> None:
    files = {name: sections(text) for name, text in networkmanager(bond()).items()}
    assert files["05-openipu-bond0-eth1.nmconnection"]["connection"]["master"] == "bond0"
    assert files["05-openipu-bond0.nmconnection"]["bond"]["lacp_rate"] == "fast"
    data = files["05-openipu-bond0.11.nmconnection"]
    assert data["vlan"] == {"id": "11", "parent": "bond0"}
    assert data["ipv4"] == {"method": "manual", "address1": "10.5.0.101/16"}
    assert data["ipv6"] == {"method": "manual", "address1": "fd00::1/64"}
    assert files["05-openipu-bond0.12.nmconnection"]["ipv4"] == {"method": "disabled"}
    assert all(file["ethernet"]["mtu"] == "9000" for file in files.values())
    assert networkmanager(bond()) == networkmanager(bond())
    assert len({file["connection"]["uuid"] for file in files.values()}) == len(files)


@pytest.mark.parametrize("mode", ["active-backup", "balance-xor"])
def test_other_modes_have_no_lacp_settings(mode: str) -> None:
    for text in (*networkd(bond(mode=mode)).values(), *networkmanager(bond(mode=mode)).values()):
        assert "lacp" not in text.lower()
    assert "Hash" not in networkd(bond(mode="active-backup"))["05-openipu-bond0.netdev"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vlans": [{"id": 4095, "addresses": []}]}, "Cannot use id 4095 of vlans[0]: it must be from 1 to 4094."),
        ({"vlans": [{"id": 11, "addresses": []}] * 2}, "Cannot configure VLAN 11 twice. Remove one entry from vlans."),
        (
            {"vlans": [{"id": 11, "addresses": ["10.5.0.1"]}]},
            "Cannot use address '10.5.0.1' of VLAN 11: it is not an address with a prefix length. "
            "Write it like 10.5.0.101/16.",
        ),
        (
            {"name": "a/../../b"},
            "Cannot use the interface name 'a/../../b': names have 1 to 15 letters, digits, '_', '.' and '-', "
            "and start with a letter or digit. Change it.",
        ),
    ],
)
def test_invalid_options_are_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as error:
        bond(**options)
    assert error.value.message == message


def test_a_bond_owns_only_its_files() -> None:
    backend = BACKENDS["networkd"]
    assert all(backend.owns("bond0", name) for name in networkd(bond()))
    assert not any(backend.owns("bond0", name) for name in networkd(bond(name="bond01")))
    assert not backend.owns("bond0", "10-netplan-bond0.network")


def links(**more: Any) -> dict[str, Link]:
    """Return the interfaces of a correctly configured host."""
    lacp = {"mode": "802.3ad", "ad_lacp_rate": "fast", "xmit_hash_policy": "layer3+4"}
    found = [
        Link("eth0", "", "bond0", "", 9000, (), {}),
        Link("eth1", "", "bond0", "", 9000, (), {}),
        Link("bond0", "bond", "", "", 9000, (), lacp),
        Link("bond0.11", "vlan", "", "bond0", 9000, ("10.5.0.101/16", "fd00::1/64"), {"id": 11}),
        Link("bond0.12", "vlan", "", "bond0", 9000, (), {"id": 12}),
        Link("other.12", "vlan", "", "other", 1500, (), {"id": 12}),
    ]
    return {link.name: link for link in found} | more


def changes(actual: dict[str, Link], **more: Any) -> dict[str, Action]:
    desired, desired_vlans = bond(**more).objects()
    steps = plan(BOND, [desired], bond_object(actual, "bond0"))
    steps += plan(VLAN, desired_vlans, vlan_objects(actual, "bond0"))
    return {step.key: step.action for step in steps if step.action is not Action.NONE}


def test_differences_name_the_fields() -> None:
    desired, desired_vlans = bond(mtu=1500).objects()
    lost = Link("eth1", "", "", "", 9000, (), {})
    bonds = plan(BOND, [desired], bond_object(links(eth1=lost), "bond0"))
    assert describe(bonds[0]) == "bond0 (mtu is 9000 instead of 1500, members is [eth0] instead of [eth0, eth1])"
    assert describe(plan(VLAN, desired_vlans, [])[0]) == "bond0.11 does not exist"


def test_running_interfaces_are_compared() -> None:
    assert changes(links()) == {}
    lost = Link("eth1", "", "", "", 9000, (), {})
    assert changes(links(eth1=lost)) == {"bond0": Action.CHANGE}
    assert changes(links(), mtu=1500) == dict.fromkeys(("bond0", "bond0.11", "bond0.12"), Action.CHANGE)
    assert changes({}) == dict.fromkeys(("bond0", "bond0.11", "bond0.12"), Action.CREATE)
    assert changes(links(), mode="active-backup") == {"bond0": Action.CHANGE}
