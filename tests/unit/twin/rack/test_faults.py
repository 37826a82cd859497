# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults by their lines: their effects, invalid lines, and healing of all faults."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator

import pytest

from openipu.twin.cli.next_steps import reversal
from openipu.twin.machine.machine import MachineSpec
from openipu.twin.rack.fault_lines import VERBS, FaultError, parse
from openipu.twin.rack.rack import Rack
from openipu.vipu.domain.model import Topology


@pytest.fixture
def rack() -> Rack:
    specs = [MachineSpec(f"ag{number:02}", "127.0.0.1", 0) for number in (1, 2, 3)]
    return Rack(specs, topology=Topology.TORUS)


class Running:
    """A running rack with its own event loop, and its faults."""

    def __init__(self, rack: Rack) -> None:
        self._runner = asyncio.Runner()
        self.rack = rack
        self.faults = rack.faults
        self._runner.run(rack.start())

    def apply(self, *lines: str) -> list[str]:
        for line in lines:
            self._runner.run(self.faults.apply(line))
        return list(map(str, self.faults.defects()))

    def close(self) -> None:
        self._runner.run(self.rack.stop())
        self._runner.close()


@pytest.fixture
def running(rack: Rack) -> Iterator[Running]:
    made = Running(rack)
    yield made
    made.close()


@pytest.mark.parametrize(
    "line", ["unplug ag01:5", "move ag01:6 ag01:gw1", "swap ag02:sync6 ag02:sync7", "stop ag03", "stop ag01 ag03"]
)
def test_the_printed_reversal_undoes_this_fault_only(running: Running, line: str) -> None:
    before = running.apply("unplug ag01:7", "hot ag02 40")
    assert running.apply(line) != before
    assert running.apply(shlex.join(reversal(parse(line)))) == before


@pytest.mark.parametrize(
    ("printed", "port"),
    [
        ("ag01:5 [IPU-Link]", "ag01:5"),
        ("ag01:1 [GW-Link]", "ag01:gw1"),
        ("ag01:6 [Sync-Link]", "ag01:sync6"),
        ("ag01 (IPU-Cluster Port 7)", "ag01:7"),
        ("ag01 (GW-Link Port 1)", "ag01:gw1"),
        ("ag01 IPU-Link port 5", "ag01:5"),
        ("ag01 GW-Link port 2", "ag01:gw2"),
        ("tor1:Ethernet9/1", "tor1:Ethernet9/1"),
        ("ag01:5 [USB]", "ag01:5 [USB]"),
    ],
)
def test_ports_are_accepted_as_tests_and_reports_print_them(printed: str, port: str) -> None:
    assert parse(shlex.join(("unplug", printed))) == ["unplug", port]


@pytest.mark.parametrize(
    ("printed", "port"),
    [
        ("ag03:7 <--> ag04:3", "ag03:7"),
        ("ag1:5 [IPU-Link] <--> ag2:1 [IPU-Link] (failed)", "ag1:5"),
        ("ag1:1 [GW-Link] <--> ag2:2 [GW-Link] (failed)", "ag1:gw1"),
        ("a02 (IPU-Cluster Port 7) <--> a03 (IPU-Cluster Port 3) (connected to wrong port)", "a02:7"),
        ("IPU-Link cable ag03:7 <--> ag04:3: broken.", "ag03:7"),
        ("IPU-Link cable ag03:7 <--> ag04:3: not plugged in at ag04:3.", "ag04:3"),
        ("cable ipum01 rnic: not plugged in at tor1:Ethernet9/1.", "tor1:Ethernet9/1"),
    ],
)
@pytest.mark.parametrize("verb", ["unplug", "plug"])
def test_one_port_of_a_whole_cable_is_used(verb: str, printed: str, port: str) -> None:
    assert parse(shlex.join((verb, printed))) == [verb, port]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("unplug 'ipum01:6 <--> 2:ipum02'", "this is a line of the Sync-Link test. Write unplug ipum01:sync6."),
        ("unplug 'IPU-Link cable ag05:5 <--> ag06:1: in ag05:6 instead of ag05:5.'", "the cable is in a wrong port."),
        ("unplug ag01:5 ag02:1", "its arguments do not fit. Write unplug PORT."),
        ("unplug", "its arguments do not fit. Write unplug PORT."),
    ],
)
def test_an_ambiguous_cable_is_rejected(line: str, message: str) -> None:
    with pytest.raises(FaultError) as error:
        parse(line)
    assert message in str(error.value)


