# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the parser of cluster test results, with the formats of Graphcore's guide and of openipu."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.vipu.cluster_test.failures import failure_message
from ansible_collections.openipu.pod.plugins.module_utils.vipu.transport import cli_tests

from openipu.vipu.cluster_test.runs import abort_message

# Output of Graphcore's command, with the blanks of the guide.
PASSING = """\
Showing test results for cluster cl0
  Test Type     | Duration | Passed | Summary
  Sync-Link    | 153.96s  | 14/14   | Sync Link test passed
  Cabling      | 12.02s   | 28/28   | All cables connected as expected
  IPU-Link     | 7.39s    | 156/156 | All Links Passed
  Traffic      | 156.71s  | 3/3     | Traffic test passed
  GW-Link      | 0.00s    | 0/0     | GW Link test skipped
  Version      | 0.01s    | 6/6     | All component versions are consistent
"""
SYNC = """\
Showing test results for cluster cl0
  Test Type   | Duration | Passed | Summary
  Sync-Link   | 0.90s    | 12/14  | Failed Sync Links:
              |          |        | ag1:6 <--> 2:ag2
              |          |        | ag1:7 <--> 3:ag2
test (cluster): failed: Some tests failed.
"""
TRAFFIC = """\
Showing test results for cluster cl0
  Test        | Duration | Passed | Summary
  Traffic     | 210.17s  | 0/1    | Traffic test failed
              |          |        | Errors encountered in traffic test 1
              |          |        | corrected link errors: 838
              |          |        | - ag3:1 <--> ag2:5 (327)
              |          |        | - ag2:4 <--> ag1:8 (521)
test cluster (cl0): failed: Some tests failed.
"""
VERSIONS = """\
Showing test results for cluster cl0
  Test Type   | Duration | Passed | Summary
  Version     | 0.01s    | 3/4    | Components with mismatched versions found:
              |          |        | ag1-Agent: 1.6.0
              |          |        | ag8-Agent: 1.5.1
test (cluster): failed: Some tests failed.
"""
SKIPPED = """\
Showing test results for cluster cl0
Test Type   | Duration | Passed | Summary
 Cabling     | 3.15s    | 11/12  | Cables not connected as expected:
             |          |        | a02 (IPU-Cluster Port 7) <--> a03 (IPU-Cluster Port 3) (connected to wrong port)
 IPU-Link    | 0.00s    | 0/0    | Test skipped
             |          |        | Test did not run because of an earlier dependency test failure (Cabling)
"""
GW = """\
Showing test results for cluster cl0
 Test Type   | Duration | Passed | Summary
 Cabling     | 19.87s   | 11/12  | ag1.1:1 [GW-Link] <--> ag2.1:2 [GW-Link] (failed)
"""
PFC = """\
Showing test results for cluster cl0
 Test Type    | Duration | Passed | Summary
 PFC-settings | 0.72s    | 4/8    | PFC settings not as expected:
              |          |        | ag05: {eth1: pfc classes: got [0, 2], expected [0 1 2 3 4 5 6 7]}
"""


def port(agent: str, kind: str, number: int) -> dict[str, object]:
    return {"agent": agent, "kind": kind, "port": number}


def test_passed_run() -> None:
    run = cli_tests.status(PASSING, None)
    assert (run["state"], run["cluster"], run["ok"]) == ("finished", "cl0", True)
    assert [(result["test"], result["passed"], result["total"], result["skipped"]) for result in run["results"]] == [
        ("Sync-Link", 14, 14, False),
        ("Cabling", 28, 28, False),
        ("IPU-Link", 156, 156, False),
        ("Traffic", 3, 3, False),
        ("GW-Link", 0, 0, True),
        ("Version", 6, 6, False),
    ]
    assert run["results"][0]["duration"] == 153.96


@pytest.mark.parametrize(
    ("text", "kind", "ends", "message"),
    [
        (
            SYNC,
            "no_sync",
            [("ag1", 6, "ag2", 2), ("ag1", 7, "ag2", 3)],
            "Sync-Link 12/14 (ag1:sync6 <--> ag2:sync2: no sync, ag1:sync7 <--> ag2:sync3: no sync).",
        ),
        (
            TRAFFIC,
            "corrected_errors",
            [("ag2", 5, "ag3", 1), ("ag1", 8, "ag2", 4)],
            "Traffic 0/1 (ag2:5 <--> ag3:1: 327 corrected errors, ag1:8 <--> ag2:4: 521 corrected errors).",
        ),
        (
            GW,
            "no_cable",
            [("ag1.1", 1, "ag2.1", 2)],
            "Cabling 11/12 (ag1.1:gw1 <--> ag2.1:gw2: no cable).",
        ),
        (SKIPPED, "wrong_port", [("a02", 7, "a03", 3)], "Cabling 11/12 (a02:7 <--> a03:3: wrong port)."),
    ],
)
def test_cables(text: str, kind: str, ends: list[tuple[str, int, str, int]], message: str) -> None:
    run = cli_tests.status(text, "Cannot test cluster '--status': Some tests failed.")
    failures = run["results"][0]["failures"]
    assert {failure["kind"] for failure in failures} == {kind}
    assert [(f["a"]["agent"], f["a"]["port"], f["b"]["agent"], f["b"]["port"]) for f in failures] == ends
    assert failure_message(run, "cl0") == "Cluster 'cl0' did not pass its tests: " + message


