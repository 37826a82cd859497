# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of the patch cables between devices and switches."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openipu.twin.cables.patch_cables import PatchCable, PatchCables
from openipu.twin.cables.switch_cabling import Neighbour
from openipu.twin.cables.wiring import WiringError

PORTS = {"tor1": [f"Ethernet{number}/1" for number in range(1, 6)], "mgmt1": ["Ethernet1", "Ethernet2"]}
PLACES = [f"{switch}:{port}" for switch, ports in PORTS.items() for port in ports]
HOMES = {"m1 rnic": "tor1:Ethernet1/1", "m2 rnic": "tor1:Ethernet2/1", "m1 mgmt": "mgmt1:Ethernet1"}


class Bench:
    def __init__(self) -> None:
        self.unpowered: set[str] = set()
        cables = [
            PatchCable(*name.split(), home, Neighbour(macs=((f"02:00:00:00:00:0{number}", None),)))  # type: ignore[call-arg]
            for number, (name, home) in enumerate(HOMES.items())
        ]
        self.patch_cables = PatchCables(cables, PORTS, lambda device: device not in self.unpowered)

    def neighbours(self) -> dict[str, str]:
        found = {place: self.patch_cables.neighbour(place) for place in PLACES}
        return {place: each.macs[0][0][-1] for place, each in found.items() if each}


HEALTHY = {"tor1:Ethernet1/1": "0", "tor1:Ethernet2/1": "1", "mgmt1:Ethernet1": "2"}


def test_neighbours_of_a_healthy_rack() -> None:
    assert Bench().neighbours() == HEALTHY


def test_the_link_of_a_device_without_power_is_down() -> None:
    bench = Bench()
    bench.unpowered.add("m1")
    assert bench.neighbours() == HEALTHY
    links = {place: each.up for place in PLACES if (each := bench.patch_cables.neighbour(place))}
    assert links == {"tor1:Ethernet1/1": False, "tor1:Ethernet2/1": True, "mgmt1:Ethernet1": False}


def test_swapped_and_moved_cables() -> None:
    bench = Bench()
    bench.patch_cables.swap("tor1:Ethernet1/1", "tor1:Ethernet2/1")
    bench.patch_cables.move("mgmt1:Ethernet1", "mgmt1:Ethernet2")
    assert bench.neighbours() == {"tor1:Ethernet1/1": "1", "tor1:Ethernet2/1": "0", "mgmt1:Ethernet2": "2"}
    assert [str(defect) for defect in bench.patch_cables.defects()] == [
        "cable m1 rnic: in tor1:Ethernet2/1 instead of tor1:Ethernet1/1.",
        "cable m2 rnic: in tor1:Ethernet1/1 instead of tor1:Ethernet2/1.",
        "cable m1 mgmt: in mgmt1:Ethernet2 instead of mgmt1:Ethernet1.",
    ]


def test_a_loose_cable_is_plugged_back_into_its_port() -> None:
    bench = Bench()
    bench.patch_cables.unplug("tor1:Ethernet1/1")
    assert [str(defect) for defect in bench.patch_cables.defects()] == [
        "cable m1 rnic: not plugged in at tor1:Ethernet1/1."
    ]
    bench.patch_cables.plug("tor1:Ethernet1/1")
    assert bench.neighbours() == HEALTHY


def test_a_moved_cable_is_not_plugged_back() -> None:
    bench = Bench()
    bench.patch_cables.move("mgmt1:Ethernet1", "mgmt1:Ethernet2")
    with pytest.raises(WiringError, match="Cannot plug a cable into 'mgmt1:Ethernet1': the port has no loose cable"):
        bench.patch_cables.plug("mgmt1:Ethernet1")
    assert bench.neighbours() == {"tor1:Ethernet1/1": "0", "tor1:Ethernet2/1": "1", "mgmt1:Ethernet2": "2"}


@pytest.mark.parametrize(
    ("change", "ports", "message"),
    [
        (
            "unplug",
            ["tor1:Ethernet5/1"],
            "Cannot find a cable in 'tor1:Ethernet5/1': the port is empty. Name a port with a cable.",
        ),
        (
            "plug",
            ["tor1:Ethernet1/1"],
            "Cannot use port 'tor1:Ethernet1/1': it is not free. Unplug its cable first, or",
        ),
        ("plug", ["tor1:Ethernet5/1"], "Cannot plug a cable into 'tor1:Ethernet5/1': the port has no loose cable."),
        (
            "move",
            ["tor1:Ethernet1/1", "tor1:Ethernet2/1"],
            "Cannot use port 'tor1:Ethernet2/1': it is not free. Unplug",
        ),
        (
            "swap",
            ["tor1:Ethernet1/1", "tor1:Ethernet1/1"],
            "Cannot swap 'tor1:Ethernet1/1' with itself: the ports are equal",
        ),
        ("unplug", ["tor1:Ethernet99"], "Cannot find port 'Ethernet99': switch 'tor1' does not have it"),
        ("unplug", ["tor2:Ethernet1/1"], "Cannot find port 'Ethernet1/1': switch 'tor2'"),
    ],
)
def test_an_impossible_change_changes_nothing(change: str, ports: list[str], message: str) -> None:
    bench = Bench()
    with pytest.raises(WiringError, match=message):
        getattr(bench.patch_cables, change)(*ports)
    assert bench.neighbours() == HEALTHY


@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["unplug", "plug"]), st.sampled_from(PLACES)),
            st.tuples(st.sampled_from(["move", "swap"]), st.sampled_from(PLACES), st.sampled_from(PLACES)),
        ),
        max_size=12,
    ),
    st.sampled_from([["m1", "m2"], ["tor1", "mgmt1"]]),
)
def test_repair_restores_all_cables(changes: list[tuple[str, ...]], devices: list[str]) -> None:
    bench = Bench()
    for change, *ports in changes:
        with contextlib.suppress(WiringError):
            getattr(bench.patch_cables, change)(*ports)
    found = bench.neighbours()
    assert len(set(found.values())) == len(found)
    bench.patch_cables.repair(devices)
    assert bench.neighbours() == HEALTHY
    assert not list(bench.patch_cables.defects())