def test_a_printed_port_needs_no_quotation_marks() -> None:
    assert parse("unplug ipum02:5 [IPU-Link]") == ["unplug", "ipum02:5"]


def test_other_faults_have_no_reversal() -> None:
    assert [line for line in ("hot ag02 40", "break ag03:8", "heal") if reversal(parse(line))] == []


def test_every_fault_is_reported_and_healed(running: Running) -> None:
    faults = {
        "unplug ag01:5": "IPU-Link cable ag01:5 <--> ag02:1: not plugged in at ag01:5.",
        "move ag01:6 ag01:gw1": "IPU-Link cable ag01:6 <--> ag02:2: in ag01:gw1 instead of ag01:6.",
        "swap ag02:sync6 ag02:sync7": (
            "Sync-Link cable ag02:sync6 <--> ag03:sync2: in ag02:sync7 instead of ag02:sync6."
        ),
        "break ag03:8": "IPU-Link cable ag03:8 <--> ag01:4: broken.",
        "break ag03:internal4": "IPU-Link ag03:internal4: broken.",
        "errors ag02:7 327": "IPU-Link cable ag02:7 <--> ag03:3: 327 corrected errors in every run of traffic.",
        "version ag02 'IPU firmware' 2.4.3": "ag02: IPU firmware has the version 2.4.3 instead of 2.4.4.",
        "pfc ag02 eth1 0,2": "ag02: the PFC classes of eth1 are [0, 2].",
        "pfc ag03 eth1 none": "ag03: the PFC classes of eth1 are [].",
        "pfc ag01 if-1 9,10,11": "ag01: the PFC classes of if-1 are [9, 10, 11].",
        "versions ag03 Agent=1.5.1 Virm=1.18.0": "ag03: GWSW 2.0.5 is missing.",
        "slow ag01 0.5": "ag01: responds 0.5 s late.",
        "hot ag01 30": "ag01: is 30 °C warmer than normal.",
        "reject ag01": "ag01: rejects the bring-up of IPUs.",
        "hang ag02": "ag02: does not respond.",
        "ipu ag03 2": "ag03: IPU 2 has failed.",
    }
    for line, defect in faults.items():
        assert defect in running.apply(line), line
    remaining = running.apply("plug ag01:5", "heal ag01")
    assert remaining
    assert not any("ag01" in defect for defect in remaining)
    assert "ag03: has no power." in running.apply("stop ag03")
    assert running.apply("start ag03", "heal") == []
    tested = {line.split()[0] for line in faults} | {"plug", "heal", "stop", "start"}
    assert tested == set(VERBS) - {"login", "sessions", "drop"}  # test_rack_devices tests these


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "Cannot read a fault from '': it is empty. Write a verb and its arguments."),
        ("explode ag01", "Cannot apply fault 'explode': it is unknown. Choose from unplug, plug, move, swap,"),
        ("unplug ag01:gw1", "Cannot find a cable in 'ag01:gw1': the port is empty. Name a port with a cable."),
        ("unplug ag09:1", "Cannot find 'ag09': this rack has no such machine, switch or PDU. Did you mean 'ag0"),
        ("hang ag09", "Cannot find 'ag09': this rack has no such machine, switch or PDU. Did you mean 'ag0"),
        ("stop ag01 ag09", "Cannot find 'ag09': this rack has no such machine, switch or PDU. Did you mean 'ag0"),
        (
            "break ag01:internal16",
            "Cannot find link 'ag01:internal16': the machine does not have it. Choose from internal0 to internal15.",
        ),
        (
            "errors ag01:5 many",
            "Cannot apply 'errors ag01:5 many': the count is invalid. Write a number from 0 to 999999999.",
        ),
        ("version ag01 Kernel 6", "Cannot find component 'Kernel': machine 'ag01' does not have it. Choose from GWSW,"),
        (
            "versions ag01 Virm",
            "Cannot set versions of 'ag01': a component has no version. Write each as COMPONENT=VERSION,",
        ),
        (
            "errors ag01:sync6 400",
            "Cannot apply 'errors ag01:sync6 400': only IPU-Links run traffic. Name an IPU-Link port, like ag03:5.",
        ),
        (
            "errors ag01:internal16 400",
            "Cannot find link 'ag01:internal16': the machine does not have it. Choose from internal0 to internal15.",
        ),
        (
            "pfc ag01 eth1 all",
            "Cannot apply 'pfc ag01 eth1 all': the classes are invalid. "
            "Write different classes from 0 to 15, like 0,2, or none.",
        ),
        ("pfc ag01 eth1 0,16", "Cannot apply 'pfc ag01 eth1 0,16': the classes are invalid."),
        ("pfc ag01 eth1 2,2", "Cannot apply 'pfc ag01 eth1 2,2': the classes are invalid."),
        ("slow ag01 soon", "Cannot apply 'slow ag01 soon': the time is invalid. Write seconds from 0 to 3600."),
        ("slow ag01 nan", "Cannot apply 'slow ag01 nan': the time is invalid. Write seconds from 0 to 3600."),
        ("hot ag01 -1", "Cannot apply 'hot ag01 -1': the temperature is invalid. Write degrees Celsius from 0 to 200."),
        ("ipu ag01 4", "Cannot find IPU '4': machine 'ag01' does not have it. Choose 0 to 3."),
        ("version ag01 'IPU", 'Cannot parse "version ag01 \'IPU": a quotation mark is missing. Add it.'),
    ],
)
def test_an_invalid_fault_changes_nothing(running: Running, line: str, message: str) -> None:
    with pytest.raises(FaultError) as error:
        running.apply(line)
    assert str(error.value).startswith(message)
    assert running.apply() == []


