# SPDX-License-Identifier: GPL-3.0-or-later
"""Text output of the twin, parsed with the templates of ntc-templates, which were written for real switches."""

from __future__ import annotations

from typing import Any

import pytest
from ntc_templates.parse import parse_output

from openipu.twin.cables.switch_cabling import Neighbour
from tests.unit.twin.devices.eos.switch_lines import MANAGEMENT, Console

PORTS = {
    "Ethernet1/1": Neighbour(
        "ipum01.example.org", "00:11:22:33:44:55", "eth1", (("00:11:22:33:44:55", None),), description="Linux"
    ),
    "Ethernet2/1": Neighbour("poplar1", "00:11:22:33:44:77", "eno1", (("00:11:22:33:44:77", 12),)),
    "Ethernet3/1": Neighbour("ipum02", "00:11:22:33:44:99", "eth1", up=False),
}


@pytest.fixture
def console() -> Console:
    console = Console(ports=PORTS)
    console.configure(
        *("vlan 11", "name data", "vlan 12"),
        *("interface Ethernet1/1", "description ipum01 rnic", "switchport access vlan 11", "mtu 9214"),
        *("interface Ethernet2/1", "channel-group 1 mode active"),
        *("interface Port-Channel1", "switchport mode trunk", "switchport trunk allowed vlan 11-12"),
        *("interface Ethernet4/1", "shutdown"),
        *("interface Ethernet5/1", "no switchport"),
        *("interface Vlan11", "ip address 10.5.0.1/24"),
    )
    return console


def rows(console: Console, command: str) -> list[dict[str, Any]]:
    """Parse the output of a command with its template, which fails on unknown lines."""
    found: list[dict[str, Any]] = parse_output(platform="arista_eos", command=command, data=console.type(command))
    assert found, command
    return found


def test_version(console: Console) -> None:
    (found,) = rows(console, "show version")
    data = console.show_json("show version")
    assert (found["model"], found["image"], found["hw_version"]) == ("DCS-7060CX-32S-F", "4.28.3M", "12.03")
    assert (found["serial_number"], found["total_memory"]) == (data["serialNumber"], str(data["memTotal"]))
    assert found["sys_mac"].replace(".", "") == data["systemMacAddress"].replace(":", "")
    console.clock.now += 3 * 86400 + 5 * 3600 + 40 * 60
    assert rows(console, "show version")[0]["uptime"] == "3 days, 5 hours and 40 minutes"


def test_names_and_time(console: Console) -> None:
    assert rows(console, "show hostname") == [{"hostname": "tor1", "fqdn": "tor1"}]
    console.configure("dns domain example.org")
    assert rows(console, "show hostname") == [{"hostname": "tor1", "fqdn": "tor1.example.org"}]
    (clock,) = rows(console, "show clock")
    assert [clock[part] for part in ("dayweek", "month", "day", "time", "year")] == [
        *("Tue", "Nov", "14", "22:13:20", "2023")
    ]


def test_status_of_ports(console: Console) -> None:
    found = {row["port"]: row for row in rows(console, "show interfaces status")}
    assert {port: (row["status"], row["vlan_id"], row["speed"]) for port, row in list(found.items())[:6]} == {
        "Po1": ("connected", "trunk", "100G"),
        "Et1/1": ("connected", "11", "100G"),
        "Et2/1": ("connected", "Po1", "100G"),  # the template drops "in"
        "Et3/1": ("notconnect", "1", "100G"),
        "Et4/1": ("disabled", "1", "100G"),
        "Et5/1": ("notconnect", "routed", "100G"),
    }
    assert found["Et1/1"]["name"] == "ipum01 rnic"
    assert list(found)[-3:] == ["Et33", "Et34", "Ma1"]
    (one,) = parse_output(
        platform="arista_eos", command="show interfaces status", data=console.type("show interfaces Ethernet1/1 status")
    )
    assert one == found["Et1/1"]