def test_the_message_names_the_cluster_of_a_table_without_caption() -> None:
    text = "\n".join(line for line in SKIPPED.splitlines() if "Showing test results" not in line)
    run = cli_tests.status(text, None)
    assert run["cluster"] is None
    assert failure_message(run, "cl0").startswith("Cluster 'cl0' did not pass its tests: Cabling 11/12 (")


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (
            "Agent 'ag2' did not respond: it belongs to deployment a1, not to b2. Use 'vipu-admin take-over agent' to "
            "change that.",
            "ag2: it belongs to deployment a1, not to b2. Use 'vipu-admin take-over agent' to change that",
        ),
        ("Agent 'ag2' did not respond: deadline exceeded.", "ag2: deadline exceeded"),
    ],
)
def test_the_message_has_the_reason_of_an_agent_without_a_response(reason: str, message: str) -> None:
    run = cli_tests.status(SYNC.replace("ag1:6 <--> 2:ag2", reason), None)
    assert f"({message}, ag1:sync7 <--> ag2:sync3: no sync)" in failure_message(run, "cl0")


def test_links_inside_a_machine() -> None:
    text = """\
Showing test results for cluster cl0
  Test Type | Duration | Passed  | Summary
  IPU-Link  | 0.02s    | 311/316 | Failed Links:
            |          |         | ag-1: internal3
            |          |         | ag02: 4 internal links missing
  Traffic   | 0.03s    | 6/8     | Traffic test failed
            |          |         | Errors encountered in traffic test 2
            |          |         | corrected link errors: 327
            |          |         | - ag-1: internal3 (327)
            |          |         | - ag02: internal7 (link down)
"""
    ipu_link_failures, traffic_failures = (result["failures"] for result in cli_tests.status(text, None)["results"])
    known = [(failure["kind"], failure["agent"], failure["link"]) for failure in ipu_link_failures]
    assert known == [("link_down", "ag-1", "internal3"), ("link_down", "ag02", None)]
    assert [(f["kind"], f["agent"], f["link"], f["corrected_errors"], f["traffic_test"]) for f in traffic_failures] == [
        ("corrected_errors", "ag-1", "internal3", 327, 2),
        ("link_down", "ag02", "internal7", None, 2),
    ]


def test_skipped_tests() -> None:
    run = cli_tests.status(SKIPPED, None)
    skipped = run["results"][1]
    assert (skipped["skipped_because"], skipped["ok"], skipped["failures"]) == ("Cabling", False, [])
    disturbing = PASSING.replace("Sync Link test passed", "Test did not run because it would disturb partitions (a, b)")
    first = cli_tests.status(disturbing.replace("14/14", "0/0"), None)["results"][0]
    assert (first["skipped"], first["disturbs"], first["ok"]) == (True, ["a", "b"], True)


def test_versions_and_settings() -> None:
    (version,) = cli_tests.status(VERSIONS, None)["results"][0]["failures"]
    assert (version["kind"], version["component"]) == ("version", "Agent")
    assert version["versions"] == {"ag1": "1.6.0", "ag8": "1.5.1"}
    dashed = VERSIONS.replace("ag1-", "pod-ag-1-").replace("ag8-", "pod-ag-8-").replace("-Agent", "-IPU firmware")
    (version,) = cli_tests.status(dashed, None)["results"][0]["failures"]
    assert (version["component"], list(version["versions"])) == ("IPU firmware", ["pod-ag-1", "pod-ag-8"])
    (pfc,) = cli_tests.status(PFC, None)["results"][0]["failures"]
    assert (pfc["kind"], pfc["agent"]) == ("pfc_classes", "ag05")


def test_unknown_line_becomes_a_failure() -> None:
    text = SYNC.replace("ag1:6 <--> 2:ag2", "the cable is on fire")
    first, _ = cli_tests.status(text, None)["results"][0]["failures"]
    assert (first["kind"], first["reason"]) == (None, "the cable is on fire")


@pytest.mark.parametrize(
    ("reason", "state", "cluster"),
    [
        ("No results available. Test in cluster cl0 is in progress.", "running", "cl0"),
        ("No results available. Last test in cluster cl0 was stopped.", "stopped", "cl0"),
        ("No results available.", "none", None),
        (f"No results available. {abort_message('Cabling', 'cl0')}", "aborted", "cl0"),
    ],
)
def test_runs_without_results(reason: str, state: str, cluster: str | None) -> None:
    run = cli_tests.status(f"test cluster (status): failed: {reason}", reason)
    assert (run["state"], run["cluster"], run["results"], run["ok"]) == (state, cluster, [], False)


@pytest.mark.parametrize("reason", [None, "Some tests failed."])
@pytest.mark.parametrize("text", ["", "what?", PASSING.replace("14/14", "many"), PASSING.replace("153.96s", "long")])
def test_unreadable_output_is_rejected(text: str, reason: str | None) -> None:
    with pytest.raises(ValueError, match=r"."):
        cli_tests.status(text, reason)
