# SPDX-License-Identifier: GPL-3.0-or-later
"""Every figure and printed block of section 6.4 of Graphcore's V-IPU administrator guide, spaces apart.

Left out are the durations, which are those of real racks. Two slips of the guide are not followed: it
speaks of four agents and prints the figures of eight, and it adds 327 and 521 up to 838.
"""

from collections.abc import Sequence

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pod.topology import CableKind
from ansible_collections.openipu.pod.plugins.module_utils.vipu import objects
from readings_support import cables, cluster, names, pulses, trained

from openipu.vipu import services_tests
from openipu.vipu.cli.tests import results
from openipu.vipu.cluster_test import links, verdicts
from openipu.vipu.cluster_test.plan import DEFAULT_TESTS, Test, Verdict, skipped
from openipu.vipu.cluster_test.readings import Link, Silent
from openipu.vipu.cluster_test.runs import Run, RunState
from openipu.vipu.model import Cluster, Topology

IPU, GW, SYNC = CableKind.IPU_LINK, CableKind.GW_LINK, CableKind.SYNC_LINK
EIGHT = cluster(names("ag", 8))
FOUR = cluster(names("a", 4, 2))
VERSIONS = {"Agent": "1.6.0", "Runtime": "1.0", "HDF": "1.4.1", "GWSW": "2.0.5"}


def printed(of: Cluster, *found: Verdict) -> list[str]:
    """The table as the command prints it, by way of the message, without durations and runs of spaces."""
    run = Run("1", of, tuple(verdict.test for verdict in found), (), 0.0, RunState.FINISHED, found)
    lines = results(objects.test_run(services_tests.run(run))).splitlines()
    assert lines[0] == f"Showing test results for cluster {of.id}"
    cells = [[cell.strip() for cell in line.split("|")] for line in lines[1:]]
    assert cells[0] == ["Test Type", "Duration", "Passed", "Summary"]
    assert all(line.startswith("  ") for line in lines[1:])
    return [" | ".join((test, passed, summary)).strip(" |") for test, _, passed, summary in cells[1:]]


def everything(of: Cluster, wires: dict, versions: dict[str, str]) -> list[Verdict]:
    judged = {
        Test.SYNC_LINK: lambda: verdicts.sync(of, pulses(of)),
        Test.CABLING: lambda: verdicts.cabling(of, wires),
        Test.IPU_LINK: lambda: links.ipu_link(of, trained(of)),
        Test.TRAFFIC: lambda: links.traffic(of, [trained(of)] * len(links.window_cables(of))),
        Test.GW_LINK: lambda: links.gw_link(of, trained(of)),
        Test.VERSION: lambda: verdicts.versions(of, dict.fromkeys(of.agents, versions)),
    }
    done: list[Verdict] = []
    for test in DEFAULT_TESTS:
        done.append(skipped(test, DEFAULT_TESTS, done, ()) or judged[test]())
    return done


def test_all_six_pass_with_the_figures_of_eight_machines() -> None:
    six = dict.fromkeys("abcdef", "1")
    assert printed(EIGHT, *everything(EIGHT, cables(EIGHT), six)) == [
        "Sync-Link | 14/14 | Sync Link test passed",
        "Cabling | 28/28 | All cables connected as expected",
        "IPU-Link | 156/156 | All Links Passed",
        "Traffic | 3/3 | Traffic test passed",
        "GW-Link | 0/0 | GW Link test skipped",
        "Version | 6/6 | All component versions are consistent",
    ]


def test_the_columns_and_the_duration() -> None:
    run = Run("1", EIGHT, (Test.CABLING,), (), 0.0, RunState.FINISHED, (verdicts.cabling(EIGHT, cables(EIGHT)),))
    run.verdicts[0].lasting(12.0234)
    text = results(objects.test_run(services_tests.run(run)))
    assert text.splitlines()[1].split() == ["Test", "Type", "|", "Duration", "|", "Passed", "|", "Summary"]
    lasting = Run("1", EIGHT, run.asked, (), 0.0, RunState.FINISHED, (run.verdicts[0].lasting(12.0234),))
    assert "| 12.02s   |" in results(objects.test_run(services_tests.run(lasting)))


def test_failed_sync_links() -> None:
    readings = pulses(EIGHT)
    for port in (2, 3):
        del readings["ag2"][SYNC, port]
    assert printed(EIGHT, verdicts.sync(EIGHT, readings)) == [
        "Sync-Link | 12/14 | Failed Sync Links:",
        "ag1:6 <--> 2:ag2",
        "ag1:7 <--> 3:ag2",
    ]


