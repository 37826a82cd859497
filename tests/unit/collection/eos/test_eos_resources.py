# SPDX-License-Identifier: GPL-3.0-or-later
"""Running configurations as objects, and the commands from the actual to the desired state."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.eos import running_config
from ansible_collections.openipu.pod.plugins.module_utils.eos.resources import FAMILIES, commands, desired, read
from ansible_collections.openipu.pod.plugins.module_utils.eos.task import EOS_POD
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import UserError, plan
from hypothesis import given
from hypothesis import strategies as st

RUNNING = """\
! Command: show running-config
! device: tor1 (DCS-7060CX-32S-F, EOS-4.28.3M)
!
hostname tor1
ntp server 10.1.3.9 iburst
logging host 10.1.3.9
snmp-server community s3cret ro
!
spanning-tree mode mstp
!
vlan 11
   name data
!
vlan 20-21
!
interface Port-Channel1
   switchport trunk allowed vlan 11-12
   switchport mode trunk
   spanning-tree portfast
!
interface Ethernet9/1
   description old
   shutdown
   mtu 9214
   switchport access vlan 11
   priority-flow-control on
   priority-flow-control priority 3 no-drop
   storm-control broadcast level 1
   uc-tx-queue 3
      random-detect ecn minimum-threshold 150 kbytes maximum-threshold 1500 kbytes max-mark-probability 100
!
interface Ethernet10/1
   no switchport
!
interface Ethernet11/1
   channel-group 1 mode active
!
interface Management1
   ip address 10.1.3.111/24
