# SPDX-License-Identifier: GPL-3.0-or-later
"""Cables that are plugged, unplugged, moved and swapped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openipu.shared.pod.topology import CableKind, Layout
from openipu.twin.cables.wiring import CHASSIS_PORTS, Place, Wiring, WiringError
from openipu.twin.machine.hardware import TwinHardware

IDS = ["ag01", "ag02", "ag03"]
PLACES = [Place(agent, kind, port) for agent in IDS for kind, ports in CHASSIS_PORTS.items() for port in ports]


def cabled() -> Wiring:
    wiring = Wiring()
    for id in IDS:
        TwinHardware("127.0.0.1", "127.0.0.1", "1-2", agent_id=id, wiring=wiring)
    wiring.connect(Layout(3, topology="torus"), IDS)
    return wiring


def test_ports_as_text() -> None:
    wiring = cabled()
    for place in PLACES:
        assert wiring.place(str(place)) == place
    assert wiring.place("ag01:sync6") == Place("ag01", CableKind.SYNC_LINK, 6)
    for text, message in [
        ("ag01", "Cannot read port 'ag01': its format is unknown. Write AGENT:5 (IPU-Link), AGENT:gw1"),
        ("ag01:x1", "Cannot read port 'ag01:x1': "),
        ("ag01:9", "Cannot find port 'ag01:9': the IPU-Link ports of a machine are 1 to 8."),
        ("ag01:gw3", "Cannot find port 'ag01:gw3': the GW-Link ports of a machine are 1 to 2."),
        ("ag01:sync8", "Cannot find port 'ag01:sync8': the Sync-Link ports of a machine are 0 to 7."),
        ("ag09:1", "Cannot find machine 'ag09': it is not in this rack. Check the name."),
    ]:
        with pytest.raises(WiringError) as error:
            wiring.place(text)
        assert str(error.value).startswith(message)


def test_an_impossible_change_changes_nothing() -> None:
    wiring = cabled()
    one, free, sync = wiring.place("ag01:5"), wiring.place("ag01:gw1"), wiring.place("ag01:sync6")
    for attempt, message in [
        (
            lambda: wiring.unplug(free),
            "Cannot find a cable in 'ag01:gw1': the port is empty. Name a port with a cable.",
        ),
        (
            lambda: wiring.move(free, one),
            "Cannot find a cable in 'ag01:gw1': the port is empty. Name a port with a cable.",
        ),
        (
            lambda: wiring.move(one, wiring.place("ag01:6")),
            "Cannot use port 'ag01:6': it is not free. Unplug its cable first, or swap",
        ),
        (
            lambda: wiring.move(one, wiring.place("ag01:sync0")),
            "Cannot plug a cable into 'ag01:sync0': the cable is for IPU-Links",
        ),
        (lambda: wiring.swap(one, sync), "Cannot plug a cable into 'ag01:sync6': the cable is for IPU-Links"),
        (
            lambda: wiring.swap(one, free),
            "Cannot find a cable in 'ag01:gw1': the port is empty. Name a port with a cable.",
        ),
        (lambda: wiring.swap(one, one), "Cannot swap 'ag01:5' with itself: the ports are equal. Name two"),
        (lambda: wiring.plug(one), "Cannot use port 'ag01:5': it is not free. Unplug"),
        (lambda: wiring.plug(free), "Cannot plug a cable into 'ag01:gw1': the port has no loose cable. Unplug"),
        (
            lambda: wiring.degrade(free, dead=True),
            "Cannot find a cable in 'ag01:gw1': the port is empty. Name a port with a cable.",
        ),
        (
            lambda: wiring.degrade(one, corrected_errors=-1),
            "Cannot set corrected errors of 'ag01:5': -1 is negative. Set 0 or more.",
        ),
    ]:
        with pytest.raises(WiringError) as error:
            attempt()
        assert str(error.value).startswith(message)
        assert not list(wiring.defects())


def test_defects_are_listed_and_repaired() -> None:
    wiring = cabled()
    wiring.unplug(wiring.place("ag01:5"))
    wiring.swap(wiring.place("ag02:6"), wiring.place("ag02:7"))
    wiring.degrade(wiring.place("ag03:sync2"), dead=True, corrected_errors=400)
    assert list(map(str, wiring.defects())) == [
        "IPU-Link cable ag01:5 <--> ag02:1: not plugged in at ag01:5.",
        "IPU-Link cable ag02:6 <--> ag03:2: in ag02:7 instead of ag02:6.",
        "IPU-Link cable ag02:7 <--> ag03:3: in ag02:6 instead of ag02:7.",
        "Sync-Link cable ag02:sync6 <--> ag03:sync2: broken.",
        "Sync-Link cable ag02:sync6 <--> ag03:sync2: 400 corrected errors in every run of traffic.",
    ]
    wiring.plug(wiring.place("ag01:5"))
    wiring.repair({"ag03"})
    assert not list(wiring.defects())


@given(st.lists(st.tuples(st.sampled_from("upmsd"), st.sampled_from(PLACES), st.sampled_from(PLACES)), max_size=40))
def test_every_cable_has_two_ends_and_every_port_at_most_one_cable(
    changes: list[tuple[str, Place, Place]],
) -> None:
    wiring = cabled()
    count = len(wiring.cables)
    for change, end, other in changes:
        try:
            if change == "u":
                wiring.unplug(end)
            elif change == "p":
                wiring.plug(end)
            elif change == "m":
                wiring.move(end, other)
            elif change == "s":
                wiring.swap(end, other)
            else:
                wiring.degrade(end, dead=True)
        except WiringError:
            pass
        seen = [place for cable in wiring.cables for place in cable.ends if place]
        assert len(seen) == len(set(seen))
        for cable in wiring.cables:
            for place in cable.ends:
                assert place is None or wiring.at(place) is cable
        for place in PLACES:
            peer = wiring.peer(place)
            assert peer is None or wiring.peer(peer) == place
    assert len(wiring.cables) == count
    wiring.repair(set(IDS))
    assert not list(wiring.defects())
