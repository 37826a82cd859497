# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wanted of a bond, and the files that say so."""

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
    networkd,
    networkmanager,
    wanted,
)
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import Action, SentenceError, plan


def params(**more: Any) -> dict[str, Any]:
    vlans = [{"id": 11, "addresses": ["10.5.0.101/16", "fd00::1/64"]}, {"id": 12, "addresses": []}]
    told = {"name": "bond0", "mode": "802.3ad", "lacp_rate": "fast", "hash_policy": "layer3+4", "mii_monitor": 100}
    return {**told, "mtu": 9000, "vlans": vlans, **more}


def bond(**more: Any) -> Bond:
    return wanted(params(**more), ["eth0", "eth1"])


def sections(text: str) -> dict[str, dict[str, str]]:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(text)
    return {name: dict(parser[name]) for name in parser.sections()}


def test_networkd_is_told_of_ports_bond_and_vlans() -> None:
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


def test_networkmanager_is_told_the_same_and_knows_its_connections_again() -> None:
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
def test_other_modes_know_nothing_of_lacp(mode: str) -> None:
    for text in (*networkd(bond(mode=mode)).values(), *networkmanager(bond(mode=mode)).values()):
        assert "lacp" not in text.lower()
    assert "Hash" not in networkd(bond(mode="active-backup"))["05-openipu-bond0.netdev"]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"vlans": [{"id": 4095, "addresses": []}]}, "vlans[0] has id 4095: VLANs are 1 to 4094."),
        ({"vlans": [{"id": 11, "addresses": []}] * 2}, "VLAN 11 stands twice in vlans: leave one out."),
        (
            {"vlans": [{"id": 11, "addresses": ["10.5.0.1"]}]},
            "'10.5.0.1' of VLAN 11 is no address with a prefix: write it like 10.5.0.101/16.",
        ),
        (
            {"name": "a/../../b"},
            "'a/../../b' cannot be the name of an interface: it may have up to 15 letters.",
        ),
    ],
)
def test_what_cannot_be_is_refused(more: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SentenceError) as error:
        bond(**more)
    assert error.value.sentence == sentence


def test_a_bond_has_its_own_files_only() -> None:
    backend = BACKENDS["networkd"]
    assert all(backend.ours("bond0", name) for name in networkd(bond()))
    assert not any(backend.ours("bond0", name) for name in networkd(bond(name="bond01")))
    assert not backend.ours("bond0", "10-netplan-bond0.network")


def links(**more: Any) -> dict[str, Link]:
    """As a host tells them that is as it should be."""
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


def changes(there: dict[str, Link], **more: Any) -> dict[str, Action]:
    wanted_bond, wanted_vlans = bond(**more).objects()
    steps = plan(BOND, [wanted_bond], bond_object(there, "bond0"))
    steps += plan(VLAN, wanted_vlans, vlan_objects(there, "bond0"))
    return {step.key: step.action for step in steps if step.action is not Action.NONE}


def test_what_runs_is_compared() -> None:
    assert changes(links()) == {}
    lost = Link("eth1", "", "", "", 9000, (), {})
    assert changes(links(eth1=lost)) == {"bond0": Action.CHANGE}
    assert changes(links(), mtu=1500) == dict.fromkeys(("bond0", "bond0.11", "bond0.12"), Action.CHANGE)
    assert changes({}) == dict.fromkeys(("bond0", "bond0.11", "bond0.12"), Action.CREATE)
    assert changes(links(), mode="active-backup") == {"bond0": Action.CHANGE}
