# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands in the rack twin of a POD."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from ansible_collections.openipu.pod.plugins.module_utils.pod import model
from ansible_collections.openipu.pod.plugins.module_utils.pod.load import load

from openipu.twin import logins, racked
from openipu.twin.generate import Shape

ROOT = Path(__file__).resolve().parents[3]


def pod(tmp_path: Path, **shape: Any) -> model.Pod:
    return load(str(Shape(**{"devices": True, **shape}).write(tmp_path / "pod")))


def test_a_rack_has_two_switches_and_two_pdus_on_ports_that_need_no_root(tmp_path: Path) -> None:
    one = pod(tmp_path)
    assert racked.contents(one) == "16 IPU-Machines, 2 switches, 2 PDUs"
    endpoints = racked.endpoints(one)
    assert len(endpoints) == len(set(endpoints)) == 16 * 2 + 2 + 2  # agents and their metrics, switches, PDUs
    assert min(endpoint.port for endpoint in endpoints) > 1024
    assert [endpoint for endpoint in endpoints if endpoint.udp] == [
        ("127.3.1.131", logins.SNMP_PORT, True),
        ("127.3.1.132", logins.SNMP_PORT, True),
    ]
    assert {endpoint.host for endpoint in endpoints} <= set(racked.hosts(one))


def test_the_cables_of_a_machine_are_known_by_their_macs(tmp_path: Path) -> None:
    switches = racked.rack(pod(tmp_path))["devices"]["switches"]
    plugs = {(switch["name"], plug["port"]): plug for switch in switches for plug in switch["plugs"]}
    bmc_and_gw = plugs["mgmt1", "Ethernet3"]
    assert (bmc_and_gw["device"], bmc_and_gw["macs"]) == ("ag03", ["02:01:00:00:01:03", "02:02:00:00:01:03"])
    assert bmc_and_gw["vlan"] is None
    assert plugs["tor1", "Ethernet11/1"]["macs"] == ["02:05:00:00:01:03"]
    assert plugs["tor1", "Ethernet25/1"]["lacp"]
    assert plugs["tor1", "Ethernet25/1"]["vlan"] == 11  # tagged: the bond carries storage too
    assert plugs["mgmt1", "Ethernet37"] | {"macs": []} == {
        "port": "Ethernet37",
        "device": "tor1",
        "connector": "management",
        "macs": [],
        "vlan": None,
        "lacp": False,
        "lldp_port": "Management1",
    }


def test_everything_but_the_pdus_is_fed_by_both_of_them(tmp_path: Path) -> None:
    feeds = racked.rack(pod(tmp_path, racks=2))["devices"]["feeds"]
    assert len(feeds) == 2 * 16 + 1 + 4
    assert {feed["device"]: feed["pdus"] for feed in feeds}["ag.02.01"] == ["pdu3", "pdu4"]


def test_a_rack_without_devices_has_none(tmp_path: Path) -> None:
    assert "devices" not in racked.rack(pod(tmp_path, devices=False))


def test_the_inventory_of_the_twin_logs_in_as_its_devices_want() -> None:
    for group, wanted in logins.group_vars("STATE").items():
        text = (ROOT / f"inventory/twin/group_vars/{group}.yml").read_text()
        given = yaml.safe_load(text)
        for variable, connection in wanted.items():
            assert given[variable].keys() == connection.keys()
            for key, value in connection.items():
                assert given[variable][key] == value or str(given[variable][key]).endswith(
                    str(value).removeprefix("STATE")
                )
