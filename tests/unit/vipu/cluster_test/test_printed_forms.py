# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures and cells of section 6.4 of Graphcore's V-IPU administrator guide, without spaces and durations.

Two mistakes of the guide are corrected. It mentions four agents and prints the figures of eight, and it gives 838 as
the sum of 327 and 521. ``tests/integration/cli/test_printed_cluster_tests.py`` compares complete outputs.
"""

from collections.abc import Sequence

import pytest

from openipu.shared.pod.topology import CableKind
from openipu.shared.vipu import objects
from openipu.vipu.api import cluster_test_messages
from openipu.vipu.cli.cluster_test_output import Layout, results
from openipu.vipu.cluster_test import cable_verdicts, link_verdicts, machine_verdicts
from openipu.vipu.cluster_test.model import Test, Verdict
from openipu.vipu.cluster_test.readings import Unreachable
from openipu.vipu.cluster_test.results import Run, RunState
from openipu.vipu.cluster_test.selection import DEFAULT_TESTS, skip_verdict
from openipu.vipu.domain.model import Cluster, Topology
from openipu.vipu.fleet.agent_messages import Link
from tests.unit.vipu.cluster_test.readings_support import cables, cluster, link_states, names, pulses

IPU, GW, SYNC = CableKind.IPU_LINK, CableKind.GW_LINK, CableKind.SYNC_LINK
EIGHT = cluster(names("ag", 8))
FOUR = cluster(names("a", 4, 2))
VERSIONS = {"Agent": "1.6.0", "Runtime": "1.0", "HDF": "1.4.1", "GWSW": "2.0.5"}


def printed(of: Cluster, *found: Verdict) -> list[str]:
    """Return the table that the command prints for a message, without durations and runs of spaces."""
    run = Run("1", of, tuple(verdict.test for verdict in found), (), 0.0, RunState.FINISHED, found)
    lines = results(objects.test_run(cluster_test_messages.run(run)), Layout()).splitlines()
    assert lines[0] == f"Showing test results for cluster {of.id}"
    cells = [[cell.strip() for cell in line.split("|")] for line in lines[1:]]
    assert cells[0] == ["Test Type", "Duration", "Passed", "Summary"]
    assert all(line.startswith("  ") for line in lines[1:])
    return [" | ".join((test, passed, summary)).strip(" |") for test, _, passed, summary in cells[1:]]


def default_verdicts(of: Cluster, wires: dict, versions: dict[str, str]) -> list[Verdict]:
    tests = {
        Test.SYNC_LINK: lambda: cable_verdicts.sync(of, pulses(of)),
        Test.CABLING: lambda: cable_verdicts.cabling(of, wires),
        Test.IPU_LINK: lambda: link_verdicts.ipu_link(of, link_states(of)),
        Test.TRAFFIC: lambda: link_verdicts.traffic(of, [link_states(of)] * len(link_verdicts.window_cables(of))),
        Test.GW_LINK: lambda: link_verdicts.gw_link(of, link_states(of)),
        Test.VERSION: lambda: machine_verdicts.versions(of, dict.fromkeys(of.agents, versions)),
    }
    done: list[Verdict] = []
    for test in DEFAULT_TESTS:
        done.append(skip_verdict(test, DEFAULT_TESTS, done, ()) or tests[test]())
    return done


def test_all_six_pass_with_the_figures_of_eight_machines() -> None:
    six = dict.fromkeys("abcdef", "1")
    assert printed(EIGHT, *default_verdicts(EIGHT, cables(EIGHT), six)) == [
        "Sync-Link | 14/14 | Sync Link test passed",
        "Cabling | 28/28 | All cables connected as expected",
        "IPU-Link | 156/156 | All Links Passed",
        "Traffic | 3/3 | Traffic test passed",
        "GW-Link | 0/0 | GW Link test skipped",
        "Version | 6/6 | All component versions are consistent",
    ]


def test_the_columns_and_the_duration() -> None:
    run = Run("1", EIGHT, (Test.CABLING,), (), 0.0, RunState.FINISHED, (cable_verdicts.cabling(EIGHT, cables(EIGHT)),))
    run.verdicts[0].with_duration(12.0234)
    text = results(objects.test_run(cluster_test_messages.run(run)), Layout())
    assert text.splitlines()[1].split() == ["Test", "Type", "|", "Duration", "|", "Passed", "|", "Summary"]
    lasting = Run("1", EIGHT, run.requested, (), 0.0, RunState.FINISHED, (run.verdicts[0].with_duration(12.0234),))
    assert "| 12.02s   |" in results(objects.test_run(cluster_test_messages.run(lasting)), Layout())


def test_failed_sync_links() -> None:
    readings = pulses(EIGHT)
    for port in (2, 3):
        del readings["ag2"][SYNC, port]
    assert printed(EIGHT, cable_verdicts.sync(EIGHT, readings)) == [
        "Sync-Link | 12/14 | Failed Sync Links:",
        "ag1:6 <--> 2:ag2",
        "ag1:7 <--> 3:ag2",
    ]


def test_corrected_errors_in_traffic() -> None:
    four = cluster(names("ag", 4))
    reading = link_states(four)
    reading["ag3"]["1"] = Link(True, 327)
    reading["ag1"]["8"] = Link(True, 521)
    reading["ag2"]["5"] = Link(True, 300)  # the other end; 300 is not more than 300
    assert printed(four, link_verdicts.traffic(four, [reading])) == [
        "Traffic | 0/1 | Traffic test failed",
        "Errors encountered in traffic test 1",
        f"corrected link errors: {327 + 521}",
        "- ag3:1 <--> ag2:5 (327)",
        "- ag2:4 <--> ag1:8 (521)",
    ]


def test_versions_that_agree() -> None:
    assert printed(EIGHT, machine_verdicts.versions(EIGHT, dict.fromkeys(EIGHT.agents, VERSIONS))) == [
        "Version | 4/4 | All component versions are consistent"
    ]


def test_a_version_that_differs() -> None:
    readings = {**dict.fromkeys(EIGHT.agents, VERSIONS), "ag8": {**VERSIONS, "Agent": "1.5.1"}}
    assert printed(EIGHT, machine_verdicts.versions(EIGHT, readings)) == [
        "Version | 3/4 | Components with mismatched versions found:",
        *(f"ag{number}-Agent: 1.6.0" for number in range(1, 8)),
        "ag8-Agent: 1.5.1",
    ]


def test_cables_of_four_machines() -> None:
    assert printed(FOUR, cable_verdicts.cabling(FOUR, cables(FOUR))) == [
        "Cabling | 12/12 | All cables connected as expected"
    ]


def test_disconnected_cables() -> None:
    four = cluster(names("ag", 4))
    readings = cables(four)
    for port in (5, 6, 7, 8):
        del readings["ag1"][IPU, port], readings["ag2"][IPU, port - 4]
    assert printed(four, cable_verdicts.cabling(four, readings)) == [
        "Cabling | 8/12 | ag1:5 [IPU-Link] <--> ag2:1 [IPU-Link] (failed)",
        "ag1:6 [IPU-Link] <--> ag2:2 [IPU-Link] (failed)",
        "ag1:7 [IPU-Link] <--> ag2:3 [IPU-Link] (failed)",
        "ag1:8 [IPU-Link] <--> ag2:4 [IPU-Link] (failed)",
    ]


def test_a_disconnected_gw_link() -> None:
    # The guide names the machines of two domains by domain and place.
    two_by_two = cluster(["ag1.1", "ag1.2", "ag2.1", "ag2.2"], ilds=2)
    readings = cables(two_by_two)
    del readings["ag1.1"][GW, 1], readings["ag2.1"][GW, 2]
    assert printed(two_by_two, cable_verdicts.cabling(two_by_two, readings)) == [
        "Cabling | 11/12 | ag1.1:1 [GW-Link] <--> ag2.1:2 [GW-Link] (failed)"
    ]


def test_a_cable_in_a_wrong_port_and_what_depends_on_it() -> None:
    readings = cables(FOUR)
    readings["a04"][IPU, 7] = readings["a03"].pop((IPU, 3))
    assert printed(FOUR, *default_verdicts(FOUR, readings, dict.fromkeys("abcdef", "1"))) == [
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


def pfc(number: int, *, invalid: bool) -> dict[str, Sequence[int]]:
    wrong = {5: ("eth1", [0, 2]), 6: ("eth1", [0, 2]), 7: ("if-0", []), 8: ("if-1", [9, 10, 11])}
    if invalid and number in wrong:
        interface, classes = wrong[number]
        return {interface: classes}
    return {"eth1": range(8)}


@pytest.mark.parametrize(
    ("invalid", "lines"),
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
def test_pfc_settings(invalid: bool, lines: list[str]) -> None:
    eight = cluster(names("ag", 8, 2))
    readings = {agent: pfc(number, invalid=invalid) for number, agent in enumerate(eight.agents, 1)}
    assert printed(eight, machine_verdicts.pfc_settings(eight, readings)) == lines


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
    found = default_verdicts(of, cables(of), VERSIONS)
    assert [(verdict.passed, verdict.total) for verdict in found[:5]] == [(figure, figure) for figure in figures]
    assert all(verdict.ok for verdict in found)


def test_agents_without_components_are_not_consistent() -> None:
    verdict = machine_verdicts.versions(FOUR, {agent: {} for agent in FOUR.agents})
    assert (verdict.ok, verdict.lines) == (False, ("No components reported",))


def test_lines_of_links_that_do_not_train() -> None:
    of = cluster(names("ag", 4), ilds=2)
    readings = link_states(of)
    readings["ag1"]["5"] = Link(False, 0)  # at one end
    readings["ag4"]["2"] = Link(False, 0)  # at the other
    readings["ag3"]["internal7"] = Link(False, 0)
    readings["ag2"]["gw1"] = Link(False, 0)
    assert printed(of, link_verdicts.ipu_link(of, readings), link_verdicts.gw_link(of, readings)) == [
        "IPU-Link | 69/72 | Failed Links:",
        "ag1:5 <--> ag2:1",
        "ag3:6 <--> ag4:2",
        "ag3:internal7",
        "GW-Link | 3/4 | Failed GW Links:",
        "ag2:gw1 <--> ag4:gw2",
    ]


def test_an_agent_that_does_not_respond_is_named_and_its_neighbours_are_not_blamed() -> None:
    of = cluster(names("ag", 3))
    message = "Agent 'ag3' did not respond: the connection broke."
    silent = Unreachable("the connection broke")
    assert printed(
        of,
        cable_verdicts.sync(of, {**pulses(of), "ag3": silent}),
        cable_verdicts.cabling(of, {**cables(of), "ag3": silent}),
        link_verdicts.ipu_link(of, {**link_states(of), "ag3": silent}),
        link_verdicts.traffic(of, [{**link_states(of), "ag3": silent}]),
        machine_verdicts.versions(of, {**dict.fromkeys(of.agents, VERSIONS), "ag3": silent}),
        machine_verdicts.pfc_settings(of, {**{agent: {"eth1": range(8)} for agent in of.agents}, "ag3": silent}),
    ) == [
        "Sync-Link | 2/4 | Failed Sync Links:",
        "ag2:6 <--> 2:ag3 (not tested)",
        "ag2:7 <--> 3:ag3 (not tested)",
        message,
        "Cabling | 4/8 | ag2:5 [IPU-Link] <--> ag3:1 [IPU-Link] (not tested)",
        "ag2:6 [IPU-Link] <--> ag3:2 [IPU-Link] (not tested)",
        "ag2:7 [IPU-Link] <--> ag3:3 [IPU-Link] (not tested)",
        "ag2:8 [IPU-Link] <--> ag3:4 [IPU-Link] (not tested)",
        message,
        "IPU-Link | 36/56 | Failed Links:",
        "ag2:5 <--> ag3:1 (not tested)",
        "ag2:6 <--> ag3:2 (not tested)",
        "ag2:7 <--> ag3:3 (not tested)",
        "ag2:8 <--> ag3:4 (not tested)",
        message,
        "Traffic | 0/1 | Traffic test failed",
        "Errors encountered in traffic test 1",
        "corrected link errors: 0",
        "- ag3 (no response)",
        *(f"- ag3:{port} <--> ag2:{port + 4} (not tested)" for port in (4, 3, 2, 1)),
        message,
        "Version | 0/4 | " + message,
        "PFC-settings | 2/3 | " + message,
    ]