def test_defects_have_machine_readable_fields(running: Running) -> None:
    running.apply(
        "move ag01:6 ag01:gw1",
        "unplug ag02:sync6",
        "errors ag02:7 327",
        "errors ag02:internal4 500",
        "pfc ag02 eth1 0,2",
        "versions ag03 Agent=1.5.1",
    )
    found = {(item.fault, item.where): item for item in running.faults.defects()}
    moved = found["move", "ag01:6"]
    assert (moved.found, moved.expected, moved.cable) == ("ag01:gw1", "ag01:6", ("ag01:6", "ag02:2"))
    assert found["unplug", "ag02:sync6"].found == ""
    assert (found["errors", "ag02:7"].found, found["errors", "ag02:7"].expected) == ("327", "0")
    assert found["errors", "ag02:internal4"].found == "500"
    assert found["pfc", "ag02:eth1"].found == "[0, 2]"
    assert (found["version", "ag03:Agent"].found, found["version", "ag03:Agent"].expected) == ("1.5.1", "")
    assert (found["version", "ag03:Virm"].found, found["version", "ag03:Virm"].expected) == ("", "1.18.0")
    assert {fault for fault, _ in found} <= set(VERBS)


def test_a_machine_without_power_cannot_hang(running: Running) -> None:
    running.apply("stop ag01")
    with pytest.raises(FaultError, match=r"Cannot use machine 'ag01': it is stopped\. Start it first"):
        running.apply("hang ag01")
    assert running.apply("start ag01") == []


def test_words_may_be_in_quotation_marks() -> None:
    assert parse("version ag01 'IPU firmware' 1  # old") == ["version", "ag01", "IPU firmware", "1"]


def test_machines_have_other_names(rack: Rack) -> None:
    rack.faults.use_names({"ipum01": "ag01", "ipum02": "ag02", "ag03": "ag01"})
    running = Running(rack)
    try:
        by_name = running.apply("unplug ipum01:5", "stop ipum02", "hot ipum01 3", "break ag03:internal1")
        running.apply("heal")
        assert by_name == running.apply("unplug ag01:5", "stop ag02", "hot ag01 3", "break ag03:internal1")
        assert running.apply("heal ipum01 ipum02 ag03") == []
    finally:
        running.close()


def test_an_unknown_name_has_a_suggestion(rack: Rack) -> None:
    rack.faults.use_names({"ipum01": "ag01"}, ["mgmt1"])
    running = Running(rack)
    try:
        for line, message in (
            (
                "unplug IPUM01:7",
                "Cannot find 'IPUM01': this rack has no such machine, switch or PDU. Did you mean 'ipum01'?",
            ),
            ("stop xyz", "Cannot find 'xyz': this rack has no such machine, switch or PDU. Check the name."),
            (
                "stop mgmt1",
                "Cannot apply a fault to 'mgmt1': it is not managed, so the twin does not run it. Choose another one.",
            ),
        ):
            with pytest.raises(FaultError) as error:
                running.apply(line)
            assert str(error.value) == message
    finally:
        running.close()
