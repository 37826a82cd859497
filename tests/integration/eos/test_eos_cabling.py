# SPDX-License-Identifier: GPL-3.0-or-later
"""eos_pod_info returns the state of a switch and reports every cable in a wrong port."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.eos.info_task import EOS_POD_INFO
from ansible_collections.openipu.pod.plugins.module_utils.pod.cabling import cable_macs
from hypothesis import given, settings
from hypothesis import strategies as st

from openipu.twin.cables.switch_cabling import Neighbour
from tests.integration.collection.playbook import results
from tests.integration.eos.eos_runs import POD, desired, new_switch, perform, run
from tests.integration.eos_switches import Cables, ServedSwitch, rack_of_switches

CHASSIS = "02:00:00:00:00:99"
DEVICES = {device.name: device for device in POD.devices}
CABLES = [
    {
        "device": cable.device,
        "connector": cable.connector,
        "port": cable.port,
        "vlans": list(cable.vlans),
        # The model has no MAC addresses of servers; both ports of a bond share one.
        "macs": cable_macs(DEVICES[cable.device], cable.connector) or [f"02:00:00:00:01:{int(cable.device[-1]):02x}"],
    }
    for cable in POD.cables
    if cable.switch == "tor1"
]
MACHINES = {cable["device"]: cable["port"] for cable in CABLES if cable["connector"] == "rnic"}
FREE = ["Ethernet33", "Ethernet34"]  # free according to the model
MACS = {cable["device"]: cable["macs"] for cable in CABLES}


def cabling(places: Mapping[str, str] | None = None, lldp: bool = True, macs: bool = True) -> dict[str, Neighbour]:
    """Return the neighbours of the ports, with machines at these places and all other devices in their own port."""
    found = {}
    for cable in CABLES:
        device = cable["device"]
        port = cable["port"] if places is None or device not in MACHINES else places.get(device)
        if port is not None:
            tag = cable["vlans"][0] if len(cable["vlans"]) > 1 else None
            addresses = tuple((mac, tag) for mac in cable["macs"]) if macs else ()
            found[port] = Neighbour(device if lldp else "", CHASSIS, cable["connector"], addresses)
    return found


@pytest.fixture(scope="module")
def tor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedSwitch]:
    """Configured data switch of an IPU-POD64."""
    with rack_of_switches(tmp_path_factory.mktemp("cabling")) as rack:
        switch = new_switch(rack, "tor1", cabling=Cables(cabling()))
        assert run(switch, desired("tor1"), state="replaced")["changed"]
        yield switch


def fetch_info(tor: ServedSwitch, ports: Mapping[str, Neighbour], **options: Any) -> dict[str, Any]:
    """Run eos_pod_info with these neighbours."""
    tor.do(setattr, tor.switch.cabling, "ports", dict(ports))
    return perform(EOS_POD_INFO, {**tor.options(), "cables": CABLES, **options})


def test_hardware_ports_neighbours_and_macs(tor: ServedSwitch) -> None:
    requests, before = tor.requests, tor.config()
    found = fetch_info(tor, cabling())
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
    assert perform(EOS_POD_INFO, tor.options())["ok"] is None  # no cables to compare


@settings(max_examples=25)
@given(places=st.permutations([*MACHINES.values(), *FREE]), lldp=st.booleans(), macs=st.booleans())
def test_every_machine_in_a_wrong_port_is_reported(
    tor: ServedSwitch, places: list[str], lldp: bool, macs: bool
) -> None:
    """Any permutation of machines is found, as long as LLDP or MAC addresses identify them."""
    moved = dict(zip(MACHINES, places, strict=False))
    found = fetch_info(tor, cabling(moved, lldp, macs))["findings"]
    if lldp or macs:
        wrong = {device: port for device, port in moved.items() if port != MACHINES[device]}
        assert {(one["device"], one["found"]) for one in found} == set(wrong.items())
        assert all(one["kind"] == "wrong_port" and one["port"] == MACHINES[one["device"]] for one in found)
        for one in found:
            assert one["reason"].startswith(
                f"{one['device']} rnic is in port {one['found']} instead of {one['port']} ("
            )
            assert one["reason"].endswith("). Move its cable.")
    else:  # nothing identifies a machine, so that only empty ports are certain defects
        empty = set(MACHINES.values()) - set(moved.values())
        assert {(one["kind"], one["port"]) for one in found} == {("link_down", port) for port in empty}


def test_two_machines_that_changed_places(tor: ServedSwitch) -> None:
    one, two = MACHINES["ipum03"], MACHINES["ipum07"]
    places = {**MACHINES, "ipum03": two, "ipum07": one}
    found = fetch_info(tor, cabling(places))
    assert found["ok"] is False
    assert [item["reason"] for item in found["findings"]] == [
        f"{machine} rnic is in port {found_in} instead of {port} (MAC address {MACS[machine][0]} learnt there). "
        "Move its cable."
        for machine, port, found_in in (("ipum03", one, two), ("ipum07", two, one))
    ]
    failed = fetch_info(tor, cabling(places), fail_on_findings=True)
    assert failed["failed"] and failed["findings"] == found["findings"]
    assert failed["msg"] == " ".join(item["reason"] for item in found["findings"])


def test_the_message_has_three_findings_at_most(tor: ServedSwitch) -> None:
    ports = list(MACHINES.values())
    places = dict(zip(MACHINES, [*ports[1:], ports[0]], strict=True))
    message = fetch_info(tor, cabling(places), fail_on_findings=True)["msg"]
    assert message.count("Move its cable.") == 3
    assert message.endswith(f" And {len(MACHINES) - 3} more.")


def test_one_machine_in_the_port_of_a_missing_one(tor: ServedSwitch) -> None:
    places = {**MACHINES, "ipum03": MACHINES["ipum07"]}
    del places["ipum07"]
    ports = cabling(places, macs=False)
    found = {one["device"]: one for one in fetch_info(tor, ports)["findings"]}
    assert (found["ipum03"]["kind"], found["ipum03"]["found"]) == ("wrong_port", MACHINES["ipum07"])
    assert (found["ipum07"]["kind"], found["ipum07"]["found"]) == ("wrong_port", None)
    assert found["ipum07"]["reason"] == (
        f"ipum03 is in port {MACHINES['ipum07']}, which belongs to ipum07 rnic (LLDP neighbour there)."
    )


def test_missing_cables_dead_links_and_unknown_ports(tor: ServedSwitch) -> None:
    ports = cabling()
    del ports[MACHINES["ipum05"]]
    ports[MACHINES["ipum06"]] = Neighbour("ipum06", CHASSIS, "rnic", up=False)
    found = fetch_info(tor, ports, cables=[*CABLES, {"device": "x", "connector": "y", "port": "Ethernet77/1"}])[
        "findings"
    ]
    assert [(one["kind"], one["device"]) for one in found] == [
        ("link_down", "ipum05"),
        ("link_down", "ipum06"),
        ("no_port", "x"),
    ]
    assert found[2]["reason"] == "The switch has no port Ethernet77/1 for x y."


def test_long_names_and_bonds(tor: ServedSwitch) -> None:
    """Devices send full domain names, and the MAC address of a bond is learnt on its port-channel."""
    ports = {
        port: Neighbour(one.name.upper() + ".example.org", one.chassis, one.port, one.macs)
        for port, one in cabling().items()
    }
    found = fetch_info(tor, ports)
    assert found["ok"], found["findings"]
    assert any(row["port"].startswith("Port-Channel") for row in found["macs"])


def test_by_playbook_in_the_worker_and_as_a_module(tor: ServedSwitch, tmp_path: Path) -> None:
    places = {**MACHINES, "ipum03": FREE[0]}
    tor.do(setattr, tor.switch.cabling, "ports", cabling(places))
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
        # A failed task prints its result, so it is short.
        assert one.get("switch", {}).get("hostname") == (None if one["failed"] else "tor1")
