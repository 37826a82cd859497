# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the actions for a technician after known faults."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.report.actions import actions
from ansible_collections.openipu.pod.plugins.module_utils.vipu import objects
from hypothesis import given, settings
from hypothesis import strategies as st

from openipu.twin.rack.faults import RackFaults
from openipu.vipu.api import cluster_test_messages
from openipu.vipu.cluster_test.model import Test
from openipu.vipu.cluster_test.results import Run, RunState
from openipu.vipu.domain.model import Topology
from tests.unit.vipu.cluster_test.rack_support import Bench

PORT = re.compile(r"\bag\d+:\d+\b")


def separate_runs(bench: Bench, tests: tuple[Test, ...] = tuple(Test)) -> dict[str, Any]:
    """Return the run of all tests, each run separately so that none is skipped."""
    verdicts = tuple(bench.run([test])[test] for test in tests)
    run = Run("1", bench.cluster, tests, (), 0.0, RunState.FINISHED, verdicts)
    return dict(objects.test_run(cluster_test_messages.run(run)))


def actions_after_faults(*faults: str, ilds: int = 1) -> list[str]:
    bench = Bench(4, ilds, Topology.TORUS)
    made = RackFaults(bench.rack.machines, bench.wiring)
    for line in faults:
        verb, *words = line.split()
        assert made._verbs[verb](*words) is None
    return [action.text for action in actions(separate_runs(bench))]


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        ((), []),
        (("unplug ag03:7",), ["Connect ag03:7 and ag04:3 with a cable."]),
        (("move ag03:7 ag02:gw1",), ["Move the cable in ag02:gw1 to ag03:7."]),
        (("move ag04:3 ag02:gw1",), ["Move the cable in ag02:gw1 to ag04:3."]),
        (("swap ag03:7 ag03:8",), ["Exchange the cables in ag03:7 and ag03:8."]),
        (("swap ag01:5 ag03:8",), ["Exchange the cables in ag01:5 and ag03:8."]),
        (
            ("swap ag02:sync6 ag02:sync7",),
            ["Exchange the cables in ag02:sync6 and ag02:sync7."],
        ),
        (
            ("break ag02:sync6",),
            ["Reseat both ends of the cable ag02:sync6 <--> ag03:sync2; replace it if that does not help."],
        ),
        (
            ("break ag02:5",),
            ["Reseat both ends of the cable ag02:5 <--> ag03:1; replace it if that does not help."],
        ),
        (
            ("errors ag02:5 327",),
            ["Clean or replace the cable ag02:5 <--> ag03:1: its link corrected 327 errors in one traffic test."],
        ),
        (
            ("break ag02:internal4",),
            ["Request service for ag02: its internal link ag02:internal4 fails."],
        ),
        (
            ("version ag03 Virm 1.5.1",),
            ["Change Virm of ag03 from version 1.5.1 to 1.18.0, as on the other machines."],
        ),
        (
            ("pfc ag03 eth1 0,2",),
            ["Set priority flow control on ag03: ag03 has eth1: pfc classes: got [0, 2], expected [0 1 2 3 4 5 6 7]."],
        ),
    ],
)
def test_one_fault_is_one_action(faults: tuple[str, ...], expected: list[str]) -> None:
    found = actions_after_faults(*faults)
    if faults and faults[0].startswith("swap"):  # either end of the two cables may be exchanged
        assert len(found) == 1
        assert found[0].startswith("Exchange the cables in ")
    else:
        assert found == expected


def test_broken_gw_link_is_one_action() -> None:
    assert actions_after_faults("break ag01:gw1", ilds=2) == [
        "Reseat both ends of the cable ag01:gw1 <--> ag05:gw2; replace it if that does not help."
    ]


def test_machine_with_missing_links_needs_service() -> None:
    bench = Bench(4, 1, Topology.TORUS)

    async def incomplete(stub: Any, request: Any, timeout: float) -> Any:
        reply = await stub.service.TrainLinks(request, None)
        inside = [link for link in reply.links if link.link.startswith("internal")]
        for link in inside[:2]:
            reply.links.remove(link)
        return reply

    bench.set_reply("ag03", "TrainLinks", incomplete)
    assert [action.text for action in actions(separate_runs(bench, (Test.IPU_LINK,)))] == [
        "Request service for ag03: ag03 reports 14 internal IPU-Links instead of 16."
    ]


def test_tie_of_versions() -> None:
    assert actions_after_faults("version ag01 Virm 1", "version ag02 Virm 1") == [
        "Install the same version of Virm on all machines."
    ]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)), max_size=5))
def test_actions_fix_the_cabling(swaps: list[tuple[int, int]]) -> None:
    """Repeat the first action and the test until the cabling is correct."""
    bench = Bench(4, 1, Topology.TORUS)
    wiring = bench.wiring
    ports = [wiring.place(f"ag0{machine}:{port}") for machine in (1, 2, 3, 4) for port in (5, 6, 7, 8)]
    for one, other in swaps:
        if one != other:
            wiring.swap(ports[one], ports[other])
    for _ in range(20):
        run = separate_runs(bench, (Test.CABLING,))
        if run["ok"]:
            return
        text = actions(run)[0].text
        one, other = map(wiring.place, PORT.findall(text))
        # The target port of a move may hold another misplaced cable, so exchange both.
        wiring.swap(one, other)
    pytest.fail(f"the actions do not converge: {[action.text for action in actions(run)]}")
