# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults by their lines: what they change, what they refuse, and that healing takes all of them back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from openipu.twin.faults import VERBS, FaultError, parse
from openipu.twin.rack import MachineSpec, Rack
from openipu.vipu.model import Topology


@pytest.fixture
def rack() -> Rack:
    specs = [MachineSpec(f"ag{number:02}", "127.0.0.1", 0) for number in (1, 2, 3)]
    return Rack(specs, topology=Topology.TORUS)


class Running:
    """A rack in a loop of its own, and its faults."""

    def __init__(self, rack: Rack) -> None:
        self._runner = asyncio.Runner()
        self.rack = rack
        self.faults = rack.faults
        self._runner.run(rack.start())

    def do(self, *lines: str) -> list[str]:
        for line in lines:
            self._runner.run(self.faults.do(line))
        return list(map(str, self.faults.wrong()))

    def close(self) -> None:
        self._runner.run(self.rack.stop())
        self._runner.close()


@pytest.fixture
def running(rack: Rack) -> Iterator[Running]:
    made = Running(rack)
    yield made
    made.close()


def test_every_fault_is_told_and_healed(running: Running) -> None:
    deeds = {
        "unplug ag01:5": "IPU-Link cable ag01:5 <-> ag02:1: not plugged in at ag01:5.",
        "move ag01:6 ag01:gw1": "IPU-Link cable ag01:6 <-> ag02:2: in ag01:gw1 instead of ag01:6.",
        "swap ag02:sync6 ag02:sync7": "Sync-Link cable ag02:sync6 <-> ag03:sync2: in ag02:sync7 instead of ag02:sync6.",
        "break ag03:8": "IPU-Link cable ag03:8 <-> ag01:4: broken.",
        "break ag03:internal4": "ag03: the link internal4 is broken.",
        "errors ag02:7 327": "IPU-Link cable ag02:7 <-> ag03:3: 327 corrected errors in every run of traffic.",
        "version ag02 'IPU firmware' 2.4.3": "ag02: IPU firmware has the version 2.4.3 instead of 2.4.4.",
        "pfc ag02 eth1 0,2": "ag02: the PFC classes of eth1 are [0, 2].",
        "pfc ag03 eth1 none": "ag03: the PFC classes of eth1 are [].",
        "versions ag03 Agent=1.5.1 Virm=1.18.0": "ag03: GWSW 2.0.5 is missing.",
        "slow ag01 0.5": "ag01: answers 0.5 seconds late.",
        "hot ag01 30": "ag01: is 30 °C warmer than it should be.",
        "refuse ag01": "ag01: refuses to bring IPUs up.",
        "hang ag02": "ag02: hangs.",
        "ipu ag03 2": "ag03: IPU 2 has failed.",
    }
    for line, told in deeds.items():
        assert told in running.do(line), line
    left = running.do("plug ag01:5", "heal ag01")
    assert left
    assert not any("ag01" in sentence for sentence in left)
    assert "ag03: has no power." in running.do("stop ag03")
    assert running.do("start ag03", "heal") == []
    done = {line.split()[0] for line in deeds} | {"plug", "heal", "stop", "start"}
    assert done == set(VERBS) - {"login", "sessions", "drop"}  # test_rack_devices has those


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", "There is no fault in ''."),
        ("explode ag01", "There is no fault 'explode': choose from unplug, plug, move, swap,"),
        ("unplug ag01:gw1", "There is no cable in ag01:gw1."),
        ("unplug ag09:1", "There is no machine 'ag09' in this rack."),
        ("hang ag09", "There is no machine 'ag09' in this rack."),
        ("stop ag01 ag09", "There is no machine 'ag09' in this rack."),
        ("break ag01:internal16", "'ag01:internal16': the links inside of a machine are internal0 to internal15."),
        ("errors ag01:5 many", "errors ag01:5 many: the number of corrected errors is 0 to 999999999."),
        ("version ag01 Kernel 6", "Machine 'ag01' has no component 'Kernel': choose from GWSW,"),
        ("versions ag01 Virm", "versions ag01: write each component as COMPONENT=VERSION, like Virm=1.18.0."),
        ("pfc ag01 eth9 0,2", "Machine 'ag01' has no RNIC interface 'eth9': choose from eth1."),
        (
            "errors ag01:sync6 400",
            "errors ag01:sync6 400: traffic runs over IPU-Links only; name an IPU-Link port, like ag03:5.",
        ),
        ("errors ag01:internal16 400", "'ag01:internal16': the links inside of a machine are internal0 to internal15."),
        ("pfc ag01 eth1 all", "pfc ag01 eth1 all: classes are 0 to 7, written like 0,2, or none."),
        ("slow ag01 soon", "slow ag01 soon: seconds are a number from 0 to 3600."),
        ("slow ag01 nan", "slow ag01 nan: seconds are a number from 0 to 3600."),
        ("hot ag01 -1", "hot ag01 -1: degrees Celsius are a number from 0 to 200."),
        ("ipu ag01 4", "An IPU-Machine has IPUs 0 to 3, and no IPU 4."),
        ("version ag01 'IPU", 'Cannot read "version ag01 \'IPU": a quotation mark is missing.'),
    ],
)
def test_what_cannot_be_is_said_and_changes_nothing(running: Running, line: str, sentence: str) -> None:
    with pytest.raises(FaultError) as refused:
        running.do(line)
    assert str(refused.value).startswith(sentence)
    assert running.do() == []


def test_what_is_wrong_is_told_to_programs_too(running: Running) -> None:
    running.do(
        "move ag01:6 ag01:gw1",
        "unplug ag02:sync6",
        "errors ag02:7 327",
        "errors ag02:internal4 500",
        "pfc ag02 eth1 0,2",
        "versions ag03 Agent=1.5.1",
    )
    found = {(item.fault, item.where): item for item in running.faults.wrong()}
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
    running.do("stop ag01")
    with pytest.raises(FaultError, match="Machine 'ag01' is stopped; start it first"):
        running.do("hang ag01")
    assert running.do("start ag01") == []


def test_words_may_be_in_quotation_marks() -> None:
    assert parse("version ag01 'IPU firmware' 1  # old") == ["version", "ag01", "IPU firmware", "1"]
