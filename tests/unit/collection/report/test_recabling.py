# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of recabling: one pass over the actions fixes any cabling errors."""

from __future__ import annotations

import contextlib
import re
from typing import Any

from ansible_collections.openipu.pod.plugins.module_utils.report.actions import actions
from hypothesis import example, given
from hypothesis import strategies as st

from openipu.twin.cables.wiring import Cable, Place, Wiring, WiringError
from openipu.vipu.cluster_test.model import Test
from openipu.vipu.domain.model import Topology
from tests.unit.collection.report.report_support import Bench, run_of

IPU_PORTS = [f"ag0{machine}:{port}" for machine in (1, 2, 3) for port in (*range(1, 9), "gw1", "gw2")]
SYNC_PORTS = [f"ag0{machine}:sync{port}" for machine in (1, 2, 3) for port in range(8)]
PORT = re.compile(r"\bag\d+:(?:gw|sync)?\d+\b")


def faults(ports: list[str]) -> st.SearchStrategy[list[tuple[str, ...]]]:
    """Return a strategy of ends that are unplugged, moved to a free port, or exchanged."""
    port = st.sampled_from(ports)
    return st.lists(
        st.one_of(
            st.tuples(st.just("unplug"), port),
            st.tuples(st.just("move"), port, port),
            st.tuples(st.just("swap"), port, port),
        ),
        max_size=7,
    )


def inject_errors(wiring: Wiring, errors: list[tuple[str, ...]]) -> int:
    done = 0
    for verb, *ports in errors:
        with contextlib.suppress(WiringError):
            getattr(wiring, verb)(*map(wiring.place, ports))
            done += 1
    return done


def follow(wiring: Wiring, text: str) -> None:
    """Carry out an action. The target port of an end must be free, except for loose cables."""
    one, other = map(wiring.place, PORT.findall(text))
    if text.startswith("Remove"):
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
        wiring._plug_in(cable, 0, one), wiring._plug_in(cable, 1, other)


def clear(wiring: Wiring, place: Place) -> None:
    cable = wiring.at(place)
    if cable:
        assert cable.other_end(place) is None, f"{place} holds a cable that is plugged in at both ends"
        wiring.unplug(place)


def repair(bench: Bench, test: Test) -> list[str]:
    texts = [action.text for action in actions(run_of(bench, (test,)))]
    for text in texts:
        follow(bench.wiring, text)
    assert run_of(bench, (test,))["ok"], texts
    return texts


@given(st.sampled_from(Topology), faults(IPU_PORTS))
@example(Topology.TORUS, [("swap", "ag01:5", "ag01:6"), ("swap", "ag01:6", "ag01:7")])  # a ring of three
@example(Topology.TORUS, [("unplug", "ag02:1"), ("move", "ag02:2", "ag02:1")])  # one cable in the port of another
@example(  # a cable too many
    Topology.TORUS, [("move", "ag02:1", "ag01:gw1"), ("move", "ag02:2", "ag02:1"), ("move", "ag01:6", "ag03:gw2")]
)
def test_ipu_link_cables(topology: Topology, errors: list[tuple[str, ...]]) -> None:
    bench = Bench(3, 1, topology)
    done = inject_errors(bench.wiring, errors)
    assert len(repair(bench, Test.CABLING)) <= done, "each error needs at most one step"


@given(faults(SYNC_PORTS))
def test_sync_link_cables(errors: list[tuple[str, ...]]) -> None:
    """Sync-Links have no serial numbers, so a missing cable may be loose or broken."""
    bench = Bench(3)
    done = inject_errors(bench.wiring, errors)
    texts: list[Any] = [action.text for action in actions(run_of(bench, (Test.SYNC_LINK,)))]
    assert len(texts) <= done
    for text in texts:
        follow(bench.wiring, text.replace("Reseat both ends of the cable", "Connect"))
    assert run_of(bench, (Test.SYNC_LINK,))["ok"], texts


def test_empty_port_is_filled_first() -> None:
    """Fill the empty one of two ports; the other holds a loose cable that is reused."""
    bench = Bench(3, 1, Topology.TORUS)
    inject_errors(bench.wiring, [("unplug", "ag02:1"), ("move", "ag02:2", "ag02:1")])
    assert repair(bench, Test.CABLING) == [
        "Move the cable in ag02:1 to ag02:2.",
        "Connect ag01:5 and ag02:1 with a cable.",
    ]


def test_controller_without_actual_ports() -> None:
    bench = Bench(3, 1, Topology.TORUS)
    bench.wiring.move(bench.wiring.place("ag02:1"), bench.wiring.place("ag02:gw1"))
    run = run_of(bench, (Test.CABLING,))
    for failure in run["results"][0]["failures"]:
        failure["found"] = failure["found_b"] = None
    assert [action.text for action in actions(run)] == [
        "Find out where the cables in ag01:5 and ag02:1 lead, and connect these two ports."
    ]


def test_empty_ports_do_not_depend_on_the_reason() -> None:
    bench = Bench(3, 1, Topology.TORUS)
    inject_errors(bench.wiring, [("unplug", "ag02:1"), ("move", "ag02:2", "ag02:1")])
    run = run_of(bench, (Test.CABLING,))
    expected = actions(run)
    for failure in run["results"][0]["failures"]:
        failure["reason"] = "No hay ningún cable."
    assert actions(run) == expected