def test_corrected_errors_in_traffic() -> None:
    four = cluster(names("ag", 4))
    reading = trained(four)
    reading["ag3"]["1"] = Link(True, 327)
    reading["ag1"]["8"] = Link(True, 521)
    reading["ag2"]["5"] = Link(True, 300)  # the other end; 300 is not more than 300
    assert printed(four, links.traffic(four, [reading])) == [
        "Traffic | 0/1 | Traffic test failed",
        "Errors encountered in traffic test 1",
        f"corrected link errors: {327 + 521}",
        "- ag3:1 <--> ag2:5 (327)",
        "- ag2:4 <--> ag1:8 (521)",
    ]


def test_versions_that_agree() -> None:
    assert printed(EIGHT, verdicts.versions(EIGHT, dict.fromkeys(EIGHT.agents, VERSIONS))) == [
        "Version | 4/4 | All component versions are consistent"
    ]


def test_a_version_that_differs() -> None:
    readings = {**dict.fromkeys(EIGHT.agents, VERSIONS), "ag8": {**VERSIONS, "Agent": "1.5.1"}}
    assert printed(EIGHT, verdicts.versions(EIGHT, readings)) == [
        "Version | 3/4 | Components with mismatched versions found:",
        *(f"ag{number}-Agent: 1.6.0" for number in range(1, 8)),
        "ag8-Agent: 1.5.1",
    ]


def test_cables_of_four_machines() -> None:
    assert printed(FOUR, verdicts.cabling(FOUR, cables(FOUR))) == ["Cabling | 12/12 | All cables connected as expected"]


def test_cables_that_are_not_connected() -> None:
    four = cluster(names("ag", 4))
    readings = cables(four)
    for port in (5, 6, 7, 8):
        del readings["ag1"][IPU, port], readings["ag2"][IPU, port - 4]
    assert printed(four, verdicts.cabling(four, readings)) == [
        "Cabling | 8/12 | ag1:5 [IPU-Link] <--> ag2:1 [IPU-Link] (failed)",
        "ag1:6 [IPU-Link] <--> ag2:2 [IPU-Link] (failed)",
        "ag1:7 [IPU-Link] <--> ag2:3 [IPU-Link] (failed)",
        "ag1:8 [IPU-Link] <--> ag2:4 [IPU-Link] (failed)",
    ]


def test_a_gw_link_that_is_not_connected() -> None:
    # The guide names the machines of two domains by domain and place.
    two_by_two = cluster(["ag1.1", "ag1.2", "ag2.1", "ag2.2"], ilds=2)
    readings = cables(two_by_two)
    del readings["ag1.1"][GW, 1], readings["ag2.1"][GW, 2]
    assert printed(two_by_two, verdicts.cabling(two_by_two, readings)) == [
        "Cabling | 11/12 | ag1.1:1 [GW-Link] <--> ag2.1:2 [GW-Link] (failed)"
    ]


def test_a_cable_in_a_wrong_port_and_what_depends_on_it() -> None:
    readings = cables(FOUR)
    readings["a04"][IPU, 7] = readings["a03"].pop((IPU, 3))
    assert printed(FOUR, *everything(FOUR, readings, dict.fromkeys("abcdef", "1"))) == [
        "Sync-Link | 6/6 | Sync Link test passed",
        "Cabling | 11/12 | Cables not connected as expected:",
        "a02 (IPU-Cluster Port 7) <--> a03 (IPU-Cluster Port 3) (connected to wrong port)",
        "IPU-Link | 0/0 | Test skipped",
        "Test did not run because of an earlier dependency test failure (Cabling)",
        "Traffic | 0/0 | Test skipped",
        "Test did not run because of an earlier dependency test failure (Cabling)",
        "GW-Link | 0/0 | Test skipped",
        "Test did not run because of an earlier dependency test failure (Cabling)",
        "Version | 6/6 | All component versions are consistent",
    ]


def pfc(number: int, *, spoiled: bool) -> dict[str, Sequence[int]]:
    wrong = {5: ("eth1", [0, 2]), 6: ("eth1", [0, 2]), 7: ("if-0", []), 8: ("if-1", [9, 10, 11])}
    if spoiled and number in wrong:
        interface, classes = wrong[number]
        return {interface: classes}
    return {"eth1": range(8)}


