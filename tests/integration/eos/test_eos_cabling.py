# SPDX-License-Identifier: GPL-3.0-or-later
"""eos_pod_info tells what a switch sees, and names everything that is not in the port where it belongs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.eos.infos import EOS_POD_INFO
from ansible_collections.openipu.pod.plugins.module_utils.pod.cabling import cable_macs
from eos_runs import POD, delivered, perform, run, wanted
from eos_switches import Cables, ServedSwitch, rack_of_switches
from hypothesis import given, settings
from hypothesis import strategies as st
from playbook import results

from openipu.twin.eos.surroundings import Neighbour

CHASSIS = "02:00:00:00:00:99"
DEVICES = {device.name: device for device in POD.devices}
CABLES = [
    {
        "device": cable.device,
        "connector": cable.connector,
        "port": cable.port,
        "vlans": list(cable.vlans),
        # The model knows no addresses of servers, which have one for both ports of their bond.
        "macs": cable_macs(DEVICES[cable.device], cable.connector) or [f"02:00:00:00:01:{int(cable.device[-1]):02x}"],
    }
    for cable in POD.cables
    if cable.switch == "tor1"
]
MACHINES = {cable["device"]: cable["port"] for cable in CABLES if cable["connector"] == "rnic"}
FREE = ["Ethernet33", "Ethernet34"]  # nothing belongs there
MACS = {cable["device"]: cable["macs"] for cable in CABLES}


def plugged(places: Mapping[str, str] | None = None, lldp: bool = True, macs: bool = True) -> dict[str, Neighbour]:
    """What is at the ports when machines are where it is said, and everything else where it belongs."""
    found = {}
    for cable in CABLES:
        device = cable["device"]
        port = cable["port"] if places is None or device not in MACHINES else places.get(device)
        if port is not None:
            tag = cable["vlans"][0] if len(cable["vlans"]) > 1 else None
            heard = tuple((mac, tag) for mac in cable["macs"]) if macs else ()
            found[port] = Neighbour(device if lldp else "", CHASSIS, cable["connector"], heard)
    return found


@pytest.fixture(scope="module")
def tor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedSwitch]:
    """The data switch of an IPU-POD64, configured."""
    with rack_of_switches(tmp_path_factory.mktemp("cabling")) as rack:
        switch = delivered(rack, "tor1", surroundings=Cables(plugged()))
        assert run(switch, wanted("tor1"), state="replaced")["changed"]
        yield switch


def look(tor: ServedSwitch, ports: Mapping[str, Neighbour], **options: Any) -> dict[str, Any]:
    """What eos_pod_info finds when these are plugged in."""
    tor.do(setattr, tor.switch.surroundings, "ports", dict(ports))
    return perform(EOS_POD_INFO, {**tor.options(), "cables": CABLES, **options})


def test_what_it_is_and_what_it_sees(tor: ServedSwitch) -> None:
    requests, before = tor.requests, tor.config()
    found = look(tor, plugged())
    assert (tor.requests - requests, tor.config()) == (1, before)
    hardware = tor.switch.hardware
    assert found["switch"] == {
        "hostname": "tor1",
        "model": "DCS-7060CX-32S-F",
        "version": "4.28.3M",
        "serial": hardware.serial,
        "mac": ":".join(re.findall("..", hardware.mac)),
    }
    port = MACHINES["ipum01"]
    assert found["interfaces"][port] == {
        "status": "connected",
        "description": "ipum01 rnic",
        "bandwidth": 100_000_000_000,
        "vlan": 11,
    }
    assert {"port": port, "device": "ipum01", "device_port": "rnic"} in found["neighbors"]
    assert {"mac": MACS["ipum01"][0], "vlan": 11, "port": port} in found["macs"]
    assert (found["ok"], found["findings"], found["changed"]) == (True, [], False)
    assert perform(EOS_POD_INFO, tor.options())["ok"] is None  # with nothing to compare with


@settings(max_examples=25)
@given(places=st.permutations([*MACHINES.values(), *FREE]), lldp=st.booleans(), macs=st.booleans())
def test_every_machine_in_a_wrong_port_is_named(tor: ServedSwitch, places: list[str], lldp: bool, macs: bool) -> None:
    """However machines change places, as long as a switch can tell who they are."""
    there = dict(zip(MACHINES, places, strict=False))
    found = look(tor, plugged(there, lldp, macs))["findings"]
    if lldp or macs:
        wrong = {device: port for device, port in there.items() if port != MACHINES[device]}
        assert {(one["device"], one["found"]) for one in found} == set(wrong.items())
        assert all(one["kind"] == "wrong_port" and one["port"] == MACHINES[one["device"]] for one in found)
        for one in found:
            assert one["reason"].startswith(f"{one['device']} rnic is in {one['found']} (")
            assert one["reason"].endswith(f"belongs in {one['port']}: move its cable.")
    else:  # nobody says who he is, and only an empty port is sure to be wrong
        empty = set(MACHINES.values()) - set(there.values())
        assert {(one["kind"], one["port"]) for one in found} == {("link_down", port) for port in empty}


def test_two_machines_that_changed_places(tor: ServedSwitch) -> None:
    one, two = MACHINES["ipum03"], MACHINES["ipum07"]
    there = {**MACHINES, "ipum03": two, "ipum07": one}
    found = look(tor, plugged(there))
    assert found["ok"] is False
    assert [item["reason"] for item in found["findings"]] == [
        f"ipum03 rnic is in {two} (MAC {MACS['ipum03'][0]} was learnt there) and belongs in {one}: move its cable.",
        f"ipum07 rnic is in {one} (MAC {MACS['ipum07'][0]} was learnt there) and belongs in {two}: move its cable.",
    ]
    failed = look(tor, plugged(there), fail_on_findings=True)
    assert failed["failed"] and failed["findings"] == found["findings"]
    assert failed["msg"] == " ".join(item["reason"] for item in found["findings"])


def test_many_wrong_ports_in_one_sentence_of_three(tor: ServedSwitch) -> None:
    ports = list(MACHINES.values())
    there = dict(zip(MACHINES, [*ports[1:], ports[0]], strict=True))
    said = look(tor, plugged(there), fail_on_findings=True)["msg"]
    assert said.count("move its cable.") == 3
    assert said.endswith(f" And {len(MACHINES) - 3} more.")


def test_one_machine_in_the_port_of_another_that_is_away(tor: ServedSwitch) -> None:
    there = {**MACHINES, "ipum03": MACHINES["ipum07"]}
    del there["ipum07"]
    ports = plugged(there, macs=False)
    found = {one["device"]: one for one in look(tor, ports)["findings"]}
    assert (found["ipum03"]["kind"], found["ipum03"]["found"]) == ("wrong_port", MACHINES["ipum07"])
    assert (found["ipum07"]["kind"], found["ipum07"]["found"]) == ("wrong_port", None)
    assert found["ipum07"]["reason"] == (
        f"ipum03 is in {MACHINES['ipum07']}, where ipum07 rnic belongs (it said so by LLDP)."
    )


def test_a_cable_that_is_not_there_or_leads_to_nothing(tor: ServedSwitch) -> None:
    ports = plugged()
    del ports[MACHINES["ipum05"]]
    ports[MACHINES["ipum06"]] = Neighbour("ipum06", CHASSIS, "rnic", up=False)
    found = look(tor, ports, cables=[*CABLES, {"device": "x", "connector": "y", "port": "Ethernet77/1"}])["findings"]
    assert [(one["kind"], one["device"]) for one in found] == [
        ("link_down", "ipum05"),
        ("link_down", "ipum06"),
        ("no_port", "x"),
    ]
    assert found[2]["reason"] == "The switch has no Ethernet77/1, where x y belongs."


def test_long_names_and_bonds_are_understood(tor: ServedSwitch) -> None:
    """Devices say their full names, and a bond learns at its port-channel."""
    ports = {
        port: Neighbour(one.name.upper() + ".example.org", one.chassis, one.port, one.macs)
        for port, one in plugged().items()
    }
    found = look(tor, ports)
    assert found["ok"], found["findings"]
    assert any(row["port"].startswith("Port-Channel") for row in found["macs"])


def test_by_playbook_in_the_worker_and_as_a_module(tor: ServedSwitch, tmp_path: Path) -> None:
    there = {**MACHINES, "ipum03": FREE[0]}
    tor.do(setattr, tor.switch.surroundings, "ports", plugged(there))
    tasks = [
        {
            "openipu.pod.eos_pod_info": tor.options(cables="{{ cables }}", fail_on_findings=strict),
            "vars": {"openipu_fast_path": path},
            "ignore_errors": True,
        }
        for path in (True, False)
        for strict in (False, True)
    ]
    found = results(tmp_path, tasks, cables=CABLES)
    assert [one["failed"] for one in found] == [False, True, False, True]
    for one in found:
        assert [(item["device"], item["found"]) for item in one["findings"]] == [("ipum03", FREE[0])]
        assert one["switch"]["hostname"] == "tor1"
