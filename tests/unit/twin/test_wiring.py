# SPDX-License-Identifier: GPL-3.0-or-later
"""Cables that hands plug, pull, move and swap."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.topology import CableKind, Layout
from hypothesis import given
from hypothesis import strategies as st

from openipu.twin.hardware import TwinHardware
from openipu.twin.wiring import CHASSIS_PORTS, Place, Wiring, WiringError

IDS = ["ag01", "ag02", "ag03"]
PLACES = [Place(agent, kind, port) for agent in IDS for kind, ports in CHASSIS_PORTS.items() for port in ports]


def laid() -> Wiring:
    wiring = Wiring()
    for id in IDS:
        TwinHardware("127.0.0.1", "127.0.0.1", "1-2", agent_id=id, wiring=wiring)
    wiring.lay(Layout(3, topology="torus"), IDS)
    return wiring


def test_places_as_they_are_written() -> None:
    wiring = laid()
    for place in PLACES:
        assert wiring.place(str(place)) == place
    assert wiring.place("ag01:sync6") == Place("ag01", CableKind.SYNC_LINK, 6)
    for text, sentence in [
        ("ag01", "'ag01' is no port: write AGENT:5 (IPU-Link), AGENT:gw1"),
        ("ag01:x1", "'ag01:x1' is no port"),
        ("ag01:9", "'ag01:9': the IPU-Link ports of a machine are 1 to 8."),
        ("ag01:gw3", "'ag01:gw3': the GW-Link ports of a machine are 1 to 2."),
        ("ag01:sync8", "'ag01:sync8': the Sync-Link ports of a machine are 0 to 7."),
        ("ag09:1", "There is no machine 'ag09' in this rack."),
    ]:
        with pytest.raises(WiringError) as refused:
            wiring.place(text)
        assert str(refused.value).startswith(sentence)


def test_what_cannot_be_done_is_said_and_changes_nothing() -> None:
    wiring = laid()
    one, free, sync = wiring.place("ag01:5"), wiring.place("ag01:gw1"), wiring.place("ag01:sync6")
    for attempt, sentence in [
        (lambda: wiring.unplug(free), "There is no cable in ag01:gw1."),
        (lambda: wiring.move(free, one), "There is no cable in ag01:gw1."),
        (lambda: wiring.move(one, wiring.place("ag01:6")), "There is a cable in ag01:6 already"),
        (lambda: wiring.move(one, wiring.place("ag01:sync0")), "The plug of a cable for IPU-Links does not fit"),
        (lambda: wiring.swap(one, sync), "The plug of a cable for IPU-Links does not fit into ag01:sync6."),
        (lambda: wiring.swap(one, free), "There is no cable in ag01:gw1."),
        (lambda: wiring.swap(one, one), "ag01:5 is one port, and two are exchanged."),
        (lambda: wiring.plug(one), "There is a cable in ag01:5 already"),
        (lambda: wiring.plug(free), "No loose cable belongs into ag01:gw1."),
        (lambda: wiring.degrade(free, dead=True), "There is no cable in ag01:gw1."),
        (lambda: wiring.degrade(one, corrected_errors=-1), "ag01:5: a number of corrected errors is not negative."),
    ]:
        with pytest.raises(WiringError) as refused:
            attempt()
        assert str(refused.value).startswith(sentence)
        assert not list(wiring.wrong())


def test_what_is_wrong_is_told_and_can_be_made_good() -> None:
    wiring = laid()
    wiring.unplug(wiring.place("ag01:5"))
    wiring.swap(wiring.place("ag02:6"), wiring.place("ag02:7"))
    wiring.degrade(wiring.place("ag03:sync2"), dead=True, corrected_errors=400)
    assert list(map(str, wiring.wrong())) == [
        "IPU-Link cable ag01:5 <-> ag02:1: not plugged in at ag01:5.",
        "IPU-Link cable ag02:6 <-> ag03:2: in ag02:7 instead of ag02:6.",
        "IPU-Link cable ag02:7 <-> ag03:3: in ag02:6 instead of ag02:7.",
        "Sync-Link cable ag02:sync6 <-> ag03:sync2: broken.",
        "Sync-Link cable ag02:sync6 <-> ag03:sync2: 400 corrected errors in every run of traffic.",
    ]
    wiring.plug(wiring.place("ag01:5"))
    wiring.repair({"ag03"})
    assert not list(wiring.wrong())


@given(st.lists(st.tuples(st.sampled_from("upmsd"), st.sampled_from(PLACES), st.sampled_from(PLACES)), max_size=40))
def test_whatever_hands_do_cables_have_two_ends_and_ports_one_cable(
    deeds: list[tuple[str, Place, Place]],
) -> None:
    wiring = laid()
    count = len(wiring.cables)
    for deed, end, other in deeds:
        try:
            if deed == "u":
                wiring.unplug(end)
            elif deed == "p":
                wiring.plug(end)
            elif deed == "m":
                wiring.move(end, other)
            elif deed == "s":
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
            there = wiring.peer(place)
            assert there is None or wiring.peer(there) == place
    assert len(wiring.cables) == count
    wiring.repair(set(IDS))
    assert not list(wiring.wrong())
