# SPDX-License-Identifier: GPL-3.0-or-later
"""Power distribution of a rack twin: outlets, their loads, and devices without power."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from openipu.twin.cables.power import Feed, PowerDistribution

WATTS = {"m1": 900.0, "m2": 500.0, "tor": 120.0}


def power(*pdus: str, outlets: Sequence[int] = (1, 15, 29, 8)) -> PowerDistribution:
    feeds = [Feed(device, pdus) for device in WATTS]
    return PowerDistribution(feeds, dict.fromkeys(pdus, outlets), WATTS.__getitem__)


def total(power: PowerDistribution, *pdus: str) -> float:
    return sum(power.watts(pdu, outlet) for pdu in pdus for outlet in range(1, 43))


def test_two_supplies_share_the_load_of_a_device() -> None:
    rack = power("a", "b")
    assert total(rack, "a") == total(rack, "b") == sum(WATTS.values()) / 2


def test_devices_use_the_outlets_in_their_order() -> None:
    rack = power("a", "b")
    assert [rack.outlets(device) for device in WATTS] == [
        [("a", 1), ("b", 1)],
        [("a", 15), ("b", 15)],
        [("a", 29), ("b", 29)],
    ]


def test_a_device_keeps_power_from_its_other_supply() -> None:
    rack = power("a", "b")
    assert rack.switch("a", 1, on=False) is None
    assert rack.has_power("m1")
    assert rack.watts("a", 1) == 0
    assert rack.watts("b", 1) == WATTS["m1"]


def test_a_device_without_a_supply_has_no_power_until_one_returns() -> None:
    rack = power("a", "b")
    rack.switch("a", 1, on=False)
    assert rack.switch("b", 1, on=False) == "m1"
    assert not rack.has_power("m1")
    assert total(rack, "a", "b") == pytest.approx(WATTS["m2"] + WATTS["tor"])
    assert rack.switch("a", 1, on=True) == "m1"
    assert rack.has_power("m1")


def test_an_outlet_with_nothing_in_it() -> None:
    rack = power("a")
    assert rack.switch("a", 2, on=False) is None
    assert rack.watts("a", 2) == 0
    assert rack.has_power("unknown")


def test_more_devices_than_outlets() -> None:
    rack = power("a", outlets=(1, 2))
    assert [rack.outlets(device) for device in WATTS] == [[("a", 1)], [("a", 2)], []]
    assert rack.has_power("tor")
