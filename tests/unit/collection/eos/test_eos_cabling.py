# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices with several cables to one switch: which cables are reported as wrong."""

from __future__ import annotations

from typing import Any

from ansible_collections.openipu.pod.plugins.module_utils.eos.cabling import check, observe

CABLES = [
    {"device": "server1", "connector": "idrac", "port": "Ethernet1", "macs": ["02:00:00:00:00:01"]},
    {"device": "server1", "connector": "p1", "port": "Ethernet2", "macs": ["02:00:00:00:00:02"]},
    {"device": "server1", "connector": "p2", "port": "Ethernet10", "macs": None},
    {"device": "server2", "connector": "p1", "port": "Ethernet4", "macs": None},
]


def found(lldp: dict[str, str], macs: dict[str, str], down: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the findings for these LLDP names and MAC addresses at these ports."""
    ports = [f"Ethernet{number}" for number in range(1, 13)]
    status = {port: {"linkStatus": "notconnect" if port in down else "connected"} for port in ports}
    neighbours = [{"port": port, "neighborDevice": name} for port, name in lldp.items()]
    learned = [{"macAddress": mac.upper(), "interface": port} for mac, port in macs.items()]
    observed = observe(
        {"interfaceStatuses": status}, {"lldpNeighbors": neighbours}, {"unicastTable": {"tableEntries": learned}}
    )
    return [(one["kind"], one["device"], one["connector"], one["found"]) for one in check(CABLES, observed)]


RIGHT = {"Ethernet1": "server1", "Ethernet2": "server1.example.org", "Ethernet10": "Server1", "Ethernet4": "server2"}


def test_correct_cables() -> None:
    assert found(RIGHT, {"02:00:00:00:00:01": "Ethernet1"}) == []
    assert found({}, {}) == []  # nothing was observed


def test_swapped_cables_of_one_device_are_distinguished_by_mac_address() -> None:
    assert found(RIGHT, {"02:00:00:00:00:01": "Ethernet2", "02:00:00:00:00:02": "Ethernet1"}) == [
        ("wrong_port", "server1", "idrac", "Ethernet2"),
        ("wrong_port", "server1", "p1", "Ethernet1"),
    ]


def test_a_port_located_by_mac_address_is_not_assigned_to_another_cable() -> None:
    lldp_names = {**RIGHT, "Ethernet5": "server1"}
    del lldp_names["Ethernet1"], lldp_names["Ethernet10"]
    assert found(lldp_names, {"02:00:00:00:00:01": "Ethernet5"}, down=("Ethernet1", "Ethernet10")) == [
        ("wrong_port", "server1", "idrac", "Ethernet5"),
        ("link_down", "server1", "p2", None),
    ]


def test_each_missing_cable_gets_its_own_port() -> None:
    lldp_names = {"Ethernet2": "server1", "Ethernet12": "server1", "Ethernet9": "server1", "Ethernet4": "server2"}
    assert found(lldp_names, {}, down=("Ethernet1", "Ethernet10")) == [
        ("wrong_port", "server1", "idrac", "Ethernet9"),
        ("wrong_port", "server1", "p2", "Ethernet12"),
    ]


def test_unknown_devices_are_ignored() -> None:
    assert found({**RIGHT, "Ethernet1": "laptop", "Ethernet11": "printer"}, {}) == []


def test_an_extra_cable_in_the_port_of_another() -> None:
    assert found({**RIGHT, "Ethernet4": "server1"}, {}) == [("wrong_port", "server2", "p1", None)]