@pytest.mark.parametrize(
    ("spoiled", "lines"),
    [
        (False, ["PFC-settings | 8/8 | All PFC settings as expected"]),
        (
            True,
            [
                "PFC-settings | 4/8 | PFC settings not as expected:",
                "ag05: {eth1: pfc classes: got [0, 2], expected [0 1 2 3 4 5 6 7]}",
                "ag06: {eth1: pfc classes: got [0, 2], expected [0 1 2 3 4 5 6 7]}",
                "ag07: {if-0: pfc classes: got [], expected [0 1 2 3 4 5 6 7]}",
                "ag08: {if-1: pfc classes: got [9, 10, 11], expected [0 1 2 3 4 5 6 7]}",
            ],
        ),
    ],
)
def test_pfc_settings(spoiled: bool, lines: list[str]) -> None:
    eight = cluster(names("ag", 8, 2))
    readings = {agent: pfc(number, spoiled=spoiled) for number, agent in enumerate(eight.agents, 1)}
    assert printed(eight, verdicts.pfc_settings(eight, readings)) == lines


@pytest.mark.parametrize(
    ("machines", "ilds", "topology", "figures"),
    [
        (16, 1, Topology.TORUS, [30, 64, 320, 8, 0]),
        (16, 4, Topology.TORUS, [120, 320, 1280, 32, 64]),
        (2, 2, Topology.MESH, [4, 12, 72, 2, 4]),
        (1, 1, Topology.MESH, [0, 0, 16, 1, 0]),
    ],
)
def test_figures(machines: int, ilds: int, topology: Topology, figures: list[int]) -> None:
    of = cluster(names("ag", machines * ilds), topology, ilds)
    found = everything(of, cables(of), VERSIONS)
    assert [(verdict.passed, verdict.total) for verdict in found[:5]] == [(figure, figure) for figure in figures]
    assert all(verdict.ok for verdict in found)


def test_agents_that_tell_of_no_component_are_not_consistent() -> None:
    verdict = verdicts.versions(FOUR, {agent: {} for agent in FOUR.agents})
    assert (verdict.ok, verdict.lines) == (False, ("No component is told of",))


def test_links_that_do_not_train_are_our_own_lines() -> None:
    of = cluster(names("ag", 4), ilds=2)
    readings = trained(of)
    readings["ag1"]["5"] = Link(False, 0)  # at one end
    readings["ag4"]["2"] = Link(False, 0)  # at the other
    readings["ag3"]["internal7"] = Link(False, 0)
    readings["ag2"]["gw1"] = Link(False, 0)
    assert printed(of, links.ipu_link(of, readings), links.gw_link(of, readings)) == [
        "IPU-Link | 69/72 | Failed Links:",
        "ag1:5 <--> ag2:1",
        "ag3:6 <--> ag4:2",
        "ag3: internal7",
        "GW-Link | 3/4 | Failed GW Links:",
        "ag2:1 <--> ag4:2",
    ]


def test_an_agent_that_does_not_answer_is_named_and_its_neighbours_are_not_blamed() -> None:
    of = cluster(names("ag", 3))
    sentence = "Agent 'ag3' did not answer: the connection broke."
    silent = Silent("the connection broke")
    assert printed(
        of,
        verdicts.sync(of, {**pulses(of), "ag3": silent}),
        verdicts.cabling(of, {**cables(of), "ag3": silent}),
        links.ipu_link(of, {**trained(of), "ag3": silent}),
        links.traffic(of, [{**trained(of), "ag3": silent}]),
        verdicts.versions(of, {**dict.fromkeys(of.agents, VERSIONS), "ag3": silent}),
        verdicts.pfc_settings(of, {**{agent: {"eth1": range(8)} for agent in of.agents}, "ag3": silent}),
    ) == [
        "Sync-Link | 2/4 | Failed Sync Links:",
        "ag2:6 <--> 2:ag3 (not tested)",
        "ag2:7 <--> 3:ag3 (not tested)",
        sentence,
        "Cabling | 4/8 | ag2:5 [IPU-Link] <--> ag3:1 [IPU-Link] (not tested)",
        "ag2:6 [IPU-Link] <--> ag3:2 [IPU-Link] (not tested)",
        "ag2:7 [IPU-Link] <--> ag3:3 [IPU-Link] (not tested)",
        "ag2:8 [IPU-Link] <--> ag3:4 [IPU-Link] (not tested)",
        sentence,
        "IPU-Link | 36/56 | Failed Links:",
        "ag2:5 <--> ag3:1 (not tested)",
        "ag2:6 <--> ag3:2 (not tested)",
        "ag2:7 <--> ag3:3 (not tested)",
        "ag2:8 <--> ag3:4 (not tested)",
        sentence,
        "Traffic | 0/1 | Traffic test failed",
        "Errors encountered in traffic test 1",
        "corrected link errors: 0",
        "- ag3 (no answer)",
        *(f"- ag3:{port} <--> ag2:{port + 4} (not tested)" for port in (4, 3, 2, 1)),
        sentence,
        "Version | 0/4 | " + sentence,
        "PFC-settings | 2/3 | " + sentence,
    ]