def test_interfaces(console: Console) -> None:
    described = {row["port"]: row for row in rows(console, "show interfaces description")}
    assert [described[port]["status"] for port in ("Et1/1", "Et3/1", "Et4/1")] == ["up", "down", "admin down"]
    found = {row["interface"]: row for row in rows(console, "show interfaces")}
    assert found["Ethernet1/1"]["mtu"] == "9214" and found["Ethernet1/1"]["description"] == "ipum01 rnic"
    assert found["Ethernet1/1"]["bandwidth"] == "100000000 kbit"
    assert found["Ethernet4/1"]["link_status"] == "administratively down"
    addresses = {
        row["interface"]: (row["ip_address"], row["status"]) for row in rows(console, "show ip interface brief")
    }
    assert addresses == {"Management1": ("10.1.3.111/24", "up"), "Vlan11": ("10.5.0.1/24", "up")}


def test_vlans(console: Console) -> None:
    found = {row["vlan_id"]: row for row in rows(console, "show vlan")}
    assert {number: (row["vlan_name"], row["status"], row["interfaces"]) for number, row in found.items()} == {
        "1": ("default", "active", []),
        "11": ("data", "active", ["Cpu", "Po1", "Et1/1"]),
        "12": ("VLAN0012", "active", ["Po1"]),
    }


def test_neighbours(console: Console) -> None:
    assert rows(console, "show lldp neighbors") == [
        {"neighbor_name": "ipum01.example.org", "local_interface": "Et1/1", "neighbor_interface": "eth1"},
        {"neighbor_name": "poplar1", "local_interface": "Et2/1", "neighbor_interface": "eno1"},
    ]
    first, second = rows(console, "show lldp neighbors detail")
    assert (first["neighbor_name"], first["chassis_id"]) == ("ipum01.example.org", "0011.2233.4455")
    assert (first["local_interface"], first["neighbor_interface"]) == ("Ethernet1/1", "eth1")
    assert first["neighbor_description"] == "Linux"
    assert second["neighbor_name"] == "poplar1"


def test_learnt_addresses(console: Console) -> None:
    found = [
        (row["vlan_id"], row["mac_address"], row["destination_port"]) for row in rows(console, "show mac address-table")
    ]
    assert found == [("11", "0011.2233.4455", ["Et1/1"]), ("12", "0011.2233.4477", ["Po1"])]


def test_port_channels(console: Console) -> None:
    (found,) = rows(console, "show port-channel summary")
    assert (found["bundle_name"], found["bundle_status"], found["bundle_protocol"]) == ("Po1", "U", "LACP")
    assert (found["member_interface"], found["member_interface_status"]) == (["Et2/1"], ["PG+"])


def test_a_switch_with_copper_ports() -> None:
    console = Console(MANAGEMENT, {"Ethernet9": Neighbour("ipum01", "00:11:22:33:44:55", "mgmt")})
    found = {row["port"]: (row["status"], row["speed"]) for row in rows(console, "show interfaces status")}
    assert len(found) == 52 + 1
    assert found["Et9"][0] == "connected" and found["Et9"][1].endswith("1G")
    assert [row["local_interface"] for row in rows(console, "show lldp neighbors")] == ["Et9"]


def test_flow_control(console: Console) -> None:
    console.configure(
        *("interface Ethernet1/1", "priority-flow-control on"),
        *("priority-flow-control priority 3 no-drop", "priority-flow-control priority 4 no-drop"),
        *("interface Ethernet3/1", "priority-flow-control on"),
        *(
            "priority-flow-control pause watchdog default timeout 0.2",
            "priority-flow-control pause watchdog action drop",
        ),
    )
    lines = console.type("show priority-flow-control").splitlines()
    assert "The PFC watchdog timeout is 0.2 second(s)" in lines
    assert "The PFC watchdog action is drop" in lines
    ports = {line.split()[0]: line.split()[1:5] for line in lines if line.startswith("Et")}
    assert [ports[port][:2] for port in ("Et1/1", "Et2/1", "Et3/1")] == [["E", "A"], ["D", "-"], ["E", "-"]]
    assert console.show_json("show priority-flow-control")["interfaces"]["Ethernet1/1"]["priorities"] == [3, 4]
