# SPDX-License-Identifier: GPL-3.0-or-later
"""Power in a rack twin: outlets, what is taken from them, and who goes dark."""

from __future__ import annotations

import pytest

from openipu.twin.power import Feed, Power

WATTS = {"m1": 900.0, "m2": 500.0, "tor": 120.0}


def power(*pdus: str, outlets: int = 42) -> Power:
    feeds = [Feed(device, pdus) for device in WATTS]
    return Power(feeds, dict.fromkeys(pdus, outlets), WATTS.__getitem__)


def taken(power: Power, *pdus: str) -> float:
    return sum(power.watts(pdu, outlet) for pdu in pdus for outlet in range(1, 43))


def test_two_supplies_share_what_a_device_takes() -> None:
    rack = power("a", "b")
    assert taken(rack, "a") == taken(rack, "b") == sum(WATTS.values()) / 2


def test_the_outlets_of_a_pdu_are_given_out_evenly() -> None:
    rack = power("a", "b")
    assert [rack.outlets(device) for device in WATTS] == [
        [("a", 1), ("b", 1)],
        [("a", 15), ("b", 15)],
        [("a", 29), ("b", 29)],
    ]


def test_a_device_lives_on_its_other_supply() -> None:
    rack = power("a", "b")
    assert rack.switch("a", 1, on=False) is None
    assert rack.fed("m1")
    assert rack.watts("a", 1) == 0
    assert rack.watts("b", 1) == WATTS["m1"]


def test_a_device_without_any_supply_is_dark_until_it_has_one_again() -> None:
    rack = power("a", "b")
    rack.switch("a", 1, on=False)
    assert rack.switch("b", 1, on=False) == "m1"
    assert not rack.fed("m1")
    assert taken(rack, "a", "b") == pytest.approx(WATTS["m2"] + WATTS["tor"])
    assert rack.switch("a", 1, on=True) == "m1"
    assert rack.fed("m1")


def test_an_outlet_with_nothing_in_it() -> None:
    rack = power("a")
    assert rack.switch("a", 2, on=False) is None
    assert rack.watts("a", 2) == 0
    assert rack.fed("somebody")


def test_more_devices_than_outlets() -> None:
    rack = power("a", outlets=2)
    assert [rack.outlets(device) for device in WATTS] == [[("a", 1)], [("a", 2)], []]
    assert rack.fed("tor")
