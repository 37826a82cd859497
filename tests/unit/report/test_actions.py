# SPDX-License-Identifier: GPL-3.0-or-later
"""What a technician is told to do after tests of a rack that was spoiled in a known way."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.report.actions import actions
from ansible_collections.openipu.pod.plugins.module_utils.vipu import objects
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).parents[1] / "cluster_test"))
from rack_support import Bench

from openipu.twin.faults import Faults
from openipu.vipu import services_tests
from openipu.vipu.cluster_test.plan import Test
from openipu.vipu.cluster_test.runs import Run, RunState
from openipu.vipu.model import Topology

PORT = re.compile(r"(\S+) IPU-Link port (\d+)")


def judged(bench: Bench, tests: tuple[Test, ...] = tuple(Test)) -> dict[str, Any]:
    """The run of all tests, each for itself, so that nothing is skipped."""
    verdicts = tuple(bench.run([test])[test] for test in tests)
    run = Run("1", bench.cluster, tests, (), 0.0, RunState.FINISHED, verdicts)
    return dict(objects.test_run(services_tests.run(run)))


def spoiled(*faults: str, ilds: int = 1) -> list[str]:
    bench = Bench(4, ilds, Topology.TORUS)
    made = Faults(bench.rack.machines, bench.wiring)
    for line in faults:
        verb, *words = line.split()
        assert made._verbs[verb](*words) is None
    return [action.text for action in actions(judged(bench))]


@pytest.mark.parametrize(
    ("faults", "todo"),
    [
        ((), []),
        (("unplug ag03:7",), ["Connect ag03 IPU-Link port 7 and ag04 IPU-Link port 3 with a cable."]),
        (("move ag03:7 ag02:gw1",), ["Move the cable in ag02 GW-Link port 1 to ag03 IPU-Link port 7."]),
        (("move ag04:3 ag02:gw1",), ["Move the cable in ag02 GW-Link port 1 to ag04 IPU-Link port 3."]),
        (("swap ag03:7 ag03:8",), ["Exchange the cables in ag03 IPU-Link port 7 and ag03 IPU-Link port 8."]),
        (("swap ag01:5 ag03:8",), ["Exchange the cables in ag01 IPU-Link port 5 and ag03 IPU-Link port 8."]),
        (
            ("swap ag02:sync6 ag02:sync7",),
            ["Exchange the cables in ag02 Sync-Link port 6 and ag02 Sync-Link port 7."],
        ),
        (
            ("break ag02:sync6",),
            [
                "Reseat both ends of the cable between ag02 Sync-Link port 6 and ag03 Sync-Link port 2; "
                "replace it if that does not help."
            ],
        ),
        (
            ("break ag02:5",),
            [
                "Reseat both ends of the cable between ag02 IPU-Link port 5 and ag03 IPU-Link port 1; "
                "replace it if that does not help."
            ],
        ),
        (
            ("errors ag02:5 327",),
            [
                "Clean or replace the cable between ag02 IPU-Link port 5 and ag03 IPU-Link port 1: "
                "its link corrected 327 errors in one traffic test."
            ],
        ),
        (
            ("break ag02:internal4",),
            ["Have ag02 serviced: its link internal4 inside of the machine fails."],
        ),
        (
            ("version ag03 Virm 1.5.1",),
            ["Bring Virm of ag03 from 1.5.1 to 1.18.0, as the others have it."],
        ),
        (
            ("pfc ag03 eth1 0,2",),
            ["Set priority flow control on ag03: ag03 has eth1: pfc classes: got [0, 2], expected [0 1 2 3 4 5 6 7]."],
        ),
    ],
)
def test_one_mistake_is_one_action(faults: tuple[str, ...], todo: list[str]) -> None:
    told = spoiled(*faults)
    if faults and faults[0].startswith("swap"):  # either end of the pair may be exchanged: all come to the same
        assert len(told) == 1
        assert told[0].startswith("Exchange the cables in ")
    else:
        assert told == todo


def test_a_gw_link_that_is_broken_is_one_action_though_three_tests_see_it() -> None:
    assert spoiled("break ag01:gw1", ilds=2) == [
        "Reseat both ends of the cable between ag01 GW-Link port 1 and ag05 GW-Link port 2; "
        "replace it if that does not help."
    ]


def test_a_machine_that_tells_of_too_few_links_is_serviced() -> None:
    bench = Bench(4, 1, Topology.TORUS)

    async def forgetful(stub: Any, request: Any, timeout: float) -> Any:
        reply = await stub.service.TrainLinks(request, None)
        inside = [link for link in reply.links if link.link.startswith("internal")]
        for link in inside[:2]:
            reply.links.remove(link)
        return reply

    bench.answer("ag03", "TrainLinks", forgetful)
    assert [action.text for action in actions(judged(bench, (Test.IPU_LINK,)))] == [
        "Have ag03 serviced: ag03 tells of 14 IPU-Links inside of it, not of 16."
    ]


def test_what_to_do_with_half_of_the_machines_on_each_version() -> None:
    assert spoiled("version ag01 Virm 1", "version ag02 Virm 1") == ["Bring Virm to one version on all machines."]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)), max_size=5))
def test_doing_what_is_said_makes_the_cabling_right(swaps: list[tuple[int, int]]) -> None:
    """Whatever cables were exchanged: follow the list, test again, and after a few rounds all is well."""
    bench = Bench(4, 1, Topology.TORUS)
    wiring = bench.wiring
    ports = [wiring.place(f"ag0{machine}:{port}") for machine in (1, 2, 3, 4) for port in (5, 6, 7, 8)]
    for one, other in swaps:
        if one != other:
            wiring.swap(ports[one], ports[other])
    for _ in range(20):
        run = judged(bench, (Test.CABLING,))
        if run["ok"]:
            return
        text = actions(run)[0].text
        one, other = (wiring.place(f"{agent}:{port}") for agent, port in PORT.findall(text))
        # A port that a cable is moved to may be taken by one that has to be moved as well: two hands do both.
        wiring.swap(one, other)
    pytest.fail(f"the list goes round in circles: {[action.text for action in actions(run)]}")
