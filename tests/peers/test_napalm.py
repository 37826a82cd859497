# SPDX-License-Identifier: GPL-3.0-or-later
"""NAPALM's driver for EOS against the EOS twin: all getters that fit a leaf of layer 2, and the life of a change."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openipu.twin.cables.switch_cabling import Neighbour
from openipu.vipu.tls import load
from tests import ROOT
from tests.integration.eos_switches import PASSWORD, USER, Cables, ServedSwitch, rack_of_switches

pytestmark = pytest.mark.peers
CLIENTS = Path(os.environ.get("OPENIPU_NETWORK_CLIENTS", ROOT / ".cache/network-clients"))
MAC = "00:11:22:33:44:55"
CABLES = Cables({"Ethernet9/1": Neighbour("b-ipum1", MAC, "eth1", macs=((MAC, None),))})
# Getters that work, in addition to `get_config`.
GETTERS = (
    "get_facts",
    "get_interfaces",
    "get_interfaces_counters",
    "get_interfaces_ip",
    "get_lldp_neighbors",
    "get_lldp_neighbors_detail",
    "get_mac_address_table",
    "get_environment",
    "get_ntp_servers",
    "get_ntp_stats",
    "get_snmp_information",
    "get_users",
    "get_vlans",
    "get_network_instances",
    "get_arp_table",
    "get_bgp_config",
    "is_alive",
)
Call = tuple[str, dict[str, Any]]
# Methods for functions that a leaf of layer 2 does not have.
REJECTED: tuple[Call, ...] = (
    ("get_bgp_neighbors", {}),
    ("get_bgp_neighbors_detail", {}),
    ("get_optics", {}),
    ("get_route_to", {"destination": "10.0.0.0/8"}),
    ("ping", {"destination": "10.1.3.9"}),
    ("traceroute", {"destination": "10.1.3.9"}),
)
# Methods of the life of a change.
LIFE = (
    "load_merge_candidate",
    "load_replace_candidate",
    "compare_config",
    "commit_config",
    "has_pending_commit",
    "confirm_commit",
    "discard_config",
    "rollback",
)


@pytest.fixture
def switch(tmp_path: Path) -> Iterator[ServedSwitch]:
    with rack_of_switches(tmp_path) as rack:
        yield rack.switch(cabling=CABLES)


def outcomes(switch: ServedSwitch, *calls: Call) -> list[dict[str, Any]]:
    """Call methods of the driver in order and return their results or errors."""
    python = CLIENTS / "bin/python"
    assert python.exists(), f"No NAPALM in {CLIENTS}: run 'make test-peers'."
    assert switch.certs is not None
    given = {
        "host": "127.0.0.1",
        "port": switch.port,
        "user": USER,
        "password": PASSWORD,
        "authority": str(switch.certs / "ca" / load.CA),
        "calls": calls,
    }
    completed = subprocess.run(
        [python, ROOT / "tests/peers/napalm_client.py"],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert completed.returncode == 0, completed.stderr
    found: list[dict[str, Any]] = json.loads(completed.stdout)
    return found


def results(switch: ServedSwitch, *calls: Call) -> list[Any]:
    """Call methods of the driver that must all succeed."""
    found = outcomes(switch, *calls)
    assert not [each for each in found if "error" in each], found
    return [each["result"] for each in found]


def test_getters(switch: ServedSwitch) -> None:
    switch.node().config(
        [
            "vlan 11",
            "name data",
            "interface Ethernet9/1",
            "switchport access vlan 11",
            "ntp server 10.1.3.9 iburst",
            "snmp-server location row 3",
            "snmp-server contact team",
            "username bob privilege 15 role network-admin nopassword",
        ]
    )
    found = dict(zip(GETTERS, results(switch, *((name, {}) for name in GETTERS)), strict=True))
    assert found["get_facts"]["serial_number"] == switch.switch.hardware.serial
    assert found["get_interfaces"]["Ethernet9/1"]["is_up"] and not found["get_interfaces"]["Ethernet1/1"]["is_up"]
    assert found["get_interfaces_counters"]["Ethernet9/1"]["rx_errors"] == 0
    assert found["get_interfaces_ip"] == {"Management1": {"ipv4": {"10.1.3.111": {"prefix_length": 24}}, "ipv6": {}}}
    assert found["get_lldp_neighbors"] == {"Ethernet9/1": [{"hostname": "b-ipum1", "port": "eth1"}]}
    assert found["get_lldp_neighbors_detail"]["Ethernet9/1"][0]["remote_chassis_id"] == MAC
    assert [(each["mac"], each["vlan"]) for each in found["get_mac_address_table"]] == [(MAC, 11)]
    assert all(fan["status"] for fan in found["get_environment"]["fans"].values())
    assert found["get_ntp_servers"]["10.1.3.9"]["iburst"]
    assert found["get_ntp_stats"][0]["synchronized"]
    assert (found["get_snmp_information"]["location"], found["get_snmp_information"]["contact"]) == ("row 3", "team")
    assert (found["get_users"]["bob"]["level"], found["get_users"]["bob"]["role"]) == (15, "network-admin")
    assert found["get_vlans"]["11"] == {"name": "data", "interfaces": ["Ethernet9/1"]}
    assert list(found["get_network_instances"]["default"]["interfaces"]["interface"]) == ["Management1"]
    assert found["get_arp_table"] == []  # the driver returns this when a switch rejects the command
    assert found["get_bgp_config"] == {}


def test_the_lists_have_all_methods_of_the_driver() -> None:
    script = (
        "from napalm.eos.eos import EOSDriver; print(*(n for n, each in vars(EOSDriver).items() if callable(each)))"
    )
    done = subprocess.run([CLIENTS / "bin/python", "-c", script], capture_output=True, text=True, timeout=120)
    methods = {*GETTERS, *LIFE, *(name for name, _ in REJECTED), "get_config", "cli"}
    found = {name for name in done.stdout.split() if not name.startswith("_")}
    assert found - {"open", "close"} == methods, done


def test_commands_of_the_command_line(switch: ServedSwitch) -> None:
    (found,) = results(switch, ("cli", {"commands": ["show hostname"]}))
    assert found["show hostname"].startswith("Hostname: tor1")
    (rejected,) = outcomes(switch, ("cli", {"commands": ["show ip bgp"]}))
    assert rejected["error"].startswith("CommandErrorException: ") and "Invalid command" in rejected["error"]


def test_getters_of_a_router_are_rejected(switch: ServedSwitch) -> None:
    for each in outcomes(switch, *REJECTED):
        assert "invalid command" in each.get("error", ""), each


def test_secrets_are_removed_from_a_sanitized_configuration(switch: ServedSwitch) -> None:
    lines = [
        "username bob secret s3cret-of-bob",
        "snmp-server community s3cret-word ro",
        "enable secret 0 s3cret-enable",
    ]
    switch.node().config(lines)
    ((whole), (sanitized)) = results(switch, ("get_config", {}), ("get_config", {"sanitized": True}))
    assert "s3cret-word" in whole["running"]
    assert "username bob secret sha512 <removed>" in sanitized["running"]
    assert "snmp-server community <removed> ro" in sanitized["running"]
    assert "s3cret" not in sanitized["running"]


def test_a_merged_change_is_compared_committed_and_rolled_back(switch: ServedSwitch) -> None:
    before = switch.config()
    merge: Call = ("load_merge_candidate", {"config": "interface Ethernet9/1\n description b-ipum1\n"})
    _, diff, _, _ = results(switch, merge, ("compare_config", {}), ("commit_config", {}), ("get_facts", {}))
    assert "+   description b-ipum1" in diff.splitlines()
    assert switch.config() != before and switch.saved() == switch.config()
    results(switch, ("rollback", {}))
    assert switch.config() == before and switch.saved() == before


def test_a_change_is_discarded(switch: ServedSwitch) -> None:
    before = switch.config()
    merge: Call = ("load_merge_candidate", {"config": "hostname tor9"})
    _, diff, _, left = results(switch, merge, ("compare_config", {}), ("discard_config", {}), ("compare_config", {}))
    assert "+hostname tor9" in diff and left == ""
    assert switch.config() == before and "pending" not in switch.sessions().values()


def test_a_whole_configuration_is_replaced(switch: ServedSwitch) -> None:
    switch.node().config(["vlan 11", "name data"])
    text = "\n".join(line for line in switch.config() if line.strip() not in {"vlan 11", "name data"})
    replaced = text.replace("hostname tor1", "hostname tor9")
    replace: Call = ("load_replace_candidate", {"config": replaced})
    _, diff, _ = results(switch, replace, ("compare_config", {}), ("commit_config", {}))
    assert {"-vlan 11", "-hostname tor1", "+hostname tor9"} <= set(diff.splitlines())
    assert "hostname tor9" in switch.config() and "vlan 11" not in switch.config()


def test_a_commit_is_confirmed_or_reverted(switch: ServedSwitch) -> None:
    merge: Call = ("load_merge_candidate", {"config": "hostname tor3"})
    confirmed = results(
        switch,
        merge,
        ("commit_config", {"revert_in": 100}),
        ("has_pending_commit", {}),
        ("confirm_commit", {}),
        ("has_pending_commit", {}),
    )
    assert (confirmed[2], confirmed[4]) == (True, False)
    assert "hostname tor3" in switch.saved()
    merge = ("load_merge_candidate", {"config": "hostname tor4"})
    reverted = results(
        switch, merge, ("commit_config", {"revert_in": 100}), ("rollback", {}), ("has_pending_commit", {})
    )
    assert reverted[3] is False
    assert "hostname tor3" in switch.config()


def test_an_invalid_line_leaves_nothing_behind(switch: ServedSwitch) -> None:
    before = switch.config()
    (error,) = outcomes(switch, ("load_merge_candidate", {"config": "hostname tor5\nno such line"}))
    assert error["error"].startswith("MergeConfigException")
    assert (switch.config(), switch.sessions()) == (before, {})
