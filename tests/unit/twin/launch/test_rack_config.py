# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration of the rack twin of a POD."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from openipu.shared.pod import model
from openipu.shared.pod.load import load
from openipu.twin.devices import logins
from openipu.twin.launch import rack_config
from openipu.twin.launch.generate import PodSize
from tests import ROOT

# State folder of the twin in the inventory: that of the environment, or .twin of the checkout.
STATE = "{{ lookup('ansible.builtin.env', 'TWIN_STATE_DIR') | default(inventory_dir ~ '/../../.twin', true) }}"


def pod(tmp_path: Path, **size: Any) -> model.Pod:
    return load(str(PodSize(**{"devices": True, **size}).write(tmp_path / "pod")))


def test_a_rack_has_two_switches_and_two_pdus_on_ports_that_need_no_root(tmp_path: Path) -> None:
    one = pod(tmp_path)
    assert rack_config.contents(one) == "16 IPU-Machines, 2 switches, 2 PDUs"
    endpoints = rack_config.endpoints(one)
    assert len(endpoints) == len(set(endpoints)) == 16 * 2 + 2 * 2 + 2  # agents, their metrics, switches, PDUs
    assert min(endpoint.port for endpoint in endpoints) > 1024
    assert [endpoint for endpoint in endpoints if endpoint.udp] == [
        (f"127.3.1.{number}", logins.SNMP_PORT, True) for number in (111, 121, 131, 132)
    ]
    assert {endpoint.host for endpoint in endpoints} <= set(rack_config.hosts(one))


def test_plugs_have_the_macs_of_their_machines(tmp_path: Path) -> None:
    switches = rack_config.rack(pod(tmp_path))["devices"]["switches"]
    plugs = {(switch["name"], plug["port"]): plug for switch in switches for plug in switch["plugs"]}
    bmc_and_gw = plugs["mgmt1", "Ethernet3"]
    assert (bmc_and_gw["device"], bmc_and_gw["macs"]) == ("ag03", ["02:01:00:00:01:03", "02:02:00:00:01:03"])
    assert bmc_and_gw["vlan"] is None
    assert plugs["tor1", "Ethernet11/1"]["macs"] == ["02:05:00:00:01:03"]
    assert plugs["tor1", "Ethernet25/1"]["lacp"]
    assert plugs["tor1", "Ethernet25/1"]["vlan"] == 11  # tagged: the bond is also used for storage
    assert plugs["mgmt1", "Ethernet37"] | {"macs": []} == {
        "port": "Ethernet37",
        "device": "tor1",
        "connector": "management",
        "macs": [],
        "vlan": None,
        "lacp": False,
        "lldp_port": "Management1",
    }


def test_every_device_except_the_pdus_has_two_feeds(tmp_path: Path) -> None:
    feeds = rack_config.rack(pod(tmp_path, racks=2))["devices"]["feeds"]
    assert len(feeds) == 2 * 16 + 1 + 4
    assert {feed["device"]: feed["pdus"] for feed in feeds}["ag.02.01"] == ["pdu3", "pdu4"]


def test_a_rack_without_devices_has_none(tmp_path: Path) -> None:
    assert "devices" not in rack_config.rack(pod(tmp_path, devices=False))


def test_the_inventory_of_the_twin_has_the_credentials_of_its_devices() -> None:
    for group, expected in logins.group_vars(STATE).items():
        actual = yaml.safe_load((ROOT / f"inventory/twin/group_vars/{group}.yml").read_text())
        assert {variable: actual.get(variable) for variable in expected} == expected


@pytest.mark.parametrize("kind", ["switches", "pdus"])
def test_a_community_of_the_devices_is_optional(tmp_path: Path, kind: str) -> None:
    one = pod(tmp_path)
    options = (rack_config.Options(), rack_config.Options(snmp_community="monitoring"))
    without, with_one = (rack_config.rack(one, each)["devices"][kind] for each in options)
    assert [device.pop("community") for device in with_one] == ["monitoring"] * len(without)
    assert with_one == without


def test_unmanaged_devices_are_known_by_name(tmp_path):
    assert "unmanaged" not in rack_config.rack(load(str(ROOT / "inventory/pod64/pod.yml")))
    folder = tmp_path / "pod"
    shutil.copytree(ROOT / "inventory/pod64", folder)
    pod = folder / "pod.yml"
    pod.write_text(pod.read_text().replace("{name: mgmt1, ", "{name: mgmt1, managed: false, "))
    assert rack_config.rack(load(str(pod)))["unmanaged"] == ["mgmt1"]
