# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the desired configuration of switches."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import PodError
from ansible_collections.openipu.pod.plugins.module_utils.pod.switch_config import switch_config

SERVERS = "servers: [{name: s1, roles: [controller, poplar]}, {name: s2}]"
UPLINKS = "uplinks: [Ethernet1/1, Ethernet2/1], uplink_channel: 100"


def rack(tor: str = "", more: str = "") -> str:
    tor = f"{{name: tor, kind: data{', ' + tor if tor else ''}}}"
    return f", {SERVERS}, switches: [{tor}, {{name: mgmt, kind: management}}], pdus: [{{name: pdu}}]{more}"


def config(pod, name, **rack_options):
    loaded = pod.load(rack_tail=rack(**rack_options))
    switch = next(switch for switch in loaded.racks[0].switches if switch.name == name)
    return switch_config(loaded, switch)


def by_name(found):
    return {item["name"]: item for item in found["interfaces"]}


def test_the_data_switch(pod):
    found = config(pod, "tor", tor=UPLINKS)
    assert found["vlans"] == [{"id": 11, "name": "data"}, {"id": 12, "name": "storage"}]
    ports = by_name(found)
    assert ports["Ethernet9/1"] == {
        "name": "Ethernet9/1",
        "description": "m1.1 rnic",
        "edge": True,
        "mode": "access",
        "access_vlan": 11,
        "mtu": 9214,
        "no_drop": list(range(8)),
    }
    assert ports["Port-Channel2"] == {
        "name": "Port-Channel2",
        "description": "s2 data",
        "edge": True,
        "mode": "trunk",
        "trunk_vlans": [11, 12],
        "mtu": 9214,
    }
    members = [port for port in ports.values() if port.get("port_channel", {}).get("id") == 2]
    assert [(port["name"], port["description"], "mode" in port) for port in members] == [
        ("Ethernet27/1", "s2 data1", False),
        ("Ethernet28/1", "s2 data2", False),
    ]
    assert ports["Ethernet2/1"]["port_channel"] == {"id": 100, "lacp": "active"}
    assert ports["Port-Channel100"]["trunk_vlans"] == [11, 12]
    assert "edge" not in ports["Port-Channel100"]
    assert ports["Management1"]["address"] == "10.3.1.111/16"
    assert (found["ntp_servers"], found["syslog_servers"]) == (["10.3.1.101"], ["10.3.1.101"])
    assert len(ports) == 4 + 4 + 2 + 2 + 1 + 1  # RNICs, members, bonds, uplinks, their bond, management
    assert "Ethernet13/1" not in ports  # no cable


def test_the_management_switch(pod):
    found = config(pod, "mgmt")
    assert found["vlans"] == [{"id": 13, "name": "bmc-gw"}, {"id": 99, "name": "management"}]
    ports = by_name(found)
    assert (ports["Ethernet1"]["description"], ports["Ethernet1"]["access_vlan"]) == ("m1.1 mgmt", 13)
    assert [ports[f"Ethernet{number}"]["access_vlan"] for number in (17, 18, 19, 37, 41)] == [13, 99, 99, 99, 99]
    assert not any("mtu" in port or "no_drop" in port for port in ports.values())


def test_several_uplinks_without_a_bundle(pod):
    ports = by_name(config(pod, "tor", tor="uplinks: [Ethernet1/1]"))
    assert ports["Ethernet1/1"]["mode"] == "trunk"
    assert "port_channel" not in ports["Ethernet1/1"]


@pytest.mark.parametrize(
    ("tor", "more", "message"),
    [
        ("uplinks: [Ethernet99]", "", "unknown port of a DCS-7060CX-32S-F 'Ethernet99'"),
        (
            "uplinks: [Ethernet1/1]",
            ", cables: [{device: m1.1, connector: rnic, switch: tor, port: Ethernet1/1}]",
            "port Ethernet1/1 of tor is used by both an uplink",
        ),
    ],
)
def test_invalid_uplinks(pod, tor, more, message):
    with pytest.raises(PodError, match=message):
        config(pod, "tor", tor=tor, more=more)


def test_bonds_do_not_use_the_channel_of_the_uplinks(pod):
    found = config(pod, "tor", tor="uplinks: [Ethernet1/1], uplink_channel: 1")
    ports = by_name(found)
    assert [name for name in ports if name.startswith("Port-Channel")] == [
        "Port-Channel2",
        "Port-Channel3",
        "Port-Channel1",
    ]
    assert ports["Port-Channel1"]["description"] == "uplinks"
    assert ports["Ethernet1/1"]["port_channel"]["id"] == 1
