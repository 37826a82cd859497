# SPDX-License-Identifier: GPL-3.0-or-later
"""However hands have mixed up cables: following the list once, from top to bottom, puts them right."""

from __future__ import annotations

import contextlib
import re
from typing import Any

from ansible_collections.openipu.pod.plugins.module_utils.report.actions import actions
from hypothesis import example, given
from hypothesis import strategies as st
from report_support import Bench, run_of

from openipu.twin.wiring import Cable, Place, Wiring, WiringError
from openipu.vipu.cluster_test.plan import Test
from openipu.vipu.model import Topology

IPU_PORTS = [f"ag0{machine}:{port}" for machine in (1, 2, 3) for port in (*range(1, 9), "gw1", "gw2")]
SYNC_PORTS = [f"ag0{machine}:sync{port}" for machine in (1, 2, 3) for port in range(8)]
FAMILY = {"IPU-Link": "", "GW-Link": "gw", "Sync-Link": "sync"}
PORT = re.compile(r"(\S+) (IPU-Link|GW-Link|Sync-Link) port (\d+)")


def faults(ports: list[str]) -> st.SearchStrategy[list[tuple[str, ...]]]:
    """Ends that are pulled out, moved to a free port, or exchanged; what cannot be is left out."""
    port = st.sampled_from(ports)
    return st.lists(
        st.one_of(
            st.tuples(st.just("unplug"), port),
            st.tuples(st.just("move"), port, port),
            st.tuples(st.just("swap"), port, port),
        ),
        max_size=7,
    )


def spoil(wiring: Wiring, wanted: list[tuple[str, ...]]) -> int:
    done = 0
    for verb, *ports in wanted:
        with contextlib.suppress(WiringError):
            getattr(wiring, verb)(*map(wiring.place, ports))
            done += 1
    return done


def follow(wiring: Wiring, text: str) -> None:
    """Do what a sentence says, as hands can: an end goes into a port that is free but for loose cables."""
    one, other = (wiring.place(f"{agent}:{FAMILY[kind]}{port}") for agent, kind, port in PORT.findall(text))
    if text.startswith("Take out"):
        wiring.unplug(one), wiring.unplug(other)
    elif text.startswith("Move"):
        clear(wiring, other)
        wiring.move(one, other)
    elif text.startswith("Exchange"):
        wiring.swap(one, other)
    else:
        assert text.startswith("Connect"), text
        clear(wiring, one), clear(wiring, other)
        cable = Cable(one.kind, f"NEW {one}", [None, None], (one, other))
        wiring.cables.append(cable)
        wiring._put(cable, 0, one), wiring._put(cable, 1, other)


def clear(wiring: Wiring, place: Place) -> None:
    cable = wiring.at(place)
    if cable:
        assert cable.other(place) is None, f"{place} is taken by a cable that is plugged in at both ends"
        wiring.unplug(place)


def mend(bench: Bench, test: Test) -> list[str]:
    told = [action.text for action in actions(run_of(bench, (test,)))]
    for text in told:
        follow(bench.wiring, text)
    assert run_of(bench, (test,))["ok"], told
    return told


@given(st.sampled_from(Topology), faults(IPU_PORTS))
@example(Topology.TORUS, [("swap", "ag01:5", "ag01:6"), ("swap", "ag01:6", "ag01:7")])  # a ring of three
@example(Topology.TORUS, [("unplug", "ag02:1"), ("move", "ag02:2", "ag02:1")])  # one cable in the place of another
@example(  # a cable too many
    Topology.TORUS, [("move", "ag02:1", "ag01:gw1"), ("move", "ag02:2", "ag02:1"), ("move", "ag01:6", "ag03:gw2")]
)
def test_ipu_link_cables(topology: Topology, wanted: list[tuple[str, ...]]) -> None:
    bench = Bench(3, 1, topology)
    done = spoil(bench.wiring, wanted)
    assert len(mend(bench, Test.CABLING)) <= done, "no mistake takes more than one step to undo"


@given(faults(SYNC_PORTS))
def test_sync_link_cables(wanted: list[tuple[str, ...]]) -> None:
    """Without serial ids: what is not found elsewhere may be loose or broken, so it is reseated or replaced."""
    bench = Bench(3)
    done = spoil(bench.wiring, wanted)
    told: list[Any] = [action.text for action in actions(run_of(bench, (Test.SYNC_LINK,)))]
    assert len(told) <= done
    for text in told:
        follow(bench.wiring, text.replace("Reseat both ends of the cable between", "Connect"))
    assert run_of(bench, (Test.SYNC_LINK,))["ok"], told


def test_the_port_that_is_really_empty_is_filled() -> None:
    """Of two ports without a whole cable one holds a loose one, which stays of use."""
    bench = Bench(3, 1, Topology.TORUS)
    spoil(bench.wiring, [("unplug", "ag02:1"), ("move", "ag02:2", "ag02:1")])
    assert mend(bench, Test.CABLING) == [
        "Move the cable in ag02 IPU-Link port 1 to ag02 IPU-Link port 2.",
        "Connect ag01 IPU-Link port 5 and ag02 IPU-Link port 1 with a cable.",
    ]


def test_a_controller_that_does_not_tell_where_a_cable_leads() -> None:
    bench = Bench(3, 1, Topology.TORUS)
    bench.wiring.move(bench.wiring.place("ag02:1"), bench.wiring.place("ag02:gw1"))
    run = run_of(bench, (Test.CABLING,))
    for failure in run["results"][0]["failures"]:
        failure["found"] = failure["found_b"] = None
    assert [action.text for action in actions(run)] == [
        "Find out where the cables in ag01 IPU-Link port 5 and ag02 IPU-Link port 1 lead, and connect these two."
    ]


def test_which_ports_are_empty_is_not_guessed_from_the_words() -> None:
    bench = Bench(3, 1, Topology.TORUS)
    spoil(bench.wiring, [("unplug", "ag02:1"), ("move", "ag02:2", "ag02:1")])
    run = run_of(bench, (Test.CABLING,))
    told = actions(run)
    for failure in run["results"][0]["failures"]:
        failure["reason"] = "No hay ningún cable."
    assert actions(run) == told
