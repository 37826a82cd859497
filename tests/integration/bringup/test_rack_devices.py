# SPDX-License-Identifier: GPL-3.0-or-later
"""Switches and PDUs in the rack twin: what they mean to its machines, and how they are broken and healed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyeapi
import pytest
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import SentenceError
from furnished import Furnished
from waiting import until

from openipu.twin.faults import FaultError
from openipu.twin.power import MACHINE_IDLE

Make = Callable[[str], Furnished]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Furnished] = []

    def with_pdus(model: str) -> Furnished:
        made.append(Furnished(tmp_path, model))
        return made[-1]

    yield with_pdus
    for each in made:
        each.close()


@pytest.fixture
def metered(make: Make) -> Furnished:
    return make("AP8886")


def hostname(rack: Furnished, switch: str) -> str:
    found: str = rack.node(switch).enable("show hostname")[0]["result"]["hostname"]
    return found


def test_switches_answer_whoever_trusts_the_twins_authority(metered):
    assert [hostname(metered, name) for name in ("tor1", "mgmt1")] == ["tor1", "mgmt1"]
    assert metered.wrong() == []


def test_cables_in_wrong_ports_are_seen_by_the_switch_and_put_back(metered):
    for switch in ("tor1", "mgmt1"):
        assert metered.configure(switch)
        assert not metered.configure(switch)
        assert metered.cabling(switch) == []
    metered.fault("swap tor1:Ethernet9/1 tor1:Ethernet10/1")
    metered.fault("unplug mgmt1:Ethernet3")
    assert len(metered.wrong()) == 3
    first, second = metered.cabling("tor1")
    assert first.startswith("ag01 rnic is in Ethernet10/1 ")
    assert second.startswith("ag02 rnic is in Ethernet9/1 ")
    assert [told.split(":")[0] for told in metered.cabling("mgmt1")] == ["There is no link at Ethernet3"]
    metered.fault("heal tor1")
    assert (metered.cabling("tor1"), len(metered.wrong())) == ([], 1)
    metered.fault("heal ag03")
    assert (metered.cabling("mgmt1"), metered.wrong()) == ([], [])


def test_the_load_of_pdus_follows_the_machines(metered):
    full = metered.load("pdu1") + metered.load("pdu2")
    metered.fault("stop ag01")
    assert full - metered.load("pdu1") - metered.load("pdu2") == pytest.approx(MACHINE_IDLE, abs=40)
    # What one PDU does not give any more is taken from the other.
    metered.fault("start ag01")
    metered.fault("stop pdu2")
    assert metered.load("pdu1") == pytest.approx(full, abs=40)
    assert metered.wrong() == ["pdu2: has no power."]
    assert hostname(metered, "tor1") == "tor1"
    metered.fault("heal")
    assert metered.load("pdu1") + metered.load("pdu2") == pytest.approx(full, abs=40)


def test_a_machine_without_any_outlet_is_dark_until_it_has_one(make):
    rack = make("AP8953")
    places = rack.get(lambda: rack.rack.devices.power.outlets("ag02"))
    assert [pdu for pdu, _ in places] == ["pdu1", "pdu2"]
    machine = rack.rack.machines["ag02"]
    (first, outlet), (second, other) = places
    assert rack.pdu(first, outlets=[{"number": outlet, "state": "off"}])["changed"]
    assert machine.server.running
    assert rack.pdu(second, outlets=[{"number": other, "state": "off"}])["changed"]
    until(lambda: not machine.server.running)
    assert rack.wrong() == ["ag02: has no power."]
    # What a PDU was set to outlasts the twin: a machine that was switched off stays so.
    rack.run(rack.rack.stop())
    machine = rack.boot().machines["ag02"]
    until(lambda: not machine.server.running)
    assert rack.pdu(first, outlets=[{"number": outlet, "state": "on"}])["changed"]
    until(lambda: machine.server.running)


def test_a_switch_without_power_answers_nobody_and_keeps_what_was_saved(metered):
    node = metered.node("tor1")
    node.config(["hostname kept", "vlan 77"])
    node.enable("copy running-config startup-config")
    node.config(["no vlan 77", "vlan 78"])
    metered.fault("stop tor1")
    with pytest.raises(pyeapi.eapilib.ConnectionError):
        hostname(metered, "tor1")
    assert metered.wrong() == ["tor1: has no power."]
    # The cable of its own management port is dead now.
    status = metered.node("mgmt1").enable("show interfaces Ethernet37 status")[0]["result"]["interfaceStatuses"]
    assert status["Ethernet37"]["linkStatus"] == "notconnect"
    metered.fault("start tor1")
    assert hostname(metered, "tor1") == "kept"
    vlans = metered.node("tor1").enable("show vlan")[0]["result"]["vlans"]
    assert "77" in vlans
    assert "78" not in vlans


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("refuse tor1", "tor1: takes no connections."),
        ("login tor1", "tor1: knows none of its users."),
        ("sessions tor1", "tor1: has no room for another configuration session."),
        ("drop tor1 before", "tor1: breaks the connection in the next commit, before it takes effect."),
        ("slow tor1 0.3", "tor1: answers 0.3 seconds late."),
        ("refuse pdu1", "pdu1: answers nobody."),
        ("login pdu1", "pdu1: knows none of its users."),
        ("slow pdu1 0.3", "pdu1: answers 0.3 seconds late."),
    ],
)
def test_every_fault_of_a_device_is_told_and_healed(metered, fault, told):
    metered.fault(fault)
    assert metered.wrong() == [told]
    metered.fault(f"heal {fault.split()[1]}")
    assert metered.wrong() == []
    assert hostname(metered, "tor1") == "tor1"
    assert metered.load("pdu1") > 0


@pytest.mark.parametrize("fault", ["refuse", "login", "sessions", "drop"])
def test_a_switch_that_is_broken_is_left_as_it_was(metered, fault):
    before = metered.get(lambda: metered.rack.devices.switches["tor1"].switch.running.lines())
    metered.fault(f"{fault} tor1{' before' if fault == 'drop' else ''}")
    with pytest.raises((AssertionError, SentenceError)):
        metered.configure("tor1")
    metered.fault("heal tor1")
    assert metered.get(lambda: metered.rack.devices.switches["tor1"].switch.running.lines()) == before
    assert metered.configure("tor1")


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("sessions pdu1", "There is no switch 'pdu1' in this rack."),
        ("drop tor1 never", "drop tor1 never: write before or after."),
        ("login ag01", "There is no switch or PDU 'ag01' in this rack."),
        ("stop tor9", "There is no machine 'tor9' in this rack."),
        ("unplug tor1:Ethernet99/1", "Switch 'tor1' has no port 'Ethernet99/1': write it like tor1:Ethernet9/1."),
        ("unplug tor1:Ethernet30/1", "There is no cable in tor1:Ethernet30/1."),
        ("hang tor1", "There is no machine 'tor1' in this rack."),
    ],
)
def test_what_makes_no_sense_is_told(metered, fault, sentence):
    with pytest.raises(FaultError) as told:
        metered.fault(fault)
    assert str(told.value) == sentence
    assert metered.wrong() == []