!
no lldp run
!
ip route 0.0.0.0/0 10.1.3.1
!
end
"""


def needed(options: dict[str, Any], replace: bool = False, text: str = RUNNING) -> list[str]:
    actual = read(text)
    checked = {"vlans": None, "interfaces": None, **options}
    objects = desired(checked, actual, replace)
    steps = [step for f in FAMILIES for step in plan(f, objects[f.plural], actual.objects[f.plural])]
    return commands(steps, actual.clauses)


def test_gathered_objects() -> None:
    found = read(RUNNING)
    assert (found.hostname, found.model) == ("tor1", "DCS-7060CX-32S-F")
    assert found.gathered() == {
        "vlans": [{"id": 11, "name": "data"}, {"id": 20, "name": "VLAN0020"}, {"id": 21, "name": "VLAN0021"}],
        "interfaces": [
            {"name": "Port-Channel1", "mode": "trunk", "trunk_vlans": [11, 12], "edge": True},
            {
                "name": "Ethernet9/1",
                "description": "old",
                "mtu": 9214,
                "access_vlan": 11,
                "no_drop": [3],
                "ecn": {"queue": 3, "minimum": 150, "maximum": 1500},
                "enabled": False,
            },
            {"name": "Ethernet10/1", "mode": "routed"},
            {"name": "Ethernet11/1", "port_channel": {"id": 1, "lacp": "active"}},
            {"name": "Management1", "address": "10.1.3.111/24"},
        ],
        "hostname": "tor1",
        "lldp": False,
        "ntp_servers": ["10.1.3.9"],
        "syslog_servers": ["10.1.3.9"],
        "gateways": ["10.1.3.1"],
    }  # without the SNMP community


def test_the_actual_state_needs_no_commands() -> None:
    assert needed(read(RUNNING).gathered()) == []


def test_merging_changes_given_options_and_extends_lists() -> None:
    options = {
        "vlans": [{"id": 11, "name": "ipu-data"}, {"id": 12, "name": "storage"}],
        "interfaces": [
            {"name": "Ethernet9/1", "description": "ag01 rnic", "enabled": True, "no_drop": [3, 4]},
            {"name": "Ethernet10/1", "mode": "access", "access_vlan": 11},
            {"name": "Ethernet11/1", "port_channel": {"id": 2, "lacp": "active"}},
            {"name": "Port-Channel1", "trunk_vlans": [13]},
        ],
        "lldp": True,
        "ntp_servers": ["10.1.3.101"],
    }
    assert needed(options) == [
        *("vlan 11", "name ipu-data", "exit", "vlan 12", "name storage", "exit"),
        *("interface Ethernet9/1", "description ag01 rnic", "no shutdown"),
        *("priority-flow-control on", "priority-flow-control priority 3 no-drop"),
        *("priority-flow-control priority 4 no-drop", "exit"),
        *("interface Ethernet10/1", "switchport", "switchport mode access", "switchport access vlan 11", "exit"),
        *("interface Ethernet11/1", "no channel-group", "channel-group 2 mode active", "exit"),
        *("interface Port-Channel1", "switchport trunk allowed vlan 11-13", "exit"),
        *("lldp run", "ntp server 10.1.3.101"),
    ]


def test_replacing_resets_omitted_options_of_named_objects() -> None:
    options = {"interfaces": [{"name": "Ethernet9/1", "access_vlan": 11}], "ntp_servers": ["10.1.3.101"]}
    assert needed(options, replace=True) == [
        "interface Ethernet9/1",
        "no storm-control broadcast level 1",
        "no description",
        "no shutdown",
        "no mtu",
        *("no priority-flow-control priority 3 no-drop", "no priority-flow-control on"),
        *("uc-tx-queue 3", "no random-detect ecn", "exit"),
        "exit",
        "no ntp server 10.1.3.9",
        "ntp server 10.1.3.101",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"interfaces": [{"name": "Eth9/1"}]},
            "Cannot configure interface 'Eth9/1': this is not a full interface name. ",
        ),
        (
            {"interfaces": [{"name": "Ethernet77"}]},
            "Cannot configure interface 'Ethernet77': switch 'tor1' (DCS-7060CX-32S-F) has no such port. ",
        ),
        (
            {"vlans": [{"id": 4095, "name": None}]},
            "Cannot configure VLAN 4095: VLAN IDs are 1 to 4094. Change its id.",
        ),
        (
            {"interfaces": [{"name": "Ethernet9/1", "description": "x\nno shutdown"}]},
            r"Cannot configure the text 'x\nno shutdown': it contains a character that is not printable. Remove it.",
        ),
        (
            {"vlans": [{"id": 11}, {"id": 11}]},
            "Cannot plan vlan '11': it is listed twice, at vlans[0] and vlans[1]. Remove one of them.",
        ),
    ],
)
def test_invalid_options(options: dict[str, Any], message: str) -> None:
    options = {"vlans": [{"name": None, **vlan} for vlan in options.pop("vlans", [])], **options}
    with pytest.raises(UserError) as rejected:
        needed(options)
    assert rejected.value.message.startswith(message)


def test_rendered_commands_need_no_switch() -> None:
    interface = {"name": "Ethernet9/1", "mode": "access", "access_vlan": 11, "no_drop": [3]}
    params = {"state": "rendered", "config": {"vlans": [{"id": 11, "name": None}], "interfaces": [interface]}}
    defaults = {"host": None, "model": None, "confirm_timeout": 60.0, "save": True}
    connection = {name: option.get("default") for name, option in EOS_POD.connector.options.items()}
    result = EOS_POD.perform({**connection, **defaults, **params}, False, False)
    assert result == {
        "changed": False,
        "commands": [
            *("vlan 11", "exit", "interface Ethernet9/1", "switchport access vlan 11"),
            *("priority-flow-control on", "priority-flow-control priority 3 no-drop", "exit"),
        ],
    }


@pytest.mark.parametrize(
    ("line", "hidden"),
    [
        ("+snmp-server community s3cret ro", "+snmp-server community <hidden> ro"),
        ("no snmp-server community s3cret", "no snmp-server community <hidden>"),
        (" username admin role network-admin secret sha512 $6$x", None),
        ("   radius-server host 10.0.0.1 key 7 0710", None),
        ("snmp-server user u g v3 auth sha abc priv aes def", None),
        ("   description secretary", "   description secretary"),
    ],
)
def test_secrets_are_hidden(line: str, hidden: str | None) -> None:
    shown = running_config.without_secrets(line)
    if hidden is None:
        assert "<hidden>" in shown
        assert not any(secret in shown for secret in ("$6$x", "0710", " abc", " def"))
    else:
        assert shown == hidden


@given(st.sets(st.integers(1, 4094)))
def test_round_trip_of_vlan_lists(vlans: set[int]) -> None:
    assert running_config.numbers(running_config.ranges(vlans)) == sorted(vlans)
