# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices with several cables to one switch: which of them is wrong, as far as anybody can know."""

from __future__ import annotations

from typing import Any

from ansible_collections.openipu.pod.plugins.module_utils.eos.cabling import check, seen

CABLES = [
    {"device": "server1", "connector": "idrac", "port": "Ethernet1", "macs": ["02:00:00:00:00:01"]},
    {"device": "server1", "connector": "p1", "port": "Ethernet2", "macs": ["02:00:00:00:00:02"]},
    {"device": "server1", "connector": "p2", "port": "Ethernet10", "macs": None},
    {"device": "server2", "connector": "p1", "port": "Ethernet4", "macs": None},
]


def found(lldp: dict[str, str], macs: dict[str, str], down: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
    """What is wrong when these names and addresses are heard at these ports."""
    ports = [f"Ethernet{number}" for number in range(1, 13)]
    status = {port: {"linkStatus": "notconnect" if port in down else "connected"} for port in ports}
    neighbours = [{"port": port, "neighborDevice": name} for port, name in lldp.items()]
    learnt = [{"macAddress": mac.upper(), "interface": port} for mac, port in macs.items()]
    what = seen(
        {"interfaceStatuses": status}, {"lldpNeighbors": neighbours}, {"unicastTable": {"tableEntries": learnt}}
    )
    return [(one["kind"], one["device"], one["connector"], one["found"]) for one in check(CABLES, what)]


RIGHT = {"Ethernet1": "server1", "Ethernet2": "server1.example.org", "Ethernet10": "Server1", "Ethernet4": "server2"}


def test_everything_where_it_belongs() -> None:
    assert found(RIGHT, {"02:00:00:00:00:01": "Ethernet1"}) == []
    assert found({}, {}) == []  # nobody was heard


def test_two_cables_of_one_device_that_changed_places_are_told_apart_by_their_addresses() -> None:
    assert found(RIGHT, {"02:00:00:00:00:01": "Ethernet2", "02:00:00:00:00:02": "Ethernet1"}) == [
        ("wrong_port", "server1", "idrac", "Ethernet2"),
        ("wrong_port", "server1", "p1", "Ethernet1"),
    ]


def test_a_place_that_an_address_accounts_for_is_not_given_to_another_cable() -> None:
    heard = {**RIGHT, "Ethernet5": "server1"}
    del heard["Ethernet1"], heard["Ethernet10"]
    assert found(heard, {"02:00:00:00:00:01": "Ethernet5"}, down=("Ethernet1", "Ethernet10")) == [
        ("wrong_port", "server1", "idrac", "Ethernet5"),
        ("link_down", "server1", "p2", None),
    ]


def test_each_missing_cable_has_a_place_of_its_own() -> None:
    heard = {"Ethernet2": "server1", "Ethernet12": "server1", "Ethernet9": "server1", "Ethernet4": "server2"}
    assert found(heard, {}, down=("Ethernet1", "Ethernet10")) == [
        ("wrong_port", "server1", "idrac", "Ethernet9"),
        ("wrong_port", "server1", "p2", "Ethernet12"),
    ]


def test_strangers_are_nobodys_affair() -> None:
    assert found({**RIGHT, "Ethernet1": "laptop", "Ethernet11": "printer"}, {}) == []


def test_an_extra_cable_in_the_port_of_another() -> None:
    assert found({**RIGHT, "Ethernet4": "server1"}, {}) == [("wrong_port", "server2", "p1", None)]
