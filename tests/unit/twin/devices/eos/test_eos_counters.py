# SPDX-License-Identifier: GPL-3.0-or-later
"""Counters of the EOS twin: the frames of an idle switch, counted over time and over changes of the configuration."""

from __future__ import annotations

from typing import Any

from openipu.twin.cables.switch_cabling import Neighbour
from tests.unit.twin.devices.eos.switch_lines import Console

PORTS = {"Ethernet9/1": Neighbour("b-ipum1", "00:11:22:33:44:55", "eth1"), "Ethernet7/1": Neighbour("poplar1")}


def counters(console: Console, port: str) -> dict[str, Any]:
    found: dict[str, Any] = console.cli.run(f"show interfaces {port}", as_json=True)["interfaces"][port]
    return found["interfaceCounters"]


def test_an_idle_link_carries_lldp_and_spanning_tree() -> None:
    console = Console(ports=PORTS)
    console.clock.now += 600
    found = counters(console, "Ethernet9/1")
    assert (found["inMulticastPkts"], found["outMulticastPkts"]) == (600 // 30, 600 // 30 + 600 // 2)
    assert found["inOctets"] > 0 and found["outOctets"] > found["inOctets"]
    assert (found["inUcastPkts"], found["totalInErrors"], found["linkStatusChanges"]) == (0, 0, 0)
    assert counters(console, "Ethernet1/1")["outTotalPkts"] == 0  # no cable


def test_counters_stop_with_the_link_and_never_fall() -> None:
    console = Console(ports=PORTS)
    console.clock.now += 600
    console.configure("interface Ethernet9/1", "shutdown")
    down = console.clock.now
    stopped = counters(console, "Ethernet9/1")
    console.clock.now += 600
    assert counters(console, "Ethernet9/1")["outTotalPkts"] == stopped["outTotalPkts"] > 0
    console.configure("interface Ethernet9/1", "no shutdown")
    console.clock.now += 600
    found = counters(console, "Ethernet9/1")
    assert found["outTotalPkts"] == 2 * stopped["outTotalPkts"]
    assert found["linkStatusChanges"] == 2
    changed = console.cli.run("show interfaces Ethernet9/1", as_json=True)["interfaces"]["Ethernet9/1"]
    assert changed["lastStatusChangeTimestamp"] == down + 600


def test_lacp_and_the_sum_of_a_port_channel() -> None:
    console = Console(ports=PORTS)
    console.configure("interface Ethernet7/1", "channel-group 5 mode active", "lacp timer fast")
    console.type("clear counters")
    console.clock.now += 60
    member, lag = counters(console, "Ethernet7/1"), counters(console, "Port-Channel5")
    assert member["inMulticastPkts"] == 60 // 30 + 60
    assert lag["inMulticastPkts"] == member["inMulticastPkts"]


def test_clearing() -> None:
    console = Console(ports=PORTS)
    console.clock.now += 600
    console.type("clear counters Ethernet9/1")
    assert counters(console, "Ethernet9/1")["outTotalPkts"] == 0
    assert counters(console, "Ethernet7/1")["outTotalPkts"] > 0
    console.clock.now += 60
    assert counters(console, "Ethernet9/1")["outTotalPkts"] == 60 // 30 + 60 // 2


def test_tables() -> None:
    console = Console(ports=PORTS)
    console.clock.now += 600
    rows = console.type("show interfaces Ethernet9/1 counters").splitlines()
    assert [row.split() for row in rows if row.startswith("Et9/1")] == [
        ["Et9/1", "4320", "0", "20", "0"],
        ["Et9/1", "40020", "0", "320", "0"],
    ]
    rates = console.cli.run("show interfaces Ethernet9/1 counters rates", as_json=True)["interfaces"]["Ethernet9/1"]
    assert 0 < rates["inBpsRate"] < rates["outBpsRate"] < 1000
    errors = console.cli.run("show interfaces counters errors", as_json=True)["interfaceErrorCounters"]
    assert set(errors["Ethernet9/1"].values()) == {0}
