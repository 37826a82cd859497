# SPDX-License-Identifier: GPL-3.0-or-later
"""Cables between devices and switches: what hands do to them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openipu.twin.eos.surroundings import Neighbour
from openipu.twin.patching import Patch, Patching
from openipu.twin.wiring import WiringError

PORTS = {"tor1": [f"Ethernet{number}/1" for number in range(1, 6)], "mgmt1": ["Ethernet1", "Ethernet2"]}
PLACES = [f"{switch}:{port}" for switch, ports in PORTS.items() for port in ports]
HOMES = {"m1 rnic": "tor1:Ethernet1/1", "m2 rnic": "tor1:Ethernet2/1", "m1 mgmt": "mgmt1:Ethernet1"}


class Bench:
    def __init__(self) -> None:
        self.dark: set[str] = set()
        patches = [
            Patch(*name.split(), home, Neighbour(macs=((f"02:00:00:00:00:0{number}", None),)))  # type: ignore[call-arg]
            for number, (name, home) in enumerate(HOMES.items())
        ]
        self.patching = Patching(patches, PORTS, lambda device: device not in self.dark)

    def heard(self) -> dict[str, str]:
        found = {place: self.patching.neighbour(place) for place in PLACES}
        return {place: each.macs[0][0][-1] for place, each in found.items() if each}


HEALTHY = {"tor1:Ethernet1/1": "0", "tor1:Ethernet2/1": "1", "mgmt1:Ethernet1": "2"}


def test_what_is_heard_in_the_ports_of_a_healthy_rack() -> None:
    assert Bench().heard() == HEALTHY


def test_a_device_without_power_is_not_heard() -> None:
    bench = Bench()
    bench.dark.add("m1")
    assert bench.heard() == {"tor1:Ethernet2/1": "1"}


def test_cables_that_were_exchanged_and_moved() -> None:
    bench = Bench()
    bench.patching.swap("tor1:Ethernet1/1", "tor1:Ethernet2/1")
    bench.patching.move("mgmt1:Ethernet1", "mgmt1:Ethernet2")
    assert bench.heard() == {"tor1:Ethernet1/1": "1", "tor1:Ethernet2/1": "0", "mgmt1:Ethernet2": "2"}
    assert [str(wrong) for wrong in bench.patching.wrong()] == [
        "cable m1 rnic: in tor1:Ethernet2/1 instead of tor1:Ethernet1/1.",
        "cable m2 rnic: in tor1:Ethernet1/1 instead of tor1:Ethernet2/1.",
        "cable m1 mgmt: in mgmt1:Ethernet2 instead of mgmt1:Ethernet1.",
    ]


def test_a_cable_that_was_pulled_out_goes_back_where_it_belongs() -> None:
    bench = Bench()
    bench.patching.unplug("tor1:Ethernet1/1")
    assert [str(wrong) for wrong in bench.patching.wrong()] == ["cable m1 rnic: not plugged in at tor1:Ethernet1/1."]
    bench.patching.plug("tor1:Ethernet1/1")
    assert bench.heard() == HEALTHY


@pytest.mark.parametrize(
    ("deed", "ports", "sentence"),
    [
        ("unplug", ["tor1:Ethernet5/1"], "There is no cable in tor1:Ethernet5/1."),
        ("plug", ["tor1:Ethernet1/1"], "There is a cable in tor1:Ethernet1/1 already"),
        ("plug", ["tor1:Ethernet5/1"], "No loose cable belongs into tor1:Ethernet5/1."),
        ("move", ["tor1:Ethernet1/1", "tor1:Ethernet2/1"], "There is a cable in tor1:Ethernet2/1 already"),
        ("swap", ["tor1:Ethernet1/1", "tor1:Ethernet1/1"], "is one port, and two are exchanged"),
        ("unplug", ["tor1:Ethernet99"], "Switch 'tor1' has no port 'Ethernet99'"),
        ("unplug", ["tor2:Ethernet1/1"], "Switch 'tor2' has no port"),
    ],
)
def test_what_hands_cannot_do_changes_nothing(deed: str, ports: list[str], sentence: str) -> None:
    bench = Bench()
    with pytest.raises(WiringError, match=sentence):
        getattr(bench.patching, deed)(*ports)
    assert bench.heard() == HEALTHY


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
def test_whatever_was_done_is_repaired(deeds: list[tuple[str, ...]], devices: list[str]) -> None:
    bench = Bench()
    for deed, *ports in deeds:
        with contextlib.suppress(WiringError):
            getattr(bench.patching, deed)(*ports)
    there = bench.heard()
    assert len(set(there.values())) == len(there)
    bench.patching.repair(devices)
    assert bench.heard() == HEALTHY
    assert not list(bench.patching.wrong())
