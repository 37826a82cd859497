# SPDX-License-Identifier: GPL-3.0-or-later
"""Switches and PDUs of the rack twin: their effect on its machines, and their faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyeapi
import pytest

from openipu.shared.reconcile import UserError
from openipu.twin.cables.power import MACHINE_IDLE
from openipu.twin.rack.fault_lines import FaultError
from tests.integration.bringup.rack_with_devices import RackWithDevices
from tests.waiting import until

Make = Callable[[str], RackWithDevices]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[RackWithDevices] = []

    def with_pdus(model: str) -> RackWithDevices:
        made.append(RackWithDevices(tmp_path, model))
        return made[-1]

    yield with_pdus
    for each in made:
        each.close()


@pytest.fixture
def metered(make: Make) -> RackWithDevices:
    return make("AP8886")


def hostname(rack: RackWithDevices, switch: str) -> str:
    found: str = rack.node(switch).enable("show hostname")[0]["result"]["hostname"]
    return found


def test_switches_have_certificates_of_the_twins_authority(metered):
    assert [hostname(metered, name) for name in ("tor1", "mgmt1")] == ["tor1", "mgmt1"]
    assert metered.defects() == []


def test_switches_detect_misplaced_cables_until_healed(metered):
    for switch in ("tor1", "mgmt1"):
        assert metered.configure(switch)
        assert not metered.configure(switch)
        assert metered.cabling(switch) == []
    metered.fault("swap tor1:Ethernet9/1 tor1:Ethernet10/1")
    metered.fault("unplug mgmt1:Ethernet3")
    assert len(metered.defects()) == 3
    first, second = metered.cabling("tor1")
    assert first.startswith("ag01 rnic is in port Ethernet10/1 ")
    assert second.startswith("ag02 rnic is in port Ethernet9/1 ")
    assert [finding.split(":")[0] for finding in metered.cabling("mgmt1")] == ["Port Ethernet3 has no link"]
    metered.fault("heal tor1")
    assert (metered.cabling("tor1"), len(metered.defects())) == ([], 1)
    metered.fault("heal ag03")
    assert (metered.cabling("mgmt1"), metered.defects()) == ([], [])


def test_the_load_of_pdus_follows_the_machines(metered):
    full = metered.load("pdu1") + metered.load("pdu2")
    metered.fault("stop ag01")
    assert full - metered.load("pdu1") - metered.load("pdu2") == pytest.approx(MACHINE_IDLE, abs=40)
    # The other PDU takes over the load.
    metered.fault("start ag01")
    metered.fault("stop pdu2")
    assert metered.load("pdu1") == pytest.approx(full, abs=40)
    assert metered.defects() == ["pdu2: has no power."]
    assert hostname(metered, "tor1") == "tor1"
    metered.fault("heal")
    assert metered.load("pdu1") + metered.load("pdu2") == pytest.approx(full, abs=40)


def test_a_machine_without_a_live_outlet_is_off_until_one_returns(make):
    rack = make("AP8953")
    places = rack.get(lambda: rack.rack.devices.power.outlets("ag02"))
    assert [pdu for pdu, _ in places] == ["pdu1", "pdu2"]
    machine = rack.rack.machines["ag02"]
    (first, outlet), (second, other) = places
    assert rack.pdu(first, outlets=[{"number": outlet, "state": "off"}])["changed"]
    assert machine.server.running
    assert rack.pdu(second, outlets=[{"number": other, "state": "off"}])["changed"]
    until(lambda: not machine.server.running)
    assert rack.defects() == ["ag02: has no power."]
    # Outlet states survive a restart of the twin, so the machine stays off.
    rack.run(rack.rack.stop())
    machine = rack.boot().machines["ag02"]
    until(lambda: not machine.server.running)
    assert rack.pdu(first, outlets=[{"number": outlet, "state": "on"}])["changed"]
    until(lambda: machine.server.running)


def test_a_stopped_machine_stays_off_when_its_power_returns(metered):
    metered.fault("stop ag01 tor1")
    metered.fault("stop pdu1 pdu2")
    until(lambda: not any(machine.server.running for machine in metered.rack.machines.values()))
    assert [line.split(":")[0] for line in metered.defects()[:3]] == ["pdu1", "pdu2", "tor1"]
    metered.fault("start pdu1 pdu2")
    until(lambda: metered.rack.machines["ag02"].server.running)
    until(lambda: metered.defects() == ["tor1: has no power.", "ag01: has no power."])
    metered.fault("start ag01")
    metered.fault("heal tor1")
    assert metered.defects() == []


def test_a_stop_directly_after_the_start_of_a_pdu_lasts(metered):
    """The start of the PDU only begins the starts of its devices."""
    machine, faults = metered.rack.machines["ag01"], metered.rack.faults
    metered.fault("stop pdu1 pdu2")
    until(lambda: not machine.server.running)

    async def start_and_stop() -> None:
        await faults.apply("start pdu1")
        await faults.apply("stop ag01")

    metered.run(start_and_stop())
    until(lambda: metered.rack.machines["ag02"].server.running)
    assert not machine.server.running
    metered.fault("heal")
    assert metered.defects() == []


def test_a_switch_without_power_does_not_respond_and_keeps_its_startup_config(metered):
    node = metered.node("tor1")
    node.config(["hostname kept", "vlan 77"])
    node.enable("copy running-config startup-config")
    node.config(["no vlan 77", "vlan 78"])
    metered.fault("stop tor1")
    with pytest.raises(pyeapi.eapilib.ConnectionError):
        hostname(metered, "tor1")
    assert metered.defects() == ["tor1: has no power."]
    # The link of its own management port is down.
    status = metered.node("mgmt1").enable("show interfaces Ethernet37 status")[0]["result"]["interfaceStatuses"]
    assert status["Ethernet37"]["linkStatus"] == "notconnect"
    metered.fault("start tor1")
    assert hostname(metered, "tor1") == "kept"
    vlans = metered.node("tor1").enable("show vlan")[0]["result"]["vlans"]
    assert "77" in vlans
    assert "78" not in vlans


@pytest.mark.parametrize(
    ("fault", "defect"),
    [
        ("reject tor1", "tor1: rejects all connections."),
        ("login tor1", "tor1: rejects all of its users."),
        ("sessions tor1", "tor1: rejects new configuration sessions: all are in use."),
        ("drop tor1 before", "tor1: drops the connection in the next commit, before it takes effect."),
        ("slow tor1 0.3", "tor1: responds 0.3 s late."),
        ("reject pdu1", "pdu1: ignores all requests."),
        ("login pdu1", "pdu1: rejects all of its users."),
        ("slow pdu1 0.3", "pdu1: responds 0.3 s late."),
    ],
)
def test_every_fault_of_a_device_is_reported_and_healed(metered, fault, defect):
    metered.fault(fault)
    assert metered.defects() == [defect]
    metered.fault(f"heal {fault.split()[1]}")
    assert metered.defects() == []
    assert hostname(metered, "tor1") == "tor1"
    assert metered.load("pdu1") > 0


@pytest.mark.parametrize("fault", ["reject", "login", "sessions", "drop"])
def test_a_failed_configuration_changes_nothing_on_the_switch(metered, fault):
    before = metered.get(lambda: metered.rack.devices.switches["tor1"].switch.running.lines())
    metered.fault(f"{fault} tor1{' before' if fault == 'drop' else ''}")
    with pytest.raises((AssertionError, UserError)):
        metered.configure("tor1")
    metered.fault("heal tor1")
    assert metered.get(lambda: metered.rack.devices.switches["tor1"].switch.running.lines()) == before
    assert metered.configure("tor1")


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("sessions pdu1", "Cannot find switch 'pdu1': it is a PDU. Name a switch."),
        ("drop tor1 never", "Cannot apply 'drop tor1 never': 'never' is neither before nor after. Write one."),
        ("login ag01", "Cannot find switch or PDU 'ag01': it is a machine. Name a switch or PDU."),
        ("stop tor9", "Cannot find 'tor9': this rack has no such machine, switch or PDU. Did you mean 'tor1'?"),
        (
            "unplug tor1:Ethernet99/1",
            "Cannot find port 'Ethernet99/1': switch 'tor1' does not have it. Write it like tor1:Ethernet9/1.",
        ),
        (
            "unplug tor1:Ethernet30/1",
            "Cannot find a cable in 'tor1:Ethernet30/1': the port is empty. Name a port with a cable.",
        ),
        ("hang tor1", "Cannot find machine 'tor1': it is a switch. Name a machine."),
        ("unplug pdu1:3", "Cannot find machine 'pdu1': it is a PDU. Name a machine."),
    ],
)
def test_an_invalid_fault_of_a_device_is_rejected(metered, fault, message):
    with pytest.raises(FaultError) as error:
        metered.fault(fault)
    assert str(error.value) == message
    assert metered.defects() == []
